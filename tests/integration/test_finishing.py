"""What follows the end of a render, against real servers."""

import threading
from typing import Any

import pytest
from django.core.files.storage import default_storage
from django.db import connection
from django.utils import timezone

from renders import finishing, gate, services
from renders.connections import sume
from renders.models import RenderJob
from renders.sandbox import Sandbox
from renders.signals import render_completed
from tests.effects.models import Effect
from tests.integration import engine


@pytest.fixture
def ended(database: str, redis: Any, sandbox: Sandbox, settings: Any, tmp_path: Any) -> RenderJob:
    """A render that has just been completed and is not finished."""
    settings.MEDIA_ROOT = tmp_path / "media"
    render = services.create_render("a red fox")
    engine.submit(render)
    token = None
    tick = threading.Event()
    while not render.is_terminal:
        engine.make_due(render)
        [step] = engine.poll(render, token)
        token = step.token
        tick.wait(0.1)
    return render


def effects() -> int:
    return Effect.objects.count()


def test_a_completed_render_gets_its_result_its_picture_and_its_signal(ended: RenderJob) -> None:
    assert engine.finish(ended) == []
    assert ended.handled_at
    assert ended.next_poll_at is None
    [artifact] = ended.artifacts
    assert artifact["type"] == "image"
    assert artifact["url"].startswith("http")
    assert default_storage.exists(artifact["file"])
    assert effects() == 1


def test_finishing_twice_has_one_effect(ended: RenderJob) -> None:
    engine.finish(ended)
    assert engine.finish(ended) == []
    assert effects() == 1


def test_two_workers_that_finish_at_once_have_one_effect(
    ended: RenderJob, sandbox: Sandbox
) -> None:
    sandbox.faults.add("slow", on="result", argument=0.2)

    def work() -> None:
        finishing.finish(ended.pk, sume(), engine.leases())
        connection.close()

    threads = [threading.Thread(target=work) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert effects() == 1
    reads = sandbox.ledger.reads[ended.sume_job_id]
    assert [read.what for read in reads].count("result") == 1


@pytest.mark.parametrize(
    ("fault", "argument"),
    [
        ("result_not_ready", 404),
        ("result_not_ready", 409),
        ("server_error", 500),
        ("reset_before", None),
        ("html", None),
        ("unauthorized", None),
    ],
)
def test_a_result_that_cannot_be_read_yet_is_read_later(
    ended: RenderJob, sandbox: Sandbox, fault: str, argument: Any
) -> None:
    sandbox.faults.add(fault, on="result", argument=argument)
    [step] = engine.finish(ended)
    assert step.do == "finish"
    assert step.after > 0
    assert ended.handled_at is None
    assert effects() == 0
    gate.resume()
    assert engine.finish(ended) == []
    assert ended.handled_at
    assert effects() == 1


def test_two_failed_tries_at_once_are_followed_by_one(ended: RenderJob) -> None:
    """The count of failures fences, as the poll sequence does for reads."""
    later = timezone.now()
    assert RenderJob.objects.postpone_finish(ended.pk, 0, later, "first")
    assert not RenderJob.objects.postpone_finish(ended.pk, 0, later, "second")


def test_a_picture_that_cannot_be_had_does_not_hold_the_signal_for_ever(
    ended: RenderJob, sandbox: Sandbox
) -> None:
    sandbox.faults.add("server_error", on="media", argument=500, times=finishing.MEDIA_TRIES)
    for _ in range(finishing.MEDIA_TRIES - 1):
        [step] = engine.finish(ended)
        assert step.do == "finish"
        assert ended.handled_at is None
    assert engine.finish(ended) == []
    assert ended.handled_at
    assert "file" not in ended.artifacts[0]
    assert effects() == 1


def test_without_save_media_only_the_link_is_kept(
    ended: RenderJob, settings: Any, sandbox: Sandbox
) -> None:
    settings.RENDERS = {**settings.RENDERS, "SAVE_MEDIA": "0"}
    engine.finish(ended)
    assert "file" not in ended.artifacts[0]
    assert "media" not in [read.what for read in sandbox.ledger.reads[ended.sume_job_id]]


def test_a_raising_receiver_undoes_the_effects_of_all_and_is_called_again(
    ended: RenderJob, caplog: Any
) -> None:
    def fail(**kwargs: Any) -> None:
        raise RuntimeError("not today")

    render_completed.connect(fail)
    try:
        [step] = engine.finish(ended)
    finally:
        render_completed.disconnect(fail)
    assert step.do == "finish"
    assert ended.status == "completed"
    assert ended.handled_at is None
    assert effects() == 0
    assert "RuntimeError" in ended.events.last().detail

    engine.finish(ended)
    assert ended.handled_at
    assert effects() == 1


def test_a_failed_render_without_a_reason_gets_it_from_the_record(
    ended: RenderJob, sandbox: Sandbox
) -> None:
    render = services.create_render("FAIL on purpose")
    engine.submit(render)
    RenderJob.objects.end(render.pk, 0, timezone.now(), "failed", sume_status="failed")
    tick = threading.Event()
    while not sandbox.ledger.refunds:
        tick.wait(0.05)
    sandbox.faults.add("not_found", on="record")
    [again] = engine.finish(render)  # it may not be known everywhere yet
    assert again.do == "finish"
    assert not render.handled_at
    engine.finish(render)
    assert render.error_code == "generation_failed"
    assert render.error_message
    assert render.handled_at
