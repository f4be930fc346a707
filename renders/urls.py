"""The app's pages; include at the project's root."""

from django.urls import include, path
from django.views.generic import RedirectView

from renders.api.views import Nothing
from renders.views import charts, detail, gallery, health, media, metrics, new, webhooks

app_name = "renders"
urlpatterns = [
    path("", RedirectView.as_view(pattern_name="renders:gallery"), name="home"),
    path("renders/", gallery.gallery, name="gallery"),
    path("renders/live/", gallery.gallery_live, name="gallery_live"),
    path("renders/new/", new.new, name="new"),
    path("renders/charts/", charts.charts, name="charts"),
    path("renders/<uuid:pk>/", detail.detail, name="detail"),
    path("renders/<uuid:pk>/live/", detail.detail_live, name="detail_live"),
    path("renders/<uuid:pk>/artifacts/<int:index>/", media.artifact, name="artifact"),
    path("renders/<uuid:pk>/artifacts/<int:index>/thumbnail/", media.thumbnail, name="thumbnail"),
    path("renders/<uuid:pk>/cancel/", detail.cancel, name="cancel"),
    path("renders/<uuid:pk>/resend/", detail.resend, name="resend"),
    path("renders/<uuid:pk>/retry/", detail.retry, name="retry"),
    path("renders/<uuid:pk>/store-media/", detail.store_media, name="store_media"),
    path("webhooks/sume/", webhooks.sume, name="sume_webhook"),
    path("api/renders/", include("renders.api.urls")),
    path("api/renders", Nothing.as_view()),
    path("metrics", metrics.metrics, name="metrics"),
    path("healthz", health.healthz, name="healthz"),
    path("readyz", health.readyz, name="readyz"),
]
