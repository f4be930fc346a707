"""A tick reads for a while and has the next one follow: one at a time of each chain."""

import logging

import pytest
from django.db import OperationalError

from renders.schedulers import ticks
from tests.unit.fakes import FakeLeases

CHAIN = "0"


class FakeReader:
    """Has nothing due, as long as the clock of the test does not say so."""

    def __init__(self):
        self.busy = 0
        self.next_due = None
        self.turns = 0
        self.fault = None
        self.finished = []

    def turn(self, longest):
        self.turns += 1
        if self.fault:
            raise self.fault

    def finish(self, until):
        self.finished.append(until)
        return True


@pytest.fixture
def reader(monkeypatch):
    made = FakeReader()
    monkeypatch.setattr(ticks, "Reader", lambda *args, **kwargs: made)
    return made


@pytest.fixture
def leases(monkeypatch):
    made = FakeLeases()
    monkeypatch.setattr(ticks, "tick_leases", lambda: made)
    return made


@pytest.fixture
def clock(monkeypatch, reader):
    """Each turn takes a second."""
    now = [1000.0]
    monkeypatch.setattr(ticks.time, "monotonic", lambda: now[0] + reader.turns)
    monkeypatch.setattr(ticks.time, "time", lambda: now[0] + reader.turns)
    return now


def run(token=None):
    """One tick; gives what follows."""
    following = []
    ticks.tick(CHAIN, token, follow=lambda steps: None, go_on=lambda *args: following.append(args))
    return following


def test_a_tick_ends_where_nothing_is_due_and_the_next_one_comes_soon(reader, leases, clock):
    following = run()

    assert following == [(CHAIN, ticks.REST_SECONDS, leases.tokens[CHAIN])]
    assert reader.turns == 1
    assert len(reader.finished) == 1


def test_while_something_is_due_it_goes_on_for_a_while_and_the_next_follows_at_once(
    reader, leases, clock
):
    reader.next_due = 0.0

    following = run()

    assert following == [(CHAIN, 0.0, leases.tokens[CHAIN])]
    assert reader.turns == ticks.TICK_SECONDS


@pytest.mark.parametrize(("seconds", "turns"), [(1.5, ticks.TICK_SECONDS), (2, 1)])
def test_what_is_due_soon_is_waited_for_and_what_is_due_later_is_left_to_the_next(
    reader, leases, clock, seconds, turns
):
    reader.next_due = 1000 + seconds

    run()

    assert reader.turns == turns


def test_reads_under_way_keep_a_tick_at_it(reader, leases, clock):
    reader.busy = 1

    assert run() == [(CHAIN, ticks.REST_SECONDS, leases.tokens[CHAIN])]
    assert reader.turns == ticks.TICK_SECONDS


def test_the_next_follows_before_the_last_answers_are_waited_for(reader, leases, clock):
    order = []
    reader.finish = lambda until: order.append("finish")

    ticks.tick(CHAIN, None, lambda steps: None, lambda *args: order.append("go on"))

    assert order == ["go on", "finish"]


def test_the_last_answers_are_waited_for_as_long_as_a_request_takes(reader, leases, clock):
    reader.busy = 1

    run()

    [until] = reader.finished
    assert until == clock[0] + ticks.longest_seconds()


def test_a_second_chain_of_the_same_name_does_not_begin(reader, leases, clock):
    run()

    assert run() == []
    assert reader.turns == 1


def test_a_tick_delivered_twice_is_made_once(reader, leases, clock):
    [(_, _, token)] = run()

    assert len(run(token)) == 1
    assert run(token) == []
    assert reader.turns == 2


def test_the_lease_lasts_until_the_next_tick_has_made_its_own(reader, leases, clock):
    run()

    assert leases.lives[CHAIN] == ticks.REST_SECONDS + ticks.LEASE_SECONDS


def test_a_tick_that_goes_on_renews_its_lease(reader, leases, clock):
    reader.busy = 1
    renewed = []
    hand_on = leases.hand_on

    def note(name, token, life):
        renewed.append(life)
        return hand_on(name, token, life)

    leases.hand_on = note

    [(_, wait, token)] = run()

    assert renewed == [ticks.LEASE_SECONDS] * int(ticks.TICK_SECONDS) + [wait + ticks.LEASE_SECONDS]
    assert token == leases.tokens[CHAIN]


def test_a_tick_that_has_lost_its_lease_calls_no_other(reader, leases, clock):
    reader.busy = 1
    leases.hand_on = lambda name, token, life: None

    assert run() == []
    assert len(reader.finished) == 1


def test_an_outage_of_the_database_does_not_end_the_chain(
    reader, leases, clock, caplog, monkeypatch
):
    reader.fault = OperationalError("at secret-host")
    slept = []
    monkeypatch.setattr(ticks.time, "sleep", slept.append)

    assert run() == [(CHAIN, ticks.REST_SECONDS, leases.tokens[CHAIN])]
    assert len(reader.finished) == 1
    assert slept == [ticks.REST_SECONDS]
    assert caplog.messages == ["The database is away (OperationalError); again in a moment."]


def test_a_fault_of_our_own_is_told_and_the_reads_under_way_are_written_down(reader, leases, clock):
    reader.fault = ValueError("odd")

    with pytest.raises(ValueError, match="odd"):
        run()

    assert len(reader.finished) == 1


NO_LEASE = (
    "Redis unreachable (ConnectionError): a tick without its lease; the sweep calls the next."
)


def test_without_redis_a_tick_reads_and_calls_no_other(reader, leases, clock, caplog):
    leases.away = True

    with caplog.at_level(logging.WARNING):
        assert run() == []

    assert (reader.turns, len(reader.finished)) == (1, 1)
    assert caplog.messages == [NO_LEASE]


def test_redis_that_goes_away_meanwhile_ends_the_chain_and_loses_no_answer(
    reader, leases, clock, caplog, monkeypatch
):
    def turn(longest):
        reader.turns += 1
        leases.away = True

    reader.turn = turn

    with caplog.at_level(logging.WARNING):
        assert run() == []

    assert len(reader.finished) == 1
    assert caplog.messages == [NO_LEASE]
