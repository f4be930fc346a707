"""Steps become messages: ids and tokens, countdowns, and a broker that is away."""

import contextlib
import json
import logging
import time
import uuid
from datetime import datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from django.db import InterfaceError
from django.db import OperationalError as DatabaseAway
from kombu.exceptions import OperationalError

from project.celery import app
from renders import tasks
from renders.lifecycle.steps import Step
from renders.schedulers import dispatch
from tests.unit.fakes import FakeLeases, FakeSet

RENDER = uuid.UUID("12345678" + 24 * "0")
TASKS = {
    "submit": tasks.submit_render,
    "poll": tasks.poll_render,
    "finish": tasks.finish_render,
    "cancel": tasks.cancel_render,
    "media": tasks.save_media,
}


@pytest.fixture
def sent(monkeypatch):
    """The messages that a broker would get: task, arguments, options."""
    messages = []
    for do, task in TASKS.items():

        def apply_async(args, do=do, **options):
            messages.append((do, args, options))

        monkeypatch.setattr(task, "apply_async", apply_async)
    return messages


@pytest.mark.parametrize("do", TASKS)
def test_a_step_becomes_a_message_to_its_task(sent, do):
    dispatch.follow([Step(do, RENDER)])

    assert sent == [(do, [str(RENDER)], {"countdown": None})]


def test_a_poll_carries_its_wait_and_its_token(sent):
    dispatch.follow([Step("poll", RENDER, 5.5, "token")])

    assert sent == [("poll", [str(RENDER), "token"], {"countdown": 5.5})]


def test_a_message_holds_ids_and_tokens_as_json(sent):
    dispatch.follow([Step("submit", RENDER), Step("poll", RENDER, 1.0, "token")])

    assert json.loads(json.dumps([args for _, args, _ in sent])) == [
        [str(RENDER)],
        [str(RENDER), "token"],
    ]


def test_steps_are_sent_in_order(sent):
    dispatch.follow(Step(do, RENDER) for do in TASKS)

    assert [do for do, _, _ in sent] == list(TASKS)


def test_no_steps_are_no_messages(sent):
    dispatch.follow([])

    assert sent == []


@pytest.mark.parametrize(
    "error", [OperationalError("secret://user:pass@host"), ConnectionResetError(), TimeoutError()]
)
def test_an_unreachable_broker_is_logged_and_asked_once(monkeypatch, caplog, error):
    tries = []

    def fail(args, **options):
        tries.append(args)
        raise error

    monkeypatch.setattr(tasks.submit_render, "apply_async", fail)

    with caplog.at_level(logging.WARNING):
        dispatch.follow([Step("submit", RENDER)] * 5)

    assert len(tries) == 1
    assert [record.getMessage() for record in caplog.records] == [
        f"Broker unreachable ({type(error).__name__}): "
        f"submit of render {RENDER} waits for the sweep."
    ]
    assert "pass" not in caplog.text


def test_a_fault_of_our_own_is_not_taken_for_an_outage(monkeypatch):
    def fail(args, **options):
        raise TypeError("not JSON")

    monkeypatch.setattr(tasks.submit_render, "apply_async", fail)

    with pytest.raises(TypeError):
        dispatch.follow([Step("submit", RENDER)])


@pytest.mark.parametrize(
    ("do", "queue"),
    [
        ("submit", "renders.submit"),
        ("finish", "renders.finish"),
        ("cancel", "renders.finish"),
        ("media", "renders.media"),
        ("poll", "renders.poll"),
    ],
)
def test_what_shall_start_at_once_never_queues_behind_reads_that_wait(do, queue):
    task = TASKS[do]

    route = app.amqp.router.route({}, task.name, [str(RENDER)])

    assert route["queue"].name == queue


def test_reads_leave_no_rows_of_results():
    assert tasks.poll_render.ignore_result
    assert tasks.sweep_renders.ignore_result


@pytest.mark.parametrize("moment", ["2026-03-08T05:28", "2026-11-01T04:28", "2026-11-01T05:00"])
def test_a_countdown_is_as_long_as_ever_where_clocks_change(moment):
    """Two minutes before an hour is left out, and before and within one that comes twice."""
    now = datetime.fromisoformat(f"{moment}+00:00")
    zone = ZoneInfo("America/St_Johns")

    message = app.amqp.as_task_v2(
        "id", "task", countdown=300, expires=300, now=now.astimezone(zone), timezone=zone
    )

    for name in ("eta", "expires"):
        assert datetime.fromisoformat(message.headers[name]) - now == timedelta(seconds=300)


# --- The sorted set -----------------------------------------------------------------------


@pytest.fixture
def a_set(settings, monkeypatch):
    """The sorted set is the scheduler; Redis answers."""
    settings.RENDERS = {**settings.RENDERS, "SCHEDULER": "sortedset"}
    polls, leases = FakeSet(), FakeLeases()
    monkeypatch.setattr(dispatch, "polls", lambda: polls)
    monkeypatch.setattr(dispatch, "poll_leases", lambda: leases)
    return polls, leases


def test_with_the_sorted_set_polls_wait_there_and_the_rest_is_messages(sent, a_set):
    polls, _ = a_set
    before = time.time()

    dispatch.follow([Step("poll", RENDER, 5.0), Step("cancel", RENDER), Step("finish", RENDER)])

    assert before + 5 <= polls.due[RENDER] <= time.time() + 5
    assert [do for do, _, _ in sent] == ["cancel", "finish"]


def test_a_chain_of_messages_that_ends_in_the_set_leaves_no_lease_behind(sent, a_set):
    polls, leases = a_set
    token = leases.acquire(str(RENDER), 60)

    dispatch.follow([Step("poll", RENDER, 5.0, token)])

    assert RENDER in polls.due
    assert leases.tokens == {}
    assert sent == []


def test_without_polls_the_set_is_not_asked(sent, a_set):
    polls, _ = a_set

    dispatch.follow([Step("finish", RENDER)])

    assert polls.calls == 0


def test_a_set_that_cannot_be_reached_holds_up_no_message(sent, a_set, caplog):
    polls, _ = a_set
    polls.away = True

    with caplog.at_level(logging.WARNING):
        dispatch.follow([Step("poll", RENDER), Step("poll", RENDER), Step("finish", RENDER)])

    assert [do for do, _, _ in sent] == ["finish"]
    assert caplog.messages == ["Redis unreachable (ConnectionError): 2 polls wait for the sweep."]


# --- The table alone ------------------------------------------------------------------------


class Listened:
    """A connection to PostgreSQL, or to another database, that notes what it is told."""

    def __init__(self, vendor="postgresql", *, atomic=False, fault=None):
        self.vendor, self.in_atomic_block, self.fault = vendor, atomic, fault
        self.told = []

    def cursor(self):
        if self.fault:
            raise self.fault
        return contextlib.nullcontext(self)

    def execute(self, statement):
        self.told.append(statement)


@pytest.fixture
def by_the_table(settings, monkeypatch, sent, no_redis):
    """Makes this the connection, and gives it."""
    settings.RENDERS = {**settings.RENDERS, "SCHEDULER": "database"}

    def use(connection, number=2):
        monkeypatch.setattr(dispatch, "connection", connection)
        dispatch.follow([Step("submit", RENDER)] * number)
        assert sent == []
        return connection.told

    return use


def test_by_the_table_alone_one_word_wakes_who_waits(by_the_table):
    assert by_the_table(Listened()) == ["NOTIFY renders"]


@pytest.mark.parametrize(
    "connection",
    [Listened("sqlite"), Listened(atomic=True)],
    ids=["it cannot tell", "it would tell too early or not at all"],
)
def test_where_nobody_can_be_woken_nothing_is_said(by_the_table, connection):
    assert by_the_table(connection) == []


@pytest.mark.parametrize("fault", [DatabaseAway, InterfaceError])
def test_a_database_that_goes_away_after_the_commit_is_no_fault_of_the_caller(
    by_the_table, caplog, fault
):
    with caplog.at_level(logging.WARNING):
        by_the_table(Listened(fault=fault("at secret-host")))

    assert caplog.messages == [f"Nobody was woken up ({fault.__name__})."]


def test_no_steps_wake_nobody(by_the_table):
    assert by_the_table(Listened(), number=0) == []


# --- Ticks ----------------------------------------------------------------------------------


@pytest.fixture
def ticks_sent(monkeypatch):
    messages = []
    monkeypatch.setattr(
        tasks.poll_due, "apply_async", lambda args, **options: messages.append((args, options))
    )
    return messages


def test_a_tick_carries_its_chain_its_wait_and_its_token(ticks_sent):
    dispatch.tick_again("0")
    dispatch.tick_again("1", 0.5, "w1")

    assert ticks_sent == [(["0"], {"countdown": None}), (["1", "w1"], {"countdown": 0.5})]


def test_a_tick_that_the_broker_does_not_take_waits_for_the_sweep(monkeypatch, caplog):
    def fail(args, **options):
        raise OperationalError("secret://user:pass@host")

    monkeypatch.setattr(tasks.poll_due, "apply_async", fail)

    with caplog.at_level(logging.WARNING):
        dispatch.tick_again("0")

    assert caplog.messages == ["Broker unreachable (OperationalError): no tick until the sweep."]
