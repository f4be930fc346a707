"""Steps become messages: ids and tokens, countdowns, and a broker that is away."""

import json
import logging
import uuid
from datetime import datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from kombu.exceptions import OperationalError

from project.celery import app
from renders import scheduling, tasks
from renders.steps import Step

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
    scheduling.follow([Step(do, RENDER)])

    assert sent == [(do, [str(RENDER)], {"countdown": None})]


def test_a_poll_carries_its_wait_and_its_token(sent):
    scheduling.follow([Step("poll", RENDER, 5.5, "token")])

    assert sent == [("poll", [str(RENDER), "token"], {"countdown": 5.5})]


def test_a_message_holds_ids_and_tokens_as_json(sent):
    scheduling.follow([Step("submit", RENDER), Step("poll", RENDER, 1.0, "token")])

    assert json.loads(json.dumps([args for _, args, _ in sent])) == [
        [str(RENDER)],
        [str(RENDER), "token"],
    ]


def test_steps_are_sent_in_order(sent):
    scheduling.follow(Step(do, RENDER) for do in TASKS)

    assert [do for do, _, _ in sent] == list(TASKS)


def test_no_steps_are_no_messages(sent):
    scheduling.follow([])

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
        scheduling.follow([Step("submit", RENDER)] * 5)

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
        scheduling.follow([Step("submit", RENDER)])


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
