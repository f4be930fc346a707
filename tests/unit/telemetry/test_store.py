"""How a process hands over its counts, and what it does where their store is away."""

from unittest import mock

import pytest
import redis
from django.db import OperationalError, transaction

from renders.models import Tally
from renders.telemetry import metrics, store


@pytest.fixture(autouse=True)
def fresh(monkeypatch):
    metrics.take()
    monkeypatch.setattr(store._Times, "soon_at", 0.0)
    monkeypatch.setattr(store._Times, "rests_until", 0.0)
    yield
    metrics.take()


@pytest.fixture
def by_table(settings):
    settings.RENDERS = {**settings.RENDERS, "SCHEDULER": "database"}


@pytest.fixture
def clock(monkeypatch):
    now = [1000.0]
    monkeypatch.setattr("renders.telemetry.store.time.monotonic", lambda: now[0])
    return now


@pytest.mark.django_db(transaction=True)
def test_counts_of_several_processes_add_up_in_the_table(by_table):
    for _ in range(2):
        metrics.count("sweeps", 2)
        metrics.count("webhooks", outcome="taken")
        assert store.flush()

    assert store.totals() == {"sweeps": 4, "webhooks|taken": 2}
    assert Tally.objects.count() == 2


@pytest.mark.django_db(transaction=True)
def test_to_hand_over_costs_one_statement_and_nothing_costs_none(
    by_table, django_assert_num_queries
):
    metrics.count("sweeps")
    metrics.observe("poll_lateness_seconds", 1)
    with django_assert_num_queries(1):
        store.flush()
    with django_assert_num_queries(0):
        store.flush()


@pytest.mark.django_db(transaction=True)
def test_nobodys_transaction_holds_the_counts(by_table):
    metrics.count("sweeps")
    with transaction.atomic():
        assert not store.flush()
    assert store.totals() == {}

    assert store.flush()
    assert store.totals() == {"sweeps": 1}


def test_without_redis_counts_wait_and_go_with_the_next(no_redis, monkeypatch, clock):
    metrics.count("sweeps")
    assert not store.flush()
    assert store.totals() is None
    metrics.count("sweeps")
    clock[0] += store.REST_SECONDS
    taken = []
    monkeypatch.setattr(store, "_add_to_redis", taken.append)

    assert store.flush()
    assert taken == [{"sweeps": 2}]


def test_a_store_that_is_away_is_left_alone_for_a_while(clock):
    metrics.count("sweeps")
    with mock.patch.object(store, "_add_to_redis", side_effect=redis.TimeoutError) as add:
        store.flush()
        clock[0] += store.REST_SECONDS - 1
        store.flush()
        assert add.call_count == 1
        clock[0] += 1
        store.flush()
        assert add.call_count == 2


def test_a_table_that_is_away_disturbs_nobody(by_table, monkeypatch):
    monkeypatch.setattr(store, "_may_write", lambda: True)
    metrics.count("sweeps")
    with mock.patch("renders.models.Tally.objects.add", side_effect=OperationalError):
        assert not store.flush()

    assert metrics.take() == {"sweeps": 1}


def test_who_does_many_things_hands_over_once_a_second(clock, monkeypatch):
    taken = []
    monkeypatch.setattr(store, "_add_to_redis", taken.append)
    for _ in range(10):
        metrics.count("sweeps")
        store.flush_soon()
        clock[0] += 0.25

    assert taken == [{"sweeps": 1}, {"sweeps": 4}, {"sweeps": 4}]
