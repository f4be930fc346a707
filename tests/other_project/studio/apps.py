from django.contrib.admin.apps import AdminConfig


class DeskConfig(AdminConfig):
    """Django's admin, with the studio's site for all apps."""

    default_site = "studio.desk.Desk"
