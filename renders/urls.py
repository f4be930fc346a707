"""The app's pages."""

from django.urls import URLPattern

app_name = "renders"
urlpatterns: list[URLPattern] = []
