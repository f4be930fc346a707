from django.apps import AppConfig


class PeopleConfig(AppConfig):
    """The studio's own users."""

    name = "studio.people"
