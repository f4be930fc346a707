"""What unit tests share."""

import pytest
from celery import current_app
from django.conf import settings

from renders.health import readiness
from renders.health.probes import Lanes, Round

NOBODY = "redis://127.0.0.1:9/0"


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items):
    """Let `-m django_db` find those, too, that ask for the database by a fixture."""
    for item in items:
        if {"db", "transactional_db"} & set(getattr(item, "fixturenames", ())):
            item.add_marker(pytest.mark.django_db)


@pytest.fixture(autouse=True)
def no_redis(monkeypatch):
    """Nothing listens there, and no test leaves a pause to the next one.

    The tests of `tests/integration` that this process runs, too, start a Redis.
    """
    monkeypatch.setitem(settings.RENDERS, "REDIS_URL", NOBODY)


@pytest.fixture
def no_broker(monkeypatch):
    """Whoever sends a message finds nobody."""
    monkeypatch.setenv("CELERY_BROKER_WRITE_URL", NOBODY)
    app = current_app._get_current_object()
    monkeypatch.setattr(app, "_pool", None)
    monkeypatch.setattr(app.amqp, "_producer_pool", None)


@pytest.fixture
def asked_here(monkeypatch):
    """Questions about health are asked in the test's own thread, each time anew."""
    monkeypatch.setattr(Round, "start", Round.ask_all)
    monkeypatch.setattr(readiness, "lanes", Lanes(0))


@pytest.fixture
def followed(monkeypatch):
    """The steps that were handed to the scheduler."""
    steps = []
    monkeypatch.setattr("renders.schedulers.dispatch.follow", steps.extend)
    return steps


@pytest.fixture
def ada(django_user_model):
    return django_user_model.objects.create_user("ada")


@pytest.fixture
def ann(django_user_model):
    return django_user_model.objects.create_user("ann")


@pytest.fixture
def bob(django_user_model):
    return django_user_model.objects.create_user("bob")
