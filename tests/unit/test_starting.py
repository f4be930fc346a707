"""Unsafe settings keep a process from starting."""

import runpy
from pathlib import Path

import pytest
from celery.signals import beat_init, worker_init
from django.conf import settings as current
from django.core.checks import Error, Info, Warning
from django.core.exceptions import ImproperlyConfigured

from renders.starting import WHAT_TO_DO, refuse_unsafe_settings

WSGI = str(Path(current.BASE_DIR, "project/wsgi.py"))


@pytest.fixture(autouse=True)
def found(monkeypatch, settings):
    """What the checks find."""
    settings.DEBUG = False
    found = [Warning("Slow.", hint="Run.", id="x.W1"), Info("By the way.", id="x.I1")]
    monkeypatch.setattr("renders.starting.run_checks", lambda: found)
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
