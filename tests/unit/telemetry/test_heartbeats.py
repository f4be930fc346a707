"""A sign of life is written now and then, and never breaks what it tells of."""

import pytest
from django.db import OperationalError

from renders.models import Heartbeat
from renders.telemetry import heartbeats

pytestmark = pytest.mark.django_db


def test_a_sign_says_when_by_both_clocks_and_where(django_assert_num_queries):
    heartbeats.note("sweep")
    first = Heartbeat.objects.get()
    with django_assert_num_queries(1):
        heartbeats.note("sweep")

    second = Heartbeat.objects.get()
    assert second.at > first.at and second.host
    assert abs((second.at - second.stored_at).total_seconds()) < 1


def test_a_loop_writes_it_now_and_then(monkeypatch, django_assert_num_queries):
    now = [100.0]
    monkeypatch.setattr(heartbeats.time, "monotonic", lambda: now[0])
    loop = heartbeats.Pulse("runrenders")

    with django_assert_num_queries(1):
        for _ in range(10):
            loop.beat()
    now[0] += heartbeats.BEAT_SECONDS
    with django_assert_num_queries(1):
        loop.beat()


def test_a_database_that_does_not_take_it_is_lived_through(monkeypatch, caplog):
    def fail(*args, **kwargs):
        raise OperationalError("secret")

    monkeypatch.setattr(Heartbeat.objects, "bulk_create", fail)

    heartbeats.note("sweep")

    assert caplog.messages == ["No sign of life of sweep: The database is away (OperationalError)."]
