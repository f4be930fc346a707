"""One hop of the poll chain against a real Redis, a real database and the sandbox."""

import threading
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest
from django.db import connection
from django.utils import timezone

from renders import services
from renders.coordination.connections import redis_client
from renders.coordination.leases import Leases
from renders.demo.embedded_redis import EmbeddedRedis
from renders.lifecycle.steps import Step
from renders.models import RenderJob
from renders.sandbox import Sandbox
from tests.integration import engine

pytestmark = pytest.mark.usefixtures("database")


# No test is so slow that the job has ended meanwhile.
LONG_SECONDS = 600


@pytest.fixture
def submitted(redis: EmbeddedRedis, sandbox: Sandbox) -> Iterator[RenderJob]:
    """A render that Sume has for long, with its first read due now."""
    sandbox.faults.add("job_takes", on="submit", argument=LONG_SECONDS)
    yield sent()
    assert len(sandbox.ledger.bills) == 1


def sent() -> RenderJob:
    render = services.create_render("a red fox")
    engine.submit(render)
    engine.make_due(render)
    return render


def reads(sandbox: Sandbox) -> int:
    """How often any job's status was read."""
    return sum(read.what == "status" for reads in sandbox.ledger.reads.values() for read in reads)


def test_a_read_that_finds_the_job_running_is_followed_by_one_at_the_time_sume_names(
    submitted: RenderJob, sandbox: Sandbox
) -> None:
    [step] = engine.poll(submitted)
    assert step.do == "poll"
    assert step.token
    assert step.after == pytest.approx(0.5)
    assert submitted.poll_count == 1
    assert submitted.status == "submitted"


def test_a_duplicate_with_a_spent_token_reads_nothing(
    submitted: RenderJob, sandbox: Sandbox
) -> None:
    [step] = engine.poll(submitted)
    engine.make_due(submitted)
    [_next] = engine.poll(submitted, step.token)
    before = reads(sandbox)
    assert engine.poll(submitted, step.token) == []
    assert engine.poll(submitted) == []  # the lease is held for the waiting hop
    assert reads(sandbox) == before


def test_a_message_delivered_twice_at_once_makes_one_read(
    submitted: RenderJob, sandbox: Sandbox
) -> None:
    [step] = engine.poll(submitted)
    engine.make_due(submitted)
    sandbox.faults.add("slow", on="status", argument=0.3)
    before = reads(sandbox)
    followed: list[list[Step]] = []

    def deliver() -> None:
        followed.append(engine.poll(RenderJob.objects.get(pk=submitted.pk), step.token))
        connection.close()

    threads = [threading.Thread(target=deliver) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert reads(sandbox) == before + 1
    assert sum(len(steps) for steps in followed) == 1


def test_with_redis_emptied_between_two_copies_one_chain_goes_on(
    submitted: RenderJob, sandbox: Sandbox
) -> None:
    """Both copies read, since no lease keeps them apart; the database lets one go on."""
    sandbox.faults.add("slow", on="status", argument=0.4, times=2)
    followed: list[list[Step]] = []

    def deliver() -> None:
        followed.append(engine.poll(RenderJob.objects.get(pk=submitted.pk)))
        connection.close()

    first = threading.Thread(target=deliver)
    first.start()
    deadline = threading.Event()
    while not redis_client().keys("sume:poll:*"):
        deadline.wait(0.01)
    redis_client().flushall()
    deliver()
    first.join()

    steps = [step for steps in followed for step in steps]
    assert [step.do for step in steps] == ["poll"]
    submitted.refresh_from_db()
    assert submitted.poll_count == 1


def test_a_hop_that_comes_early_waits_for_its_time_and_reads_nothing(
    submitted: RenderJob, sandbox: Sandbox
) -> None:
    [step] = engine.poll(submitted)
    redis_client().flushall()
    before = reads(sandbox)
    [again] = engine.poll(submitted, step.token)
    assert reads(sandbox) == before
    assert again.do == "poll"
    assert 0 < again.after <= step.after


def test_without_redis_a_render_is_read_all_the_same(
    submitted: RenderJob, sandbox: Sandbox, redis: EmbeddedRedis, caplog: Any
) -> None:
    redis.halt()
    try:
        [step] = engine.poll(submitted)
    finally:
        redis.start()
    assert step.token is None
    assert "goes on without a lease" in caplog.text


@pytest.mark.parametrize(
    ("fault", "argument"),
    [
        ("reset_before", None),
        ("server_error", 500),
        ("html", None),
        ("cut_short", None),
        ("unauthorized", None),
        ("rate_limited", 1),
        ("unavailable", 1),
        ("not_found", None),
        ("slow", 3),
        ("trickle", 3),
    ],
)
def test_a_read_that_fails_never_ends_the_chain(
    submitted: RenderJob, sandbox: Sandbox, fault: str, argument: Any
) -> None:
    sandbox.faults.add(fault, on="status", argument=argument)
    [step] = engine.poll(submitted)
    assert step.do == "poll"
    assert 0.2 <= step.after <= 5
    assert submitted.status == "submitted"
    assert submitted.failed_reads == 1
    engine.make_due(submitted)
    [step] = engine.poll(submitted, step.token)
    assert submitted.failed_reads == 0


@pytest.mark.parametrize(
    "odd", ["missing", "string", "negative", "zero", "nan", "huge", "bool", "list", "null"]
)
def test_an_odd_delay_is_clamped(submitted: RenderJob, sandbox: Sandbox, odd: str) -> None:
    sandbox.faults.add("odd_poll", on="status", argument=odd)
    [step] = engine.poll(submitted)
    expected = {"zero": 0.2, "huge": 5}.get(odd, 0.5)
    assert step.after == pytest.approx(expected)


def test_a_job_that_sume_no_longer_knows_fails_after_a_grace(
    submitted: RenderJob, sandbox: Sandbox, settings: Any
) -> None:
    sandbox.faults.add("not_found", on="status", times=2)
    [step] = engine.poll(submitted)
    settings.RENDERS = {**settings.RENDERS, "NOT_FOUND_GRACE_SECONDS": 0}
    engine.make_due(submitted)
    [step] = engine.poll(submitted, step.token)
    assert step.do == "finish"
    assert (submitted.status, submitted.error_code) == ("failed", "job_not_found")
    engine.finish(submitted)
    assert submitted.handled_at
    assert len(sandbox.ledger.posts) == 1  # never sent again by itself


def test_completed_without_its_result_is_read_on(redis: EmbeddedRedis, sandbox: Sandbox) -> None:
    submitted = sent()
    sandbox.faults.add("result_late", on="status", argument=0.6)
    deadline = threading.Event()
    while sandbox.rules.finished_job(submitted.sume_job_id) is None:
        deadline.wait(0.05)
    [step] = engine.poll(submitted)
    assert step.do == "poll"
    assert submitted.status == "submitted"
    assert submitted.sume_status == "completed"
    deadline.wait(0.6)
    engine.make_due(submitted)
    [step] = engine.poll(submitted, step.token)
    assert step.do == "finish"
    assert submitted.status == "completed"


def test_a_poll_of_an_unknown_or_handled_render_stops(
    submitted: RenderJob, sandbox: Sandbox
) -> None:
    stranger = RenderJob(prompt="never stored")
    assert engine.polling.poll(stranger.pk, None, engine.sume, engine.leases()) == []
    services.transitions.end(submitted.pk, 0, timezone.now(), "canceled", sume_status="canceled")
    engine.finish(submitted)
    before = reads(sandbox)
    assert engine.poll(submitted) == []
    assert reads(sandbox) == before


def test_a_finish_that_a_copy_of_a_poll_kept_away_is_brought_back(
    submitted: RenderJob, sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    services.transitions.end(submitted.pk, 0, timezone.now(), "canceled", sume_status="canceled")
    acquire = Leases.acquire

    def meets_the_finish(self: Leases, name: str, life: float) -> str | None:
        token = acquire(self, name, life)
        monkeypatch.undo()
        assert engine.finish(submitted) == []
        return token

    monkeypatch.setattr(Leases, "acquire", meets_the_finish)
    before = reads(sandbox)
    assert engine.poll(submitted) == [Step("finish", submitted.pk)]
    assert submitted.handled_at is None
    engine.finish(submitted)
    assert submitted.handled_at
    assert reads(sandbox) == before


def test_a_finish_that_waits_for_its_time_is_left_to_it(
    submitted: RenderJob, sandbox: Sandbox
) -> None:
    services.transitions.end(submitted.pk, 0, timezone.now(), "canceled", sume_status="canceled")
    later = timezone.now() + timedelta(minutes=1)
    assert services.transitions.postpone_finish(submitted.pk, 0, later, "A receiver failed.")
    assert engine.poll(submitted) == []
