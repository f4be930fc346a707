from django.contrib.auth.views import LoginView
from django.urls import include, path

urlpatterns = [
    path("enter/", LoginView.as_view(template_name="people/enter.html"), name="enter"),
    path("", include("renders.urls")),
]
