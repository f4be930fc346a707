from django.apps import AppConfig


class ShopConfig(AppConfig):
    name = "tests.examples.shop"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self):
        from . import receivers  # noqa: F401  (connects itself)
