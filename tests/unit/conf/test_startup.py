"""Unsafe settings keep a process from starting; one that starts says where renders go."""

import logging
import runpy
from pathlib import Path

import pytest
from celery.signals import beat_init, celeryd_after_setup, worker_init
from django.conf import settings as current
from django.core.checks import Error, Info, Warning
from django.core.exceptions import ImproperlyConfigured

from renders import tasks
from renders.conf.destination import say_where_renders_go
from renders.conf.startup import WHAT_TO_DO, refuse_unsafe_settings

SUME = "https://api.sume.com"
STAND_IN = "http://127.0.0.1:8999"
BILLED = "Renders go to api.sume.com: every render is billed."
WSGI = str(Path(current.BASE_DIR, "project/wsgi.py"))


@pytest.fixture(autouse=True)
def found(monkeypatch, settings):
    """What the checks find."""
    settings.DEBUG = False
    found = [Warning("Slow.", hint="Run.", id="x.W1"), Info("By the way.", id="x.I1")]
    monkeypatch.setattr("renders.conf.startup.run_checks", lambda: found)
    return found


def test_warnings_are_told_and_stop_nothing(caplog):
    refuse_unsafe_settings()

    assert caplog.messages == ["(x.W1) Slow.\n\tHINT: Run.", "(x.I1) By the way."]


def test_all_errors_are_told_at_once(found, caplog):
    found += [Error("Open.", hint="Close.", id="x.E1"), Error("Void.", id="x.E2")]

    with pytest.raises(ImproperlyConfigured) as refusal:
        refuse_unsafe_settings()

    assert str(refusal.value).splitlines() == [
        "unsafe settings.",
        "(x.E1) Open.",
        "\tHINT: Close.",
        "(x.E2) Void.",
        WHAT_TO_DO,
    ]
    assert not caplog.messages


def test_debug_mode_starts_with_anything(found, settings):
    found += [Error("Open.", id="x.E1")]
    settings.DEBUG = True

    refuse_unsafe_settings()


def test_a_silenced_error_stops_nothing(found, settings, caplog):
    found += [Error("Open.", id="x.E1")]
    settings.SILENCED_SYSTEM_CHECKS = ["x.E1", "x.W1", "x.I1"]

    refuse_unsafe_settings()

    assert not caplog.messages


@pytest.mark.parametrize("signal", [worker_init, beat_init], ids=["worker", "beat"])
def test_a_worker_and_beat_end_with_the_reason(found, signal):
    known = [receiver() for _, receiver in signal.receivers]
    [refuse] = [one for one in known if one and one.__module__ == "project.celery"]
    refuse(sender=None)

    found += [Error("Open.", id="x.E1")]
    with pytest.raises(SystemExit, match=r"^Not started: unsafe settings\.\n\(x.E1\) Open\."):
        refuse(sender=None)


def test_the_web_server_cannot_load_the_site(found):
    assert callable(runpy.run_path(WSGI)["application"])

    found += [Error("Open.", id="x.E1")]
    with pytest.raises(ImproperlyConfigured, match="Open"):
        runpy.run_path(WSGI)


# --- Where renders go ---------------------------------------------------------------------


@pytest.mark.parametrize(
    ("url", "debug", "level"),
    [
        (SUME, False, "INFO"),
        (SUME, True, "WARNING"),
        (STAND_IN, False, "WARNING"),
        (STAND_IN, True, "INFO"),
        ("https://sume.example.com", False, "WARNING"),
        ("https://sume.example.com", True, "WARNING"),
    ],
)
def test_the_host_is_told_and_a_surprise_is_a_warning(settings, caplog, url, debug, level):
    settings.DEBUG = debug
    settings.RENDERS = {"BASE_URL": url, "API_KEY": "sk-canary"}

    say_where_renders_go()

    [record] = caplog.records
    assert record.levelname == level
    assert record.message.startswith(f"Renders go to {url.partition('//')[2]}")
    assert "bill" in record.message and "canary" not in record.message


def test_without_a_key_sume_is_no_surprise_in_debug(settings, caplog):
    settings.DEBUG = True
    settings.RENDERS = {"BASE_URL": SUME}

    say_where_renders_go()

    [record] = caplog.records
    assert record.levelname == "INFO"
    assert record.message == f"{BILLED} No API key is set here: nothing is sent."


def test_the_hosts_of_all_workspaces_are_told_in_one_line(settings, caplog):
    acme = {"BASE_URL": STAND_IN, "API_KEY": "sk-2"}
    settings.RENDERS = {"BASE_URL": SUME, "API_KEY": "sk", "WORKSPACES": {"acme": acme}}

    say_where_renders_go()

    [record] = caplog.records
    assert record.levelname == "WARNING"
    assert "api.sume.com (workspace default)" in record.message
    assert "127.0.0.1:8999 (workspace acme)" in record.message


def test_where_lines_of_information_are_not_logged_it_is_told_all_the_same(settings, caplog):
    caplog.set_level(logging.WARNING, logger="renders.conf.destination")
    settings.RENDERS = {"BASE_URL": SUME, "API_KEY": "sk"}

    say_where_renders_go()

    assert caplog.messages == [BILLED]


def test_workspaces_that_cannot_be_read_stop_nothing(settings, caplog):
    settings.RENDERS = {"WORKSPACES": {"default": {"API_KEY": "sk-canary"}}}

    say_where_renders_go()

    [told] = caplog.messages
    assert told.startswith("Where renders go is unknown: RENDERS") and "canary" not in told


@pytest.mark.parametrize("signal", [celeryd_after_setup, beat_init], ids=["worker", "beat"])
def test_a_worker_and_beat_of_any_project_say_where_renders_go(settings, caplog, signal):
    settings.RENDERS = {"BASE_URL": SUME, "API_KEY": "sk"}
    known = [receiver() for _, receiver in signal.receivers]
    [say] = [one for one in known if one and one.__module__ == tasks.__name__]

    say(sender=None)

    assert caplog.messages == [BILLED]


@pytest.mark.parametrize("debug", [True, False])
def test_the_web_server_says_where_renders_go(settings, caplog, monkeypatch, debug):
    monkeypatch.setattr("django.core.wsgi.get_wsgi_application", lambda: None)  # it sets up logs
    settings.DEBUG = debug
    settings.RENDERS = {"BASE_URL": SUME, "API_KEY": "sk"}

    runpy.run_path(WSGI)

    assert caplog.messages[-1] == BILLED
    assert caplog.messages.count(BILLED) == 1
