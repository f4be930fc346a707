"""Settings with which no check speaks; each test spoils one."""

import os
from types import SimpleNamespace

import pytest

KEY = "nPzX4vYqk8LrT2wBd7MfHs9JcVgA3eUxQ5yK"
GOOD = {"API_KEY": "sk-key", "BASE_URL": "https://api.sume.com"}
STAND_IN = "http://127.0.0.1:8999"


def turn_on_debug(settings):
    """As on a developer's machine, with the stand-in, so that nothing is billed."""
    settings.DEBUG = True
    settings.RENDERS = {**settings.RENDERS, "BASE_URL": STAND_IN}


@pytest.fixture(autouse=True)
def good_settings(settings, monkeypatch):
    for name in os.environ:
        if name.startswith(("RENDERS_", "FLOWER_", "SUME_")):
            monkeypatch.delenv(name)
    settings.RENDERS = dict(GOOD)
    settings.DEBUG = False
    settings.SECRET_KEY = KEY
    settings.SECRET_KEY_FALLBACKS = []
    settings.ALLOWED_HOSTS = ["a.example"]
    database = SimpleNamespace(vendor="postgresql", settings_dict={"HOST": "db.example.com"})
    monkeypatch.setattr("renders.checks.site.connection", database)
    settings.CELERY_BROKER_TRANSPORT_OPTIONS = {"visibility_timeout": 1800}
    return settings
