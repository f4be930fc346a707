"""Django's entry to the app."""

from django.apps import AppConfig


class RendersConfig(AppConfig):
    """Registers the system checks; touches neither database nor network."""

    name = "renders"
    verbose_name = "Renders"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        from renders import checks  # noqa: F401  (they register themselves)
