"""One submit against a real Redis, a real database and the sandbox."""

import threading
from datetime import timedelta
from typing import Any

import pytest
from django.db import connection
from django.utils import timezone

from renders import services, transitions
from renders.lifecycle import submission
from renders.lifecycle.steps import Step
from renders.limits import gate
from renders.models import RenderJob
from renders.sandbox import Sandbox
from renders.states import RequestType
from renders.sume.clients import sume
from tests.integration import engine

pytestmark = pytest.mark.usefixtures("database", "redis")


@pytest.fixture
def pending(sandbox: Sandbox) -> RenderJob:
    return services.create_render("a red fox", params={"seed": 7, "ratio": 1.0})


def make_free(render: RenderJob) -> None:
    """Let the wait after a refusal be over, for the row and for the gate."""
    gate.resume("default")
    RenderJob.objects.filter(pk=render.pk).update(not_before=None)


def test_an_accepted_render_is_polled_next(pending: RenderJob, sandbox: Sandbox) -> None:
    [step] = engine.submit(pending)
    assert step == Step("poll", pending.pk, after=0.5)
    assert pending.status == "submitted"
    assert pending.sume_job_id == sandbox.ledger.bills[0].job_id
    assert sandbox.ledger.bills[0].idempotency_key == f"render-job-{pending.pk}"


@pytest.mark.parametrize(
    ("fault", "argument", "billed"),
    [
        ("reset_before", None, 0),
        ("reset_after", None, 1),
        ("server_error", 500, 0),
        ("server_error", 408, 0),
        ("gateway_timeout", 504, 1),
        ("slow", 3, 1),
        ("trickle", 3, 1),
        ("cut_short", None, 1),
        ("html", None, 1),
        ("no_job_id", None, 1),
        ("idempotency_in_progress", None, 0),
    ],
)
def test_an_unknown_outcome_is_sent_again_unchanged_and_billed_once(
    pending: RenderJob, sandbox: Sandbox, fault: str, argument: Any, billed: int
) -> None:
    sandbox.faults.add(fault, on="submit", argument=argument)
    [again] = engine.submit(pending)
    assert again.do == "submit"
    assert again.after > 0
    assert pending.status == "pending"
    assert pending.outcome_unknown_at
    body = pending.request_body
    assert len(sandbox.ledger.bills) == billed

    make_free(pending)
    engine.submit(pending)
    assert pending.status == "submitted"
    assert pending.idempotency_hit == bool(billed)
    assert pending.request_body == body
    assert len(sandbox.ledger.bills) == 1
    assert not sandbox.ledger.reserialized
    assert not sandbox.ledger.body_conflicts


@pytest.mark.parametrize(
    ("fault", "code"),
    [
        ("rate_limited", "rate_limit_exceeded"),
        ("queue_full", "queue_full"),
        ("unavailable", None),
        ("unauthorized", None),
        ("forbidden", None),
        ("insufficient_credits", "insufficient_credits"),
    ],
)
def test_a_refusal_that_concerns_everybody_pauses_all_and_fails_nobody(
    pending: RenderJob, sandbox: Sandbox, fault: str, code: str | None
) -> None:
    other = services.create_render("another")
    sandbox.faults.add(fault, on="submit")
    [starts_other, again, after_the_pause] = engine.submit(pending)
    assert starts_other == Step("submit", other.pk)
    assert again.render_id == pending.pk
    assert after_the_pause.render_id == other.pk
    assert again.after > after_the_pause.after > 0
    assert pending.status == "pending"
    # A server that fails may have taken it before: only Sume's own refusal is certain.
    assert (pending.outcome_unknown_at is None) == (fault != "unavailable")
    assert code is None or pending.error_code == code
    assert gate.closed("default", RequestType.WRITES, timezone.now())
    assert engine.submit(other) == []
    assert other.submit_attempts == 0

    make_free(pending)
    for render in (other, pending):  # after a refusal, another one tries first
        engine.submit(render)
    assert pending.status == "submitted"
    assert pending.error_code == ""


def test_a_refused_request_fails_with_sumes_words(sandbox: Sandbox) -> None:
    render = services.create_render("REJECT this")
    [step] = engine.submit(render)
    assert step.do == "finish"
    assert render.status == "failed"
    assert render.error_code
    assert render.error_message


def test_two_workers_send_one_render_once(pending: RenderJob, sandbox: Sandbox) -> None:
    sandbox.faults.add("slow", on="submit", argument=0.3)
    followed: list[list[Step]] = []

    def work() -> None:
        followed.append(submission.submit(pending.pk, sume))
        connection.close()

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sum(map(len, followed)) == 1
    assert sandbox.ledger.posts[pending.idempotency_key] == 1


def test_a_late_answer_is_welcome_after_the_row_was_taken_back(
    pending: RenderJob, sandbox: Sandbox
) -> None:
    """A slow worker is taken for dead; its answer comes all the same, and ends the matter."""
    sandbox.faults.add("slow", on="submit", argument=0.5)
    followed: list[list[Step]] = []

    def slow_worker() -> None:
        followed.append(submission.submit(pending.pk, sume))
        connection.close()

    worker = threading.Thread(target=slow_worker)
    worker.start()
    tick = threading.Event()
    while not sandbox.ledger.posts:
        tick.wait(0.01)
    later = timezone.now() + timedelta(seconds=10)
    assert transitions.reap(pending.pk, later, 4)
    worker.join()
    assert [step.do for step in followed[0]] == ["poll"]
    pending.refresh_from_db()
    assert pending.status == "submitted"
    assert engine.submit(pending) == []
    assert len(sandbox.ledger.bills) == 1


def test_a_late_refusal_does_not_undo_a_later_claim(pending: RenderJob, sandbox: Sandbox) -> None:
    first = timezone.now()
    assert transitions.claim(pending.pk, first, "default")
    later = first + timedelta(seconds=10)
    assert transitions.reap(pending.pk, later, 4)
    assert transitions.claim(pending.pk, later, "default")
    assert not transitions.refuse(pending.pk, first, later, code="x", message="late")
    assert not transitions.release(pending.pk, first, not_before=later, code="x", message="late")
    pending.refresh_from_db()
    assert pending.status == "submitting"


def test_a_render_that_sume_may_hold_is_not_canceled_behind_its_back(
    pending: RenderJob, sandbox: Sandbox
) -> None:
    sandbox.faults.add("reset_after", on="submit")
    engine.submit(pending)
    services.cancel_render(pending)
    assert pending.status == "pending"
    assert pending.cancel_requested_at

    make_free(pending)
    steps = engine.submit(pending)
    assert [step.do for step in steps] == ["poll", "cancel"]
    assert pending.status == "submitted"


def test_a_raising_receiver_of_render_submitted_changes_nothing(
    pending: RenderJob, sandbox: Sandbox, caplog: Any
) -> None:
    from renders.signals import render_submitted

    def fail(**kwargs: Any) -> None:
        raise RuntimeError("no")

    render_submitted.connect(fail)
    try:
        [step] = engine.submit(pending)
    finally:
        render_submitted.disconnect(fail)
    assert step.do == "poll"
    assert pending.status == "submitted"
