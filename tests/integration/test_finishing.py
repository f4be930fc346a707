"""What follows the end of a render, against real servers."""

import hashlib
import threading
from datetime import timedelta
from typing import Any

import pytest
from django.core.files.base import ContentFile
from django.core.files.storage import FileSystemStorage, default_storage
from django.db import connection
from django.utils import timezone

from renders import services, transitions
from renders.coordination.connections import redis_client
from renders.lifecycle import finishing
from renders.lifecycle.steps import Step
from renders.limits import gate
from renders.media import storing
from renders.models import RenderJob
from renders.sandbox import Sandbox
from renders.signals import render_completed
from renders.sume.clients import sume
from tests.effects.models import Effect
from tests.integration import engine

# What follows is the same everywhere.
ON_SQLITE = pytest.mark.parametrize("database", ["sqlite"], indirect=True)


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
    with default_storage.open(artifact["file"]) as file:
        data = file.read()
    assert artifact["sha256"] == hashlib.sha256(data).hexdigest()
    assert artifact["bytes"] == len(data)
    assert default_storage.exists(artifact["thumbnail"])
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
        engine.finish(RenderJob.objects.get(pk=ended.pk))
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
    gate.resume("default")
    assert engine.finish(ended) == []
    assert ended.handled_at
    assert effects() == 1


def test_two_failed_tries_at_once_are_followed_by_one(ended: RenderJob) -> None:
    """The count of failures fences, as the poll sequence does for reads."""
    later = timezone.now()
    assert transitions.postpone_finish(ended.pk, 0, later, "first")
    assert not transitions.postpone_finish(ended.pk, 0, later, "second")


def test_a_picture_that_cannot_be_had_does_not_hold_the_signal_for_ever(
    ended: RenderJob, sandbox: Sandbox
) -> None:
    sandbox.faults.add("server_error", on="media", argument=500, times=storing.TRIES)
    for _ in range(storing.TRIES - 1):
        [step] = engine.finish(ended)
        assert step.do == "media"
        assert ended.handled_at is None
        assert effects() == 0
        engine.make_due(ended)
    assert engine.finish(ended) == []
    assert ended.handled_at
    assert "file" not in ended.artifacts[0]
    assert effects() == 1


class BrokenStorage(FileSystemStorage):
    """Fails in a way that no storage should."""

    def _save(self, name: str, content: Any) -> str:
        raise RuntimeError("this storage fails")


@ON_SQLITE
def test_a_storage_that_fails_in_any_way_uses_up_the_tries_of_the_media(
    ended: RenderJob, settings: Any, caplog: Any
) -> None:
    broken = {"BACKEND": f"{__name__}.BrokenStorage"}
    settings.STORAGES = {**settings.STORAGES, "default": broken}
    for _ in range(storing.TRIES - 1):
        assert [step.do for step in engine.finish(ended)] == ["media"]
        engine.make_due(ended)
    assert engine.finish(ended) == []
    assert ended.handled_at
    assert effects() == 1
    assert ended.events.filter(what="media not stored").get().detail.endswith("(RuntimeError).")


@ON_SQLITE
def test_a_receiver_that_fails_leaves_the_media_all_their_tries_and_the_other_way_round(
    ended: RenderJob, sandbox: Sandbox
) -> None:
    sandbox.faults.add("server_error", on="result", argument=500, times=2)
    sandbox.faults.add("server_error", on="media", argument=500, times=storing.TRIES - 1)
    for _ in range(2 + storing.TRIES - 1):
        [step] = engine.finish(ended)
        engine.make_due(ended)
    assert ended.failed_reads == 0
    assert ended.artifacts[0]["failures"] == storing.TRIES - 1
    render_completed.connect(fail)
    try:
        [step] = engine.finish(ended)
    finally:
        render_completed.disconnect(fail)
    assert step.do == "finish"
    assert ended.failed_reads == 1
    assert ended.artifacts[0]["file"]
    assert engine.finish(ended) == []
    assert effects() == 1


@ON_SQLITE
def test_a_try_that_waits_for_its_time_is_not_made_before(
    ended: RenderJob, sandbox: Sandbox
) -> None:
    """A message too many uses up no try."""
    sandbox.faults.add("server_error", on="media", argument=500)
    engine.finish(ended)
    RenderJob.objects.filter(pk=ended.pk).update(next_poll_at=timezone.now() + timedelta(minutes=1))
    assert engine.finish(ended) == []
    assert engine.save_media(ended) == []
    assert ended.artifacts[0]["failures"] == 1
    assert ended.handled_at is None


@ON_SQLITE
def test_of_several_artifacts_each_is_kept_at_once_and_one_that_fails_holds_up_no_other(
    ended: RenderJob, sandbox: Sandbox
) -> None:
    finishing.finish(ended.pk, sume, engine.leases())
    ended.refresh_from_db()
    [artifact] = ended.artifacts
    transitions.store(ended.pk, result={"artifacts": [artifact, artifact]})
    sandbox.faults.add("server_error", on="media", argument=500)

    [step] = engine.save_media(ended)
    assert (step.do, step.after) == ("media", 0)
    [step] = engine.save_media(ended)
    assert step.do == "media" and step.after > 0
    assert ["file" in artifact for artifact in ended.artifacts] == [False, True]
    engine.make_due(ended)
    assert [step.do for step in engine.save_media(ended)] == ["finish"]
    assert engine.save_media(ended) == [Step("finish", ended.pk)]
    assert all(artifact["file"] for artifact in ended.artifacts)


def test_of_two_workers_that_store_at_once_the_first_counts_and_no_file_is_left_over(
    ended: RenderJob, monkeypatch: Any
) -> None:
    """The second had lost its lease; a storage may give it a name of its own."""
    finishing.finish(ended.pk, sume, engine.leases())
    save = storing.save
    saved: list[str] = []

    def stalled(*args: Any) -> storing.Saved:
        monkeypatch.setattr(storing, "save", save)
        redis_client().flushall()
        engine.make_due(ended)
        assert [step.do for step in engine.save_media(ended)] == ["finish"]
        theirs = save(*args)
        name = default_storage.save(theirs.facts["file"], ContentFile(b"theirs"))
        saved.append(name)
        return storing.Saved(theirs.facts | {"file": name}, theirs.names | {name})

    monkeypatch.setattr(storing, "save", stalled)
    assert engine.save_media(ended) == []

    [artifact] = ended.artifacts
    assert artifact["file"] not in saved
    assert default_storage.exists(artifact["file"])
    assert default_storage.exists(artifact["thumbnail"])
    assert not default_storage.exists(saved[0])


def fail(**kwargs: Any) -> None:
    raise RuntimeError("not today")


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
    transitions.end(render.pk, 0, timezone.now(), "failed", sume_status="failed")
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
