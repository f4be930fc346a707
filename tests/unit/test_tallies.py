"""How a process hands over its counts, and what it does where their store is away."""

from unittest import mock

import pytest
import redis
from django.db import OperationalError, transaction

from renders import counting, tallies
from renders.models import Tally


@pytest.fixture(autouse=True)
def fresh(monkeypatch):
    counting.take()
    monkeypatch.setattr(tallies._Times, "soon_at", 0.0)
    monkeypatch.setattr(tallies._Times, "rests_until", 0.0)
    yield
    counting.take()


@pytest.fixture
def by_table(settings):
    settings.RENDERS = {**settings.RENDERS, "SCHEDULER": "database"}


@pytest.fixture
def clock(monkeypatch):
    now = [1000.0]
    monkeypatch.setattr("renders.tallies.time.monotonic", lambda: now[0])
    return now


@pytest.mark.django_db(transaction=True)
def test_counts_of_several_processes_add_up_in_the_table(by_table):
    for _ in range(2):
        counting.count("sweeps", 2)
        counting.count("webhooks", outcome="taken")
        assert tallies.flush()

    assert tallies.totals() == {"sweeps": 4, "webhooks|taken": 2}
    assert Tally.objects.count() == 2


@pytest.mark.django_db(transaction=True)
def test_to_hand_over_costs_one_statement_and_nothing_costs_none(
    by_table, django_assert_num_queries
):
    counting.count("sweeps")
    counting.observe("poll_lateness_seconds", 1)
    with django_assert_num_queries(1):
        tallies.flush()
    with django_assert_num_queries(0):
        tallies.flush()


@pytest.mark.django_db(transaction=True)
def test_nobodys_transaction_holds_the_counts(by_table):
    counting.count("sweeps")
    with transaction.atomic():
        assert not tallies.flush()
    assert tallies.totals() == {}

    assert tallies.flush()
    assert tallies.totals() == {"sweeps": 1}


def test_without_redis_counts_wait_and_go_with_the_next(no_redis, monkeypatch, clock):
    counting.count("sweeps")
    assert not tallies.flush()
    assert tallies.totals() is None
    counting.count("sweeps")
    clock[0] += tallies.REST_SECONDS
    taken = []
    monkeypatch.setattr(tallies, "_add_to_redis", taken.append)

    assert tallies.flush()
    assert taken == [{"sweeps": 2}]


def test_a_store_that_is_away_is_left_alone_for_a_while(clock):
    counting.count("sweeps")
    with mock.patch.object(tallies, "_add_to_redis", side_effect=redis.TimeoutError) as add:
        tallies.flush()
        clock[0] += tallies.REST_SECONDS - 1
        tallies.flush()
        assert add.call_count == 1
        clock[0] += 1
        tallies.flush()
        assert add.call_count == 2


def test_a_table_that_is_away_disturbs_nobody(by_table, monkeypatch):
    monkeypatch.setattr(tallies, "_may_write", lambda: True)
    counting.count("sweeps")
    with mock.patch("renders.models.Tally.objects.add", side_effect=OperationalError):
        assert not tallies.flush()

    assert counting.take() == {"sweeps": 1}


def test_who_does_many_things_hands_over_once_a_second(clock, monkeypatch):
    taken = []
    monkeypatch.setattr(tallies, "_add_to_redis", taken.append)
    for _ in range(10):
        counting.count("sweeps")
        tallies.flush_soon()
        clock[0] += 0.25

    assert taken == [{"sweeps": 1}, {"sweeps": 4}, {"sweeps": 4}]
