"""What is wrong with the database beside that it does not answer."""

from datetime import timedelta

import pytest
from django.contrib.sessions.models import Session
from django.db import connections
from django.utils import timezone

from renders.health import database
from renders.models import Heartbeat, outages
from renders.telemetry import heartbeats

pytestmark = pytest.mark.django_db


def codes(found):
    return [one.code for one in found]


def test_the_migrations_of_this_version_must_be_applied_and_further_ones_may(monkeypatch):
    applied = dict(database.known())
    assert ("renders", "0001_initial") in applied
    assert codes(database.migrations()) == [""]

    gone = dict(list(applied.items())[3:])  # as if the database were ahead
    monkeypatch.setattr(database, "known", lambda: gone)
    assert codes(database.migrations()) == [""]

    new = {("shop", f"000{number}_x"): set() for number in range(7)}
    monkeypatch.setattr(database, "known", lambda: {**applied, **new})
    [found] = database.migrations()
    assert found.code == "migrations-missing"
    assert found.said.startswith("Not applied: shop.0000_x, ") and "and 2 more" in found.said

    squashed = {("shop", "0001_squashed"): {("renders", "0001_initial")}}
    monkeypatch.setattr(database, "known", lambda: {**applied, **squashed})
    assert codes(database.migrations()) == [""]


def test_the_database_is_named():
    [found] = database.engine()
    assert connections["default"].display_name in found.said


def test_a_process_whose_clock_differs_from_the_databases_is_named():
    heartbeats.note(heartbeats.SWEEP)
    assert "clocks-apart" not in codes(database.clock())

    ahead = timezone.now() + timedelta(seconds=30)
    Heartbeat.objects.update(at=ahead, host="worker7")

    [found] = [one for one in database.clock() if one.code]
    assert found.code == "clocks-apart"
    assert found.said.startswith("The clock of worker7 (sweep) is 30.")
    assert found.said.endswith(" s ahead of the database's.")


def test_many_old_sessions_are_told(monkeypatch):
    monkeypatch.setattr(database, "MANY", 2)
    long_ago = timezone.now() - timedelta(days=31)
    Session.objects.bulk_create(
        Session(session_key=str(number), session_data="", expire_date=long_ago)
        for number in range(2)
    )
    assert codes(database.sessions()) == [""]

    Session.objects.create(session_key="new", session_data="", expire_date=timezone.now())
    assert codes(database.sessions()) == [""]
    Session.objects.create(session_key="old", session_data="", expire_date=long_ago)
    assert codes(database.sessions()) == ["sessions-old"]


def test_a_connection_to_be_made_for_health_does_not_wait_for_ever(monkeypatch):
    class Fresh:
        vendor, connection, settings_dict = "postgresql", None, {"OPTIONS": {"pool": True}}

    monkeypatch.setattr(outages, "connections", {"default": Fresh()})

    given = outages.connection().settings_dict["OPTIONS"]

    assert given["connect_timeout"] and given["tcp_user_timeout"] and "pool" not in given
    assert Fresh.settings_dict == {"OPTIONS": {"pool": True}}  # others wait as they did
