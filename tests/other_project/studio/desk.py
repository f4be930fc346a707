from django.contrib.admin import AdminSite


class Desk(AdminSite):
    """The admin, under the studio's name."""

    site_header = "The desk"
    index_template = "renders/admin/index.html"
