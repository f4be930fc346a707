"""A project that has not taken every step hears of it from `check`."""

import sys
from types import ModuleType

import pytest
from celery.beat import ScheduleEntry
from django.core.checks.registry import registry
from django.urls import include, path
from django.views.defaults import page_not_found

from renders.celery_settings import SWEEP_TASK
from renders.checks import celery, check_settings
from renders.checks.installation import check_installation


def found():
    return [message.id for message in check_installation(None)]


@pytest.fixture
def urls(settings, monkeypatch):
    """The project's addresses are these."""

    def use(*patterns):
        module = ModuleType("urls_of_a_test")
        module.urlpatterns = list(patterns)
        monkeypatch.setitem(sys.modules, module.__name__, module)
        settings.ROOT_URLCONF = module.__name__

    return use


def test_this_project_has_taken_every_step():
    assert found() == []
    assert check_installation in registry.get_checks()


def test_without_a_celery_app_messages_would_go_nowhere(monkeypatch, settings):
    monkeypatch.setattr(celery, "loaded", lambda: False)
    assert found() == ["renders.E040"]

    settings.RENDERS = {**settings.RENDERS, "SCHEDULER": "database"}
    assert found() == []


def test_a_scheduler_that_cannot_be_read_is_anothers_to_name(settings):
    settings.RENDERS = {**settings.RENDERS, "SCHEDULER": "moon"}
    assert found() == []
    assert "renders.E001" in {message.id for message in check_settings(None)}


def test_beat_must_know_the_sweep_unless_its_schedule_is_kept_elsewhere(settings):
    settings.CELERY_BEAT_SCHEDULE = {"other": {"task": "shop.tasks.tidy", "schedule": 9}}
    [message] = check_installation(None)
    assert message.id == "renders.W041"
    assert "CELERY_BEAT_SCHEDULE" in message.hint

    entry = ScheduleEntry("sweep", SWEEP_TASK, schedule=30)  # Celery takes such as well
    settings.CELERY_BEAT_SCHEDULE = {"sweep": entry}
    assert found() == []

    settings.CELERY_BEAT_SCHEDULE = {}
    settings.CELERY_BEAT_SCHEDULER = "django_celery_beat.schedulers:DatabaseScheduler"
    assert found() == []


def test_pages_that_have_no_address_are_named(urls):
    urls()
    assert found() == ["renders.W042"]


def test_a_project_without_pages_of_any_kind_is_left_alone(settings):
    del settings.ROOT_URLCONF
    assert found() == []


@pytest.mark.parametrize("missing", ["django_htmx", "django.contrib.messages"])
def test_what_the_pages_need_is_named(settings, missing):
    settings.INSTALLED_APPS = [name for name in settings.INSTALLED_APPS if name != missing]
    [message] = check_installation(None)

    assert (message.id, missing in message.msg) == ("renders.E043", True)


def test_templates_that_are_not_found_are_named(settings):
    settings.TEMPLATES = [{**settings.TEMPLATES[0], "APP_DIRS": False}]

    assert found() == ["renders.E044"]


@pytest.mark.parametrize(
    ("login", "ids"),
    [
        ("login", []),
        ("/accounts/login/?from=renders", []),
        ("https://login.example.com/", []),
        ("/sign-in/", ["renders.W045"]),
        ("sign-in", ["renders.W045"]),
    ],
)
def test_a_login_page_that_is_not_there_is_named(settings, login, ids):
    settings.LOGIN_URL = login

    assert found() == ids


def test_an_address_under_another_name_will_do(urls, settings):
    settings.LOGIN_URL = "enter"
    urls(path("in/", page_not_found, name="enter"), path("a/b/", include("renders.urls")))

    assert found() == []
