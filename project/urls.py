"""Every page of the project."""

from django.conf import settings
from django.contrib import admin
from django.contrib.auth.views import LoginView, LogoutView
from django.urls import include, path
from django.views.generic import RedirectView

from renders.views.policy import for_anybody

admin.site.index_template = "renders/admin/index.html"

urlpatterns = [
    path("admin/", admin.site.urls),
    # Where browsers look for one on pages that name none, the admin's.
    path("favicon.ico", RedirectView.as_view(url=f"{settings.STATIC_URL}renders/icon.svg")),
    path(
        "accounts/login/",
        for_anybody(
            LoginView.as_view(template_name="renders/login.html", redirect_authenticated_user=True)
        ),
        name="login",
    ),
    path("accounts/logout/", LogoutView.as_view(), name="logout"),
    path("", include("renders.urls")),
]

handler400 = "renders.views.errors.bad_request"
handler404 = "renders.views.errors.page_not_found"
handler500 = "renders.views.errors.server_error"
