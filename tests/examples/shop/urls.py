from django.urls import include, path

from . import views

urlpatterns = [path("buy/", views.buy), path("", include("project.urls"))]
