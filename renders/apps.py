"""Django's entry to the app."""

from django.apps import AppConfig


class RendersConfig(AppConfig):
    """Registers the system checks; touches neither database nor network."""

    name = "renders"
    verbose_name = "Renders"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        # Checks register themselves; `schedulers.dispatch` finds the tasks by their names.
        from renders import (
            checks,  # noqa: F401
            tasks,  # noqa: F401
        )
