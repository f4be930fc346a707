"""Django for the simulation by hand: the tests' settings, and a database in memory."""

import django
from django.conf import settings
from django.core.management import call_command


def prepare() -> None:
    """Set Django up, with an empty database in this process's memory."""
    settings.DATABASES = {"default": {"ENGINE": "django.db.backends.sqlite3", "NAME": ":memory:"}}
    django.setup()
    call_command("migrate", run_syncdb=True, verbosity=0)
