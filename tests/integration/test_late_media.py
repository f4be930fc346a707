"""What the first tries could not store is tried again, for as long as Sume has it."""

from datetime import timedelta
from typing import Any

import pytest
from django.core.files.storage import FileSystemStorage, default_storage
from django.utils import timezone

from renders import services, transitions
from renders.conf import conf
from renders.coordination.leases import Unshared
from renders.housekeeping import removal
from renders.lifecycle import finishing, late_media
from renders.lifecycle.media_fetching import Tried
from renders.lifecycle.media_saving import save
from renders.lifecycle.steps import Step
from renders.limits import gate
from renders.media import storing
from renders.models import RenderJob
from renders.reports import attention
from renders.reports.attention import Reason
from renders.sandbox import Sandbox
from renders.schedulers import runner
from renders.signals import render_media_stored
from renders.states import RequestType
from renders.sume.clients import sume
from tests.effects.models import Effect
from tests.integration import engine
from tests.integration.test_finishing import ON_SQLITE, ended, fail  # noqa: F401 (a fixture)

EXPIRED = ["unauthorized", "forbidden", "not_found"]


class Full(FileSystemStorage):
    """A full disk, as long as it is."""

    is_full = True

    def _save(self, name: str, content: Any) -> str:
        if Full.is_full:
            raise OSError(28, "No space left on device", "/secret/place")
        return str(super()._save(name, content))


@pytest.fixture
def linked(ended: RenderJob, settings: Any, monkeypatch: Any) -> RenderJob:  # noqa: F811
    """Ten minutes of a full disk: it is handled with Sume's link alone, and the disk is freed."""
    monkeypatch.setattr(Full, "is_full", True)
    storages = {**settings.STORAGES, "default": {"BACKEND": f"{__name__}.Full"}}
    settings.STORAGES = storages
    for _ in range(storing.TRIES):
        engine.finish(ended)
        engine.make_due(ended)
    engine.finish(ended)
    assert ended.handled_at
    assert "file" not in ended.artifacts[0]
    monkeypatch.setattr(Full, "is_full", False)
    return ended


def late(render: RenderJob, seconds: float = 0.0) -> list[Step]:
    """The late try, its time come; the row is refreshed."""
    make_due(render)
    return try_now(render)


def make_due(render: RenderJob) -> None:
    RenderJob.objects.filter(pk=render.pk).update(media_due_at=timezone.now())


def try_now(render: RenderJob) -> list[Step]:
    steps = save(render.pk, sume, engine.media_leases())
    render.refresh_from_db()
    return steps


def signals(render: RenderJob) -> list[str]:
    return [effect.signal for effect in Effect.objects.filter(render_id=render.pk)]


def what(render: RenderJob) -> list[str]:
    return [event.what for event in render.events.all()]


def results_read(sandbox: Sandbox, render: RenderJob) -> int:
    return [read.what for read in sandbox.ledger.reads[render.sume_job_id]].count("result")


# --- A URL that has expired ---------------------------------------------------------------


@ON_SQLITE
@pytest.mark.parametrize("fault", EXPIRED)
def test_a_url_that_expired_before_the_download_is_replaced_by_a_fresh_one_and_costs_no_try(
    ended: RenderJob,  # noqa: F811
    sandbox: Sandbox,
    fault: str,
) -> None:
    sandbox.faults.add(fault, on="media")

    assert engine.finish(ended) == []

    [artifact] = ended.artifacts
    assert default_storage.exists(artifact["file"])
    assert "failures" not in artifact
    assert results_read(sandbox, ended) == 2
    assert "media postponed" not in what(ended)


@ON_SQLITE
def test_a_fresh_url_that_fails_as_well_is_one_failed_try(
    ended: RenderJob,  # noqa: F811
    sandbox: Sandbox,
) -> None:
    sandbox.faults.add("forbidden", on="media", times=2)

    [step] = engine.finish(ended)

    assert step.do == "media" and step.after > 0
    assert ended.artifacts[0]["failures"] == 1
    assert results_read(sandbox, ended) == 2


@ON_SQLITE
def test_a_fresh_url_is_read_only_if_reads_may_be_sent(
    ended: RenderJob,  # noqa: F811
    sandbox: Sandbox,
) -> None:
    finishing.finish(ended.pk, sume, engine.leases())
    sandbox.faults.add("forbidden", on="media")
    gate.pause("default", RequestType.READS, media_error())

    [step] = engine.save_media(ended)

    assert step.do == "media" and step.after > 0
    assert ended.artifacts[0]["failures"] == 1
    assert results_read(sandbox, ended) == 1


def media_error() -> Any:
    from renders.exceptions import BackOff

    return BackOff("Wait.", code="rate_limit_exceeded", status=429, retry_after=60)


# --- Late tries ---------------------------------------------------------------------------


def test_freeing_the_disk_fetches_the_picture_and_tells_it_once(linked: RenderJob) -> None:
    assert signals(linked) == ["completed"]
    wait = (linked.media_due_at - timezone.now()).total_seconds()  # type: ignore[operator]
    assert 7 * 60 < wait <= 15 * 60
    assert attention.reason(linked) == Reason.UNSTORED

    assert late(linked) == [Step("media", linked.pk)]
    assert default_storage.exists(linked.artifacts[0]["file"])
    assert signals(linked) == ["completed"]
    assert try_now(linked) == []

    assert signals(linked) == ["completed", "media stored"]
    assert linked.media_due_at is None and linked.taken_at is None
    assert what(linked)[-1] == "media stored"
    assert attention.reason(linked) == ""
    assert try_now(linked) == []
    assert not services.store_media(linked)
    assert signals(linked) == ["completed", "media stored"]


@ON_SQLITE
def test_a_late_try_is_made_in_its_time_by_the_sweep_or_by_runrenders(
    linked: RenderJob, settings: Any
) -> None:
    step = Step("media", linked.pk)
    assert try_now(linked) == []
    assert ("media", linked.pk) not in engine.swept()
    assert runner.find() == []

    make_due(linked)
    assert engine.swept() == [("media", linked.pk)]
    assert engine.swept() == []  # its message is under way

    RenderJob.objects.update(swept_at=None)
    settings.RENDERS = {**settings.RENDERS, "SCHEDULER": "database"}
    assert engine.swept() == []
    assert runner.find(saves=0) == []
    assert runner.find() == [step]
    assert runner.find() == []
    assert save(linked.pk, sume, Unshared()) == [step]


@ON_SQLITE
def test_late_tries_wait_longer_and_longer_up_to_a_day(linked: RenderJob, monkeypatch: Any) -> None:
    monkeypatch.setattr(Full, "is_full", True)
    monkeypatch.setattr("random.uniform", lambda low, high: high)
    waits = []
    for _ in range(9):
        assert late(linked) == []
        waits.append((linked.media_due_at - timezone.now()).total_seconds() / 60)  # type: ignore[operator]

    assert [round(wait) for wait in waits] == [30, 60, 120, 240, 480, 960, 1440, 1440, 1440]
    assert linked.artifacts[0]["failures"] == storing.TRIES + 9
    assert linked.handled_at
    detail = linked.events.filter(what="media postponed").last()
    assert (
        detail
        and "(OSError: No space left on device)" in detail.detail
        and "/secret" not in detail.detail
    )


@ON_SQLITE
def test_of_several_artifacts_each_has_its_late_try_before_any_has_two(
    linked: RenderJob, monkeypatch: Any
) -> None:
    [artifact] = linked.artifacts
    result = {"artifacts": [dict(artifact), dict(artifact), dict(artifact)]}
    RenderJob.objects.filter(pk=linked.pk).update(result=result)
    step = Step("media", linked.pk)
    assert late(linked) == [step]
    monkeypatch.setattr(Full, "is_full", True)
    assert try_now(linked) == [step]
    assert try_now(linked) == []

    assert ["file" in one for one in linked.artifacts] == [True, False, False]
    assert [one.get("failures") for one in linked.artifacts] == [5, 6, 6]
    assert signals(linked) == ["completed"]

    monkeypatch.setattr(Full, "is_full", False)
    assert late(linked) == [step]
    assert try_now(linked) == [step]
    assert try_now(linked) == []
    assert signals(linked) == ["completed", "media stored"]


@ON_SQLITE
@pytest.mark.parametrize("status", [404, 410])
def test_when_sume_no_longer_has_the_result_the_tries_end_and_that_is_said(
    linked: RenderJob, sandbox: Sandbox, monkeypatch: Any, status: int
) -> None:
    from renders.exceptions import NotFound, NotReady

    kind = NotReady if status == 404 else NotFound
    error = kind("Gone.", code="gone", status=status)

    def gone(*args: Any) -> Any:
        raise error

    monkeypatch.setattr(late_media, "read_result", gone)
    late(linked)
    assert "media lost" not in what(linked)  # it may not be known everywhere just now
    since = linked.not_found_since
    wait = (linked.media_due_at - timezone.now()).total_seconds()  # type: ignore[operator]
    assert since and 0 < wait <= conf.NOT_FOUND_GRACE_SECONDS
    assert "begun" not in linked.artifacts[0]

    later = since - timedelta(seconds=conf.NOT_FOUND_GRACE_SECONDS)
    month = timezone.now() - timedelta(days=30)
    RenderJob.objects.update(not_found_since=later, finished_at=month)
    linked.events.filter(what="media not stored").update(at=month)
    urls = [artifact["url"] for artifact in linked.artifacts]
    tried: list[list[str]] = []

    def dead(render: RenderJob, index: int, links: list[str]) -> Tried:
        tried.append(links)
        return Tried(words="Its server answered with status 404.")

    monkeypatch.setattr(late_media, "attempt_at", dead)
    assert late(linked) == []

    assert tried == [urls]  # the known link may outlive the result
    assert what(linked)[-1] == "media lost"
    assert linked.media_due_at is None
    assert attention.reason(linked) == Reason.UNSTORED
    assert engine.swept() == []
    assert signals(linked) == ["completed"]


@ON_SQLITE
def test_one_404_before_a_result_is_forgotten(linked: RenderJob, sandbox: Sandbox) -> None:
    sandbox.faults.add("result_not_ready", on="result", argument=404)
    late(linked)
    assert linked.not_found_since

    assert late(linked) == [Step("media", linked.pk)]
    assert linked.not_found_since is None


@ON_SQLITE
@pytest.mark.parametrize("fault", ["server_error", "html", "reset_before"])
def test_a_result_that_cannot_be_read_is_read_again_later(
    linked: RenderJob, sandbox: Sandbox, fault: str
) -> None:
    sandbox.faults.add(fault, on="result")
    assert late(linked) == []
    assert linked.media_due_at > timezone.now() + timedelta(minutes=10)  # type: ignore[operator]
    assert linked.artifacts[0]["failures"] == storing.TRIES + 1

    assert late(linked) == [Step("media", linked.pk)]


@ON_SQLITE
def test_while_reads_are_paused_nothing_late_is_begun_and_no_try_is_used(
    linked: RenderJob, sandbox: Sandbox
) -> None:
    gate.pause("default", RequestType.READS, media_error())
    before = results_read(sandbox, linked)
    make_due(linked)
    assert engine.swept() == []

    assert try_now(linked) == []

    wait = (linked.media_due_at - timezone.now()).total_seconds()  # type: ignore[operator]
    assert 50 < wait <= 61
    assert linked.artifacts[0]["failures"] == storing.TRIES
    assert results_read(sandbox, linked) == before


@ON_SQLITE
def test_without_save_media_nothing_late_is_tried(linked: RenderJob, settings: Any) -> None:
    settings.RENDERS = {**settings.RENDERS, "SAVE_MEDIA": "0"}
    make_due(linked)

    assert engine.swept() == []
    assert runner.find() == []
    assert try_now(linked) == []
    assert "file" not in linked.artifacts[0]
    assert not services.store_media(linked)
    assert attention.reason(linked) == Reason.UNSTORED  # for a week, as it is only linked


@ON_SQLITE
@pytest.mark.parametrize("name", ["removing_at", "erased_at", "media_removed_at"])
def test_what_was_taken_away_is_never_fetched_again(
    linked: RenderJob, sandbox: Sandbox, name: str
) -> None:
    make_due(linked)
    RenderJob.objects.filter(pk=linked.pk).update(**{name: timezone.now()})
    before = results_read(sandbox, linked)

    assert engine.swept() == []
    assert runner.find() == []
    assert try_now(linked) == []
    assert not services.store_media(linked)
    assert results_read(sandbox, linked) == before


@ON_SQLITE
def test_files_are_not_deleted_under_a_late_try_and_a_deleted_render_is_due_no_more(
    linked: RenderJob, monkeypatch: Any
) -> None:
    seen = []
    store = storing.save

    def look(*args: Any) -> storing.Saved:
        seen.append(removal.clear([linked.pk]).pks)
        return store(*args)

    monkeypatch.setattr(storing, "save", look)
    late(linked)

    assert seen == [[]]
    assert removal.clear([linked.pk]).pks == [linked.pk]
    linked.refresh_from_db()
    assert linked.media_due_at is None
    assert linked.artifacts == []
    assert not default_storage.exists(f"renders/{linked.pk}")


@ON_SQLITE
def test_a_receiver_that_raises_is_called_again_and_all_others_with_it(
    linked: RenderJob, caplog: Any
) -> None:
    late(linked)
    render_media_stored.connect(fail)
    try:
        [step] = try_now(linked)
    finally:
        render_media_stored.disconnect(fail)
    assert step.do == "media" and step.after > 0
    assert signals(linked) == ["completed"]
    assert linked.failed_reads == 1
    assert "RuntimeError" in linked.events.last().detail  # type: ignore[union-attr]

    assert late(linked) == []
    assert signals(linked) == ["completed", "media stored"]
    assert linked.failed_reads == 0


@ON_SQLITE
def test_of_two_late_tries_at_once_one_is_made(
    linked: RenderJob, monkeypatch: Any, sandbox: Sandbox
) -> None:
    """Without leases, as with `runrenders`."""
    store = storing.save
    others = []

    def meanwhile(*args: Any) -> storing.Saved:
        monkeypatch.setattr(storing, "save", store)
        others.append(save(linked.pk, sume, Unshared()))
        return store(*args)

    monkeypatch.setattr(storing, "save", meanwhile)
    make_due(linked)

    assert save(linked.pk, sume, Unshared()) == [Step("media", linked.pk)]
    assert others == [[]]


@ON_SQLITE
def test_what_kills_each_worker_that_tries_late_waits_longer_too(
    linked: RenderJob, monkeypatch: Any
) -> None:
    [artifact] = linked.artifacts
    result = {"artifacts": [{**artifact, "begun": storing.TRIES}]}
    RenderJob.objects.filter(pk=linked.pk).update(result=result)

    assert late(linked) == []

    assert linked.artifacts[0]["failures"] == storing.TRIES + 1
    assert "begun" not in linked.artifacts[0]
    assert linked.media_due_at > timezone.now() + timedelta(minutes=10)  # type: ignore[operator]


# --- A person asks ------------------------------------------------------------------------


@ON_SQLITE
def test_a_render_of_an_earlier_release_is_left_alone_until_a_person_asks(
    linked: RenderJob, django_capture_on_commit_callbacks: Any
) -> None:
    RenderJob.objects.filter(pk=linked.pk).update(media_due_at=None)
    linked.refresh_from_db()
    assert try_now(linked) == []
    assert engine.swept() == []

    assert services.store_media(linked)

    assert what(linked)[-1] == "media asked for"
    assert try_now(linked) == [Step("media", linked.pk)]
    try_now(linked)
    assert signals(linked) == ["completed", "media stored"]


@ON_SQLITE
def test_asked_again_the_waits_start_again_and_a_try_under_way_is_not_disturbed(
    linked: RenderJob, monkeypatch: Any
) -> None:
    monkeypatch.setattr(Full, "is_full", True)
    for _ in range(4):
        late(linked)
    assert services.store_media(linked)
    assert linked.artifacts[0]["failures"] == storing.TRIES
    asked = []
    store = storing.save

    def meanwhile(*args: Any) -> storing.Saved:
        asked.append(services.store_media(RenderJob.objects.get(pk=linked.pk)))
        return store(*args)

    monkeypatch.setattr(storing, "save", meanwhile)
    assert try_now(linked) == []
    assert asked == [False]
    assert linked.media_due_at < timezone.now() + timedelta(minutes=31)  # type: ignore[operator]


# --- Very many ----------------------------------------------------------------------------


@ON_SQLITE
def test_of_more_than_a_hundred_artifacts_the_first_are_stored_and_that_is_said_once(
    ended: RenderJob,  # noqa: F811
    monkeypatch: Any,
) -> None:
    real = sume("default").result(ended.sume_job_id)
    many = [*real.artifacts * storing.MOST, {"url": "https://a.example/last", "type": "image"}]

    class Many:
        def result(self, job_id: str) -> Any:
            return type(real)(artifacts=many, cost_usd_micros=1)

    for _ in range(2):
        finishing.finish(ended.pk, engine.clients_of(Many), engine.leases())
    ended.refresh_from_db()
    assert len(ended.artifacts) == storing.MOST + 1
    [line] = ended.events.filter(what="media limited")
    assert "101" in line.detail and "100" in line.detail

    stored = [{**one, "file": "x"} for one in ended.artifacts[: storing.MOST]]
    assert storing.lacking([*stored, ended.artifacts[-1]]) is None
    assert storing.missing([*stored, ended.artifacts[-1]]) is None
    transitions.store(ended.pk, result={"artifacts": [*stored, ended.artifacts[-1]]})
    assert engine.finish(ended) == []
    assert ended.handled_at and ended.media_due_at is None
