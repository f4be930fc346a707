"""From the submit that asks for a webhook to the event, or to the poll that makes good for it."""

import json
import time
from collections.abc import Iterator
from typing import Any

import pytest
from django.test import Client

from renders import services, transitions
from renders.demo.processes import free_port, port_answers
from renders.lifecycle.steps import Step
from renders.models import RenderJob, WebhookEvent
from renders.sandbox import Sandbox
from renders.sandbox.webhooks import signature
from renders.states import Status
from tests.integration import engine
from tests.integration.stack import Stack

SECRET = "whsec-of-the-integration-tests"


class Clock:
    """The sandbox's: its jobs run as long as the test wants, or in the world's time."""

    def __init__(self) -> None:
        self.now = time.time()
        self.runs = False

    def __call__(self) -> float:
        return time.time() if self.runs else self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def sandbox(clock: Clock, settings: Any) -> Iterator[Sandbox]:
    """As in the other tests, and it sends webhooks."""
    with Sandbox(
        clock=clock,
        queued_seconds=0.1,
        processing_seconds=0.4,
        poll_seconds=0.5,
        writes_per_minute=None,
        webhook_secret=SECRET,
    ) as sandbox:
        settings.RENDERS = {
            **settings.RENDERS,
            "BASE_URL": sandbox.url,
            "PUBLIC_URL": f"http://127.0.0.1:{free_port()}",
            "WEBHOOK_SECRET": SECRET,
            "WEBHOOK_POLL_SECONDS": 90,
            "MAX_POLL_SECONDS": 100,
        }
        yield sandbox


# What is the same with every database is tried with one.
sqlite = pytest.mark.parametrize("database", ["sqlite"], indirect=True)
in_process = pytest.mark.usefixtures("database", "redis")


def status_reads(sandbox: Sandbox) -> list[int]:
    """How often each job's status was read."""
    reads = sandbox.ledger.reads.values()
    return [sum(read.what == "status" for read in of_job) for of_job in reads]


# --- Through real workers and a real web server -------------------------------------------


@sqlite
def test_renders_end_with_their_events_long_before_the_next_poll(
    stack: Stack, clock: Clock, settings: Any
) -> None:
    """Out of order and twice, too: each event is one read, each render ends once."""
    clock.runs = True
    for name in ("PUBLIC_URL", "WEBHOOK_POLL_SECONDS", "MAX_POLL_SECONDS"):
        stack.environment[f"RENDERS_{name}"] = str(settings.RENDERS[name])
    stack.environment["SUME_WEBHOOK_SECRET"] = SECRET
    address = settings.RENDERS["PUBLIC_URL"].removeprefix("http://")
    web = stack.run("web", "manage.py", "runserver", "--noreload", address)
    stack.worker()
    stack.until(lambda: port_answers(int(address.rpartition(":")[2])), child=web)
    for fault in ("event_held", "event_twice"):
        stack.sandbox.faults.add(fault, on="event")

    stack.create("held back", "told twice", "FAIL this")
    stack.until_handled(sweeping=False)
    stack.until(lambda: len(stack.sandbox.ledger.events) == 4)

    assert [event.status for event in stack.sandbox.ledger.events] == [200] * 4
    assert WebhookEvent.objects.count() == 3
    assert status_reads(stack.sandbox) == [1, 1, 1]
    ends = RenderJob.objects.order_by("created_at").values_list("status", "by_webhook")
    assert list(ends) == [("completed", True), ("completed", True), ("failed", True)]
    assert SECRET not in stack.logs()


# --- Step by step -------------------------------------------------------------------------


@pytest.fixture
def submitted(sandbox: Sandbox, settings: Any) -> RenderJob:
    render = services.create_render("a red fox", params={"seed": 7})
    engine.submit(render)
    return render


def tell(job_id: str, event_id: str = "evt_1") -> int:
    """What the receiver answers to an event about this job."""
    body = json.dumps({"id": event_id, "type": "job.completed", "data": {"object": {"id": job_id}}})
    now = str(int(time.time()))
    headers = {
        "X-Sume-Timestamp": now,
        "X-Sume-Signature": signature(SECRET, now, body.encode()),
    }
    answer = Client().post("/webhooks/sume/", body, "application/json", headers=headers)
    return answer.status_code


@sqlite
@in_process
def test_the_request_asks_for_a_webhook_and_the_polls_are_rare(
    submitted: RenderJob, settings: Any
) -> None:
    assert json.loads(submitted.request_body) == {
        "prompt": "a red fox",
        "model": "sume/auto",
        "seed": 7,
        "mode": "webhook",
        "webhook_url": f"{settings.RENDERS['PUBLIC_URL']}/webhooks/sume/",
    }
    assert submitted.by_webhook
    assert submitted.next_poll_at and submitted.submitted_at
    assert (submitted.next_poll_at - submitted.submitted_at).total_seconds() == 90

    engine.make_due(submitted)
    [step] = engine.poll(submitted)
    assert step.after == 90


@sqlite
@in_process
@pytest.mark.parametrize(
    ("changes", "wait"),
    [
        pytest.param({"WEBHOOK_POLL_SECONDS": 500}, 100, id="never longer than the longest"),
        pytest.param({"WEBHOOK_POLL_SECONDS": 0}, 0.5, id="never faster than Sume asks"),
        pytest.param({"WEBHOOK_SECRET": ""}, 0.5, id="as usual once webhooks are off"),
    ],
)
def test_the_pace_of_the_polls_is_a_setting(
    submitted: RenderJob, settings: Any, changes: Any, wait: float
) -> None:
    settings.RENDERS = {**settings.RENDERS, **changes}
    engine.make_due(submitted)

    [step] = engine.poll(submitted)

    assert step.after == wait


@sqlite
@in_process
@pytest.mark.parametrize(
    "changes",
    [
        pytest.param({"WEBHOOK_SECRET": ""}, id="no secret"),
        pytest.param({"PUBLIC_URL": ""}, id="no address"),
    ],
)
def test_with_one_of_the_two_alone_no_webhook_is_asked_for(
    sandbox: Sandbox, settings: Any, changes: Any
) -> None:
    settings.RENDERS = {**settings.RENDERS, **changes}
    render = services.create_render("a red fox")

    [step] = engine.submit(render)

    assert json.loads(render.request_body)["mode"] == "async"
    assert (render.by_webhook, step.after) == (False, 0.5)


@sqlite
@in_process
def test_what_was_frozen_before_webhooks_came_stays_as_it_is(
    sandbox: Sandbox, settings: Any
) -> None:
    on = settings.RENDERS
    settings.RENDERS = {**on, "WEBHOOK_SECRET": ""}
    sandbox.faults.add("reset_after", on="submit")
    render = services.create_render("a red fox")
    engine.submit(render)
    body = render.request_body
    settings.RENDERS = on
    RenderJob.objects.update(not_before=None)

    engine.submit(render)

    assert (render.status, render.request_body, render.by_webhook) == ("submitted", body, False)


@in_process
def test_an_event_that_never_comes_is_made_good_by_the_next_poll(
    sandbox: Sandbox, clock: Clock, submitted: RenderJob
) -> None:
    sandbox.faults.add("event_never", on="event")
    clock.now += 60
    engine.make_due(submitted)

    assert [step.do for step in engine.poll(submitted)] == ["finish"]
    assert submitted.status == "completed"
    assert sandbox.ledger.events == []


@sqlite
@in_process
def test_an_event_that_is_faster_than_the_reads_is_followed_by_reads_at_the_usual_pace(
    submitted: RenderJob,
) -> None:
    tell(submitted.sume_job_id)

    [step] = engine.poll(submitted)

    assert submitted.status == "submitted"  # Sume still says that it runs
    assert step.after == 0.5


@sqlite
@in_process
def test_a_result_that_is_late_is_waited_for_at_the_usual_pace(
    sandbox: Sandbox, clock: Clock, submitted: RenderJob
) -> None:
    sandbox.rules.hold_result(submitted.sume_job_id, 600)
    clock.now += 60
    engine.make_due(submitted)

    [step] = engine.poll(submitted)

    assert (submitted.sume_status, step.after) == ("completed", 0.5)


@in_process
def test_an_event_that_comes_before_the_answer_to_the_submit_is_not_lost(
    sandbox: Sandbox, monkeypatch: Any
) -> None:
    """The job id is known only afterwards; the event waits for it in its table."""
    render = services.create_render("a red fox")
    record = transitions.record_submitted

    def told_first(pk: Any, now: Any, *, job_id: str, **known: Any) -> bool:
        assert tell(job_id) == 200
        return bool(record(pk, now, job_id=job_id, **known))

    monkeypatch.setattr(transitions, "record_submitted", told_first)

    assert engine.submit(render) == [Step("poll", render.pk)]
    assert render.status == Status.SUBMITTED


@in_process
def test_a_flood_of_events_about_one_job_is_one_read_at_a_time(
    sandbox: Sandbox, submitted: RenderJob
) -> None:
    for number in range(20):
        assert tell(submitted.sume_job_id, f"evt_{number}") == 200
    for _ in range(20):
        engine.poll(submitted)

    assert status_reads(sandbox) == [1]
    assert WebhookEvent.objects.count() == 20
