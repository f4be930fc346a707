"""Celery's settings are found whatever the project calls its app and their namespace."""

import pytest
from celery import Celery

from renders.checks import celery


def use(monkeypatch, app):
    monkeypatch.setattr(celery, "current_app", app)
    return app


@pytest.fixture
def studio(monkeypatch):
    app = Celery("studio", set_as_current=False)
    app.config_from_object("django.conf:settings", namespace="STUDIO")
    return use(monkeypatch, app)


def test_this_project_has_an_app_of_its_own(settings):
    settings.CELERY_TASK_SOFT_TIME_LIMIT = 12

    assert celery.loaded()
    assert celery.name_of("task_routes") == "CELERY_TASK_ROUTES"
    assert celery.value_of("task_soft_time_limit") == 12


def test_another_namespace_is_asked_for(settings, studio):
    settings.STUDIO_TASK_SOFT_TIME_LIMIT = 34

    assert celery.loaded()
    assert celery.name_of("task_routes") == "STUDIO_TASK_ROUTES"
    assert celery.value_of("task_soft_time_limit") == 34


def test_what_django_does_not_say_the_app_does(studio):
    studio.conf.task_soft_time_limit = 56

    assert celery.value_of("task_soft_time_limit") == 56
    assert celery.value_of("broker_url") is None


def test_celerys_own_fall_back_is_no_app(monkeypatch):
    use(monkeypatch, Celery("default", fixups=[], set_as_current=False))

    assert not celery.loaded()
    assert celery.value_of("event_queue_prefix") is None  # not Celery's own default
