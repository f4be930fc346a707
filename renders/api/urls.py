"""The API's addresses, below `/api/renders/`."""

from django.urls import path, re_path

from renders.api import views

urlpatterns = [
    path("", views.RenderList.as_view(), name="api_list"),
    path("openapi.json", views.Document.as_view(), name="api_document"),
    path("budget/", views.Budget.as_view(), name="api_budget"),
    path("<uuid:pk>/", views.RenderDetail.as_view(), name="api_detail"),
    path("<uuid:pk>/cancel/", views.RenderCancel.as_view(), name="api_cancel"),
    path("<uuid:pk>/resend/", views.RenderResend.as_view(), name="api_resend"),
    path("<uuid:pk>/retry/", views.RenderRetry.as_view(), name="api_retry"),
    path("<uuid:pk>/store-media/", views.RenderStoreMedia.as_view(), name="api_store_media"),
    path("<uuid:pk>/artifacts/<int:index>/", views.RenderArtifact.as_view(), name="api_artifact"),
    re_path(r"^[\s\S]+\Z", views.Nothing.as_view()),  # `path` does not match newlines
]
