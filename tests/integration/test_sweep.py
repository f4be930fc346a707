"""The sweep puts back what stopped at each arrow, and nothing else."""

from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from renders import services
from renders.exceptions import BackOff, Paused
from renders.housekeeping import pruning
from renders.limits import gate
from renders.models import RenderJob, WebhookEvent
from renders.sandbox import Sandbox
from renders.states import RequestType
from tests.integration import engine

pytestmark = pytest.mark.usefixtures("database", "redis", "sandbox")
AGO = timedelta(seconds=60)


def change(render: RenderJob, **fields: Any) -> None:
    RenderJob.objects.filter(pk=render.pk).update(**fields)
    render.refresh_from_db()


@pytest.fixture
def render(sandbox: Sandbox) -> RenderJob:
    return services.create_render("a red fox")


def test_what_moves_is_left_alone(render: RenderJob) -> None:
    assert engine.swept() == []
    engine.submit(render)
    assert engine.swept() == []


def test_a_pending_render_whose_message_was_lost_is_submitted(render: RenderJob) -> None:
    change(render, created_at=timezone.now() - AGO)
    assert engine.swept() == [("submit", render.pk)]


def test_a_render_is_put_back_once_in_the_time_that_a_step_may_take(render: RenderJob) -> None:
    engine.submit(render)
    change(render, next_poll_at=timezone.now() - AGO)
    engine.swept()
    assert engine.swept() == []
    change(render, swept_at=timezone.now() - AGO)
    assert engine.swept() == [("poll", render.pk)]


def test_a_pending_render_waits_for_its_time(render: RenderJob) -> None:
    change(render, created_at=timezone.now() - AGO, not_before=timezone.now() + AGO)
    assert engine.swept() == []


def test_a_closed_gate_keeps_pending_renders_where_they_are(render: RenderJob) -> None:
    change(render, created_at=timezone.now() - AGO)
    gate.pause("default", RequestType.WRITES, BackOff("wait", code="rate_limit_exceeded"), 10)
    assert engine.swept() == []


def test_a_render_whose_worker_died_while_sending_is_sent_again_with_the_same_key(
    render: RenderJob, sandbox: Sandbox
) -> None:
    sandbox.faults.add("reset_after", on="submit")
    engine.submit(render)  # Sume has it, and nobody here knows
    change(render, status="submitting", claimed_at=timezone.now() - AGO, not_before=None)
    assert engine.swept() == [("submit", render.pk)]
    render.refresh_from_db()
    assert render.status == "pending"
    assert render.outcome_unknown_at
    engine.submit(render)
    assert render.status == "submitted"
    assert render.idempotency_hit
    assert len(sandbox.ledger.bills) == 1


def test_an_overdue_poll_starts_a_new_chain(render: RenderJob, sandbox: Sandbox) -> None:
    sandbox.faults.add("job_takes", on="submit", argument=600)
    engine.submit(render)
    change(render, next_poll_at=timezone.now() - AGO)
    assert engine.swept() == [("poll", render.pk)]
    [step] = engine.poll(render)
    assert step.do == "poll"
    assert engine.swept() == []


def test_while_reads_pause_none_is_put_back(render: RenderJob) -> None:
    engine.submit(render)
    engine.make_due(render)
    engine.age_rows(100)
    gate.pause("default", RequestType.READS, Paused("No.", code="unauthorized"), 60)
    assert engine.swept() == []
    gate.resume("default")
    assert engine.swept() == [("poll", render.pk)]


def test_an_ended_render_that_nobody_finished_is_finished(render: RenderJob) -> None:
    services.cancel_render(render)
    assert engine.swept() == []
    change(render, next_poll_at=timezone.now() - AGO)
    assert engine.swept() == [("finish", render.pk)]
    engine.finish(render)
    assert render.handled_at
    assert engine.swept() == []


def test_one_sweep_puts_back_a_bounded_number(render: RenderJob, settings: Any) -> None:
    settings.RENDERS = {**settings.RENDERS, "SWEEP_BATCH": 3}
    for number in range(5):
        engine.submit(services.create_render(f"fox {number}"))
    engine.submit(render)
    RenderJob.objects.update(next_poll_at=timezone.now() - AGO)
    assert len(engine.swept()) == 3
    assert len(engine.swept()) == 3
    assert engine.swept() == []


def test_however_many_wait_to_be_sent_one_message_starts_them(render: RenderJob) -> None:
    services.create_renders([{"prompt": f"fox {number}"} for number in range(5)])
    RenderJob.objects.update(created_at=timezone.now() - AGO)
    assert len(engine.swept()) == 1


def test_events_of_long_ago_are_forgotten(settings: Any) -> None:
    settings.RENDERS = {**settings.RENDERS, "SWEEP_BATCH": 2}
    for days in (1, 31, 32, 33):
        received = timezone.now() - timedelta(days=days)
        WebhookEvent.objects.create(event_id=f"evt_{days}", received_at=received)
    pruning.prune()
    assert set(WebhookEvent.objects.values_list("event_id", flat=True)) == {"evt_1", "evt_31"}
