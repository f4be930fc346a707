"""A project's own app, as a user would write it: reacts to the signals in the database."""

from django.apps import AppConfig


class EffectsConfig(AppConfig):
    name = "tests.effects"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        from tests.effects import receivers  # noqa: F401  (connects itself)
