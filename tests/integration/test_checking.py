"""A read at once meets the chain of polls: one chain lives on, and no wish is lost."""

import threading
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest
from django.db import connection
from django.utils import timezone

from renders import services, transitions
from renders.coordination.connections import redis_client
from renders.demo.embedded_redis import EmbeddedRedis
from renders.lifecycle import read_now
from renders.lifecycle.steps import Step
from renders.models import RenderJob
from renders.sandbox import Sandbox
from tests.integration import engine

pytestmark = pytest.mark.usefixtures("database")


@pytest.fixture
def waiting(redis: EmbeddedRedis, sandbox: Sandbox, settings: Any) -> Iterator[RenderJob]:
    """A render whose chain waits for its next read, a long time from now."""
    settings.RENDERS = {**settings.RENDERS, "DEFAULT_POLL_SECONDS": 60, "MAX_POLL_SECONDS": 60}
    sandbox.faults.add("odd_poll", on="status", times=None)  # names no wait
    sandbox.faults.add("job_takes", on="submit", argument=600)  # no test is so slow
    render = services.create_render("a red fox")
    engine.submit(render)
    yield render
    assert len(sandbox.ledger.bills) == 1


def read(render: RenderJob, token: str | None = None) -> Step:
    """One read that is due; the step that follows."""
    engine.make_due(render)
    [step] = engine.poll(render, token)
    rest(render)
    return step


def rest(render: RenderJob) -> None:
    """Let the last read be longer ago than the shortest wait."""
    RenderJob.objects.update(last_polled_at=timezone.now() - timedelta(seconds=1))
    render.refresh_from_db()


def reads(sandbox: Sandbox) -> int:
    return sum(read.what == "status" for reads in sandbox.ledger.reads.values() for read in reads)


def ask(render: RenderJob) -> list[Step]:
    return read_now.ask([render.pk])[1]


def test_a_chain_that_waits_is_overtaken_and_its_message_reads_nothing(
    waiting: RenderJob, sandbox: Sandbox
) -> None:
    old = read(waiting)
    assert old.after == 60
    before = reads(sandbox)

    [at_once] = ask(waiting)
    [new] = engine.poll(waiting, at_once.token)

    assert (at_once.after, at_once.token) == (0, None)
    assert reads(sandbox) == before + 1
    assert waiting.asked_at is None
    engine.make_due(waiting)
    assert engine.poll(waiting, old.token) == []
    assert engine.poll(waiting) == []  # nor does a message that comes again
    assert reads(sandbox) == before + 1
    assert read(waiting, new.token).token


def test_before_the_first_read_the_message_that_waits_for_it_stops_as_well(
    waiting: RenderJob, sandbox: Sandbox
) -> None:
    [at_once] = ask(waiting)
    [step] = engine.poll(waiting, at_once.token)
    assert engine.poll(waiting) == []  # the one that followed the submit
    assert reads(sandbox) == 1
    assert step.token


def test_a_read_under_way_is_left_alone_and_is_followed_by_another_a_moment_later(
    waiting: RenderJob, sandbox: Sandbox
) -> None:
    """It began before somebody asked, so its answer may be older than what they know."""
    token = read(waiting).token
    engine.make_due(waiting)
    sandbox.faults.clear()
    sandbox.faults.add("slow", on="status", argument=0.4)
    before = reads(sandbox)
    followed: list[Step] = []

    def deliver() -> None:
        followed.extend(engine.poll(RenderJob.objects.get(pk=waiting.pk), token))
        connection.close()

    reader = threading.Thread(target=deliver)
    reader.start()
    pause = threading.Event()
    while reads(sandbox) == before:
        pause.wait(0.01)
    assert services.check_now([waiting.pk]) == 1
    [again] = engine.poll(waiting)  # a message of somebody who asked
    reader.join()

    assert again == Step("poll", waiting.pk, 0.2)
    [step] = followed
    waiting.refresh_from_db()
    assert reads(sandbox) == before + 1
    assert step.after == 0.2
    assert waiting.asked_at
    engine.make_due(waiting)
    [_next] = engine.poll(waiting, step.token)
    assert waiting.asked_at is None
    assert engine.poll(waiting, again.token) == []
    assert reads(sandbox) == before + 2


def test_a_read_that_was_written_down_but_not_handed_on_is_waited_for(
    waiting: RenderJob, sandbox: Sandbox
) -> None:
    """Somebody asks between the two: their message comes back until the lease is free to take."""
    leases = engine.leases()
    name = str(waiting.pk)
    reading = leases.acquire(name, 60)
    assert reading
    transitions.record_read(
        waiting.pk, 0, timezone.now(), next_poll_at=timezone.now() + timedelta(seconds=60)
    )
    rest(waiting)

    [at_once] = ask(waiting)
    [again] = engine.poll(waiting, at_once.token)
    assert again == Step("poll", waiting.pk, 0.2)
    assert reads(sandbox) == 0

    leases.hand_on(name, reading, 120)
    engine.poll(waiting, again.token)
    assert reads(sandbox) == 1


def test_asked_for_just_after_a_read_it_comes_when_the_shortest_wait_is_over(
    waiting: RenderJob, sandbox: Sandbox
) -> None:
    engine.make_due(waiting)
    engine.poll(waiting)
    [step] = ask(waiting)
    assert step.after == 0.2
    [still] = engine.poll(waiting, step.token)  # come too early
    assert reads(sandbox) == 1
    assert 0 < still.after <= 0.2
    engine.make_due(waiting)
    engine.poll(waiting, still.token)
    assert reads(sandbox) == 2


def test_a_read_that_fails_is_not_the_one_that_was_asked_for(
    waiting: RenderJob, sandbox: Sandbox
) -> None:
    read(waiting)
    sandbox.faults.clear()
    sandbox.faults.add("server_error", on="status")
    [at_once] = ask(waiting)
    [step] = engine.poll(waiting, at_once.token)
    assert waiting.asked_at
    read(waiting, step.token)
    assert waiting.asked_at is None


def test_a_message_that_is_lost_is_made_good_by_the_sweep_though_a_chain_holds_the_lease(
    waiting: RenderJob, sandbox: Sandbox
) -> None:
    old = read(waiting)
    ask(waiting)  # and the web server dies before the message is out
    engine.age_rows(10)
    before = reads(sandbox)

    assert engine.swept() == [("poll", waiting.pk)]
    assert redis_client().pttl(f"sume:poll:{waiting.pk}") > 30_000
    [_step] = engine.poll(waiting)
    assert reads(sandbox) == before + 1
    assert engine.poll(waiting, old.token) == []


def test_without_redis_it_is_read_at_once_and_one_chain_lives_on(
    waiting: RenderJob, sandbox: Sandbox, redis: EmbeddedRedis
) -> None:
    old = read(waiting)
    before = reads(sandbox)
    redis.halt()
    try:
        [at_once] = ask(waiting)
        [new] = engine.poll(waiting, at_once.token)
        assert engine.poll(waiting, old.token) == []  # its time is no longer that of the row
    finally:
        redis.start()
    assert new.after == 60
    assert reads(sandbox) == before + 1
