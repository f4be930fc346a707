from django.contrib import admin
from django.contrib.auth.views import LoginView
from django.urls import include, path

urlpatterns = [
    path("desk/", admin.site.urls),
    path("enter/", LoginView.as_view(template_name="people/enter.html"), name="enter"),
    path("studio/", include("renders.urls")),
]

handler400 = "renders.views.errors.bad_request"
handler500 = "renders.views.errors.server_error"
