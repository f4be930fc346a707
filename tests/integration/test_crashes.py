"""Workers are killed, messages repeat, servers go away: one bill, one chain, one handling."""

import socket
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from celery import Celery
from django.conf import settings
from django.core.files.storage import default_storage
from django.utils import timezone

from renders import services, tasks
from renders.coordination.connections import redis_client
from renders.models import RenderJob
from renders.schedulers import dispatch
from tests.integration.stack import Stack


def age(**fields: float) -> None:
    """Let that many seconds pass for the sweep, without waiting for them."""
    for name, seconds in fields.items():
        for render in RenderJob.objects.exclude(**{name: None}):
            moved = getattr(render, name) - timedelta(seconds=seconds)
            RenderJob.objects.filter(pk=render.pk).update(**{name: moved})


def all_sent() -> bool:
    """Whether Sume has every render; on a slow machine the first have ended by then."""
    return not RenderJob.objects.filter(status__in=["pending", "submitting"]).exists()


def test_a_worker_killed_in_mid_post_leaves_one_bill_and_one_job(stack: Stack) -> None:
    stack.sandbox.faults.add("slow", on="submit", argument=5)
    worker = stack.worker()
    [render] = stack.create("a red fox")
    stack.until(lambda: stack.sandbox.ledger.bills)  # Sume has taken it, the reply is on its way
    stack.kill(worker)
    assert RenderJob.objects.get(pk=render.pk).status == "submitting"

    stack.worker()
    age(claimed_at=60)
    stack.until_handled()

    render.refresh_from_db()
    assert render.status == "completed"
    assert render.idempotency_hit
    assert stack.sandbox.ledger.posts[render.idempotency_key] == 2
    assert len(stack.sandbox.ledger.bills) == 1


def test_a_worker_killed_with_polls_waiting_strands_none(stack: Stack) -> None:
    worker = stack.worker()
    renders = stack.create(*(f"fox {number}" for number in range(12)))
    stack.until(all_sent, child=worker)
    stack.kill(worker)

    stack.worker()
    stack.until_handled()

    assert RenderJob.objects.filter(status="completed").count() == len(renders)
    assert len(stack.sandbox.ledger.bills) == len(renders)


def test_redis_emptied_midway_leaves_one_chain_and_one_bill(stack: Stack) -> None:
    worker = stack.worker()
    renders = stack.create(*(f"fox {number}" for number in range(6)))
    stack.until(all_sent, child=worker)
    redis_client().flushall()

    stack.until_handled()

    assert RenderJob.objects.filter(status="completed").count() == len(renders)
    for render in RenderJob.objects.all():
        reads = stack.sandbox.ledger.reads[render.sume_job_id]
        statuses = [read.at for read in reads if read.what == "status"]
        assert len(statuses) == render.poll_count


def test_a_poll_message_delivered_twice_at_once_is_read_once(stack: Stack) -> None:
    worker = stack.worker()
    [render] = stack.create("a red fox")
    stack.until(all_sent, child=worker)
    for _ in range(10):
        tasks.poll_render.delay(str(render.pk))

    stack.until_handled()  # a copy may hold the lease just when the finish comes

    render.refresh_from_db()
    reads = stack.sandbox.ledger.reads[render.sume_job_id]
    assert [read.what for read in reads].count("status") == render.poll_count


def test_a_submit_message_delivered_twice_at_once_is_sent_once(stack: Stack) -> None:
    [render] = stack.create("a red fox")
    for _ in range(10):
        tasks.submit_render.delay(str(render.pk))
    stack.worker()

    stack.until_handled(sweeping=False)

    assert stack.sandbox.ledger.posts == {render.idempotency_key: 1}


def test_a_render_made_while_the_broker_is_down_ends_later(stack: Stack) -> None:
    stack.redis.halt()
    started = timezone.now()
    [render] = stack.create("a red fox")
    assert (timezone.now() - started).total_seconds() < 5
    render.refresh_from_db()
    assert render.status == "pending"
    stack.redis.start()

    stack.worker()
    age(created_at=60)
    stack.until_handled()

    render.refresh_from_db()
    assert render.status == "completed"


@pytest.mark.parametrize("database", ["sqlite"], indirect=True)
def test_a_slow_download_holds_up_no_other_render_and_survives_its_worker(stack: Stack) -> None:
    stack.environment["RENDERS_MEDIA_TIMEOUT_SECONDS"] = "60"
    stack.sandbox.faults.add("slow", on="media", argument=60)
    worker = stack.worker("-Q", "celery,renders.submit,renders.poll,renders.finish")
    media_worker = stack.worker("-Q", "renders.media", "-c1")
    [slow] = stack.create("a red fox")
    job = partial(RenderJob.objects.get, pk=slow.pk)
    asked = stack.sandbox.ledger
    stack.until(
        lambda: "media" in [read.what for read in asked.reads.get(job().sume_job_id, [])],
        child=media_worker,
    )

    [other] = stack.create("FAIL on purpose")
    stack.until(lambda: RenderJob.objects.get(pk=other.pk).handled_at, child=worker)
    assert job().status == "completed"
    assert job().handled_at is None

    stack.kill(media_worker)
    stack.worker("-Q", "renders.media", "-c1")
    redis_client().delete(f"sume:media:{slow.pk}")  # as if its time were over
    age(next_poll_at=120)
    stack.until_handled()

    [artifact] = job().artifacts
    stored = default_storage.listdir(f"renders/{slow.pk}")[1]
    assert sorted(stored) == sorted(Path(artifact[name]).name for name in ("file", "thumbnail"))


def test_a_worker_killed_while_receivers_run_has_their_effect_once(stack: Stack) -> None:
    worker = stack.worker()
    [render] = stack.create("[slow] receivers")
    stack.until(stack.marker.exists, child=worker)  # the effect is written, not committed
    stack.kill(worker)
    render.refresh_from_db()
    assert render.status == "completed"
    assert render.handled_at is None

    stack.worker()
    age(next_poll_at=120)
    stack.until_handled()

    render.refresh_from_db()
    assert render.handled_at  # that the effect is there once, `assert_sound` looks after each test


def test_a_receiver_that_raises_is_called_again_and_changes_no_status(stack: Stack) -> None:
    worker = stack.worker()
    [render] = stack.create("[raise] once")
    stack.until(lambda: worker.has_written("A receiver failed"), child=worker)
    render.refresh_from_db()
    assert render.status == "completed"
    stack.marker.touch()

    stack.until_handled()


def test_beat_and_worker_alone_repair_what_a_killed_worker_left(stack: Stack) -> None:
    worker = stack.worker()
    stack.create(*(f"fox {number}" for number in range(4)))
    stack.until(all_sent, child=worker)
    stack.kill(worker)
    stack.run("beat", "-m", "celery", "-A", "project", "beat", "-s", f"{stack.marker}-beat")

    stack.worker()
    stack.until_handled(sweeping=False)


def test_a_sent_render_is_canceled_only_as_sume_says(stack: Stack) -> None:
    worker = stack.worker()
    # Four are made at once; the others wait at Sume and can still be canceled.
    renders = stack.create(*(f"fox {number}" for number in range(8)))
    stack.until(all_sent, child=worker)
    for render in renders:
        services.cancel_render(render)

    stack.until_handled(sweeping=False)

    refunded = {refund.job_id for refund in stack.sandbox.ledger.refunds}
    for render in RenderJob.objects.all():
        assert (render.status == "canceled") == (render.sume_job_id in refunded)
        assert render.cancel_answered_at or render.status == "completed"


def test_a_broker_that_accepts_and_never_answers_does_not_hang_who_creates(
    stack: Stack, monkeypatch: Any, caplog: Any
) -> None:
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        url = f"redis://127.0.0.1:{silent.getsockname()[1]}/0"
        app = Celery("silent", broker=url, set_as_current=False)
        app.conf.broker_transport_options = {
            **settings.CELERY_BROKER_TRANSPORT_OPTIONS,
            "socket_timeout": 0.3,
        }
        app.conf.task_publish_retry_policy = settings.CELERY_TASK_PUBLISH_RETRY_POLICY

        def submit_render(render_id: str) -> None: ...

        silent_task = app.task(submit_render, shared=False)
        monkeypatch.setattr(dispatch, "task", lambda name: silent_task)
        [render] = stack.create("a red fox")

    assert "waits for the sweep" in caplog.text
    monkeypatch.undo()
    assert RenderJob.objects.get(pk=render.pk).status == "pending"
    stack.worker()
    age(created_at=60)
    stack.until_handled()
