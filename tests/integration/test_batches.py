"""Many rows at once while others are at them: each once, and nobody waits for ever."""

import random
import threading
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth import get_user_model
from django.db import connection, transaction
from django.utils import timezone

from renders import services, transitions
from renders.coordination.connections import redis_client
from renders.lifecycle import cancellation, claims, polling
from renders.lifecycle.steps import Step
from renders.models import RenderEvent, RenderJob
from renders.sandbox import Sandbox
from renders.services import bulk, drafts
from renders.services.import_files import Layout
from renders.states import Status
from renders.sume.clients import sume
from renders.sume.replies import JobStatus, SumeFault
from tests.effects.models import Effect
from tests.integration import engine

pytestmark = pytest.mark.usefixtures("database", "redis", "sandbox")
RENDERS = RenderJob.objects


@pytest.fixture(autouse=True)
def quiet(monkeypatch: Any) -> list[Step]:
    steps: list[Step] = []
    monkeypatch.setattr("renders.schedulers.dispatch.follow", steps.extend)
    monkeypatch.setattr(bulk, "BATCH", 20)
    return steps


def make(count: int) -> list[RenderJob]:
    return services.create_renders([{"prompt": f"fox {number}"} for number in range(count)])


def at_once(*calls: Callable[[], Any]) -> list[Any]:
    results: list[Any] = []
    barrier = threading.Barrier(len(calls))

    def work(call: Callable[[], Any]) -> None:
        barrier.wait(10)
        try:
            results.append(call())
        except Exception as error:  # noqa: BLE001 (shown by the assertion)
            results.append(error)
        finally:
            connection.close()

    threads = [threading.Thread(target=work, args=[call]) for call in calls]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return results


def test_of_callers_at_once_one_moves_each_row() -> None:
    make(100)
    tallies = at_once(*[lambda: bulk.cancel_renders(RENDERS.all()).done] * 4)
    assert sum(tallies) == 100
    assert RENDERS.filter(status=Status.CANCELED).count() == 100
    assert RenderEvent.objects.filter(what="canceled").count() == 100


def test_of_callers_at_once_one_retries_each_row() -> None:
    make(60)
    bulk.cancel_renders(RENDERS.all())
    tallies = at_once(*[lambda: bulk.retry_renders(RENDERS.all(), None).done] * 3)
    assert sum(tallies) == 60
    assert RENDERS.filter(retry_of__isnull=False).values("retry_of").distinct().count() == 60
    assert RENDERS.count() == 120


def test_what_is_claimed_meanwhile_is_either_sent_or_held_or_canceled() -> None:
    """Whatever the order, no row is both: held ones are pending, and claims never wait."""
    renders = make(120)

    def claim() -> int:
        order = random.Random(7).sample(renders, 60)
        return sum(len(claims.claim(render.pk, 2).renders) for render in order)

    def others() -> int:
        """Rows in another order, as the sweep and a person's resume take them."""
        for _ in range(20):
            transitions.mark_swept([render.pk for render in renders[::-1]], timezone.now())
            transitions.recall("default")
        return 0

    results = at_once(
        claim,
        others,
        lambda: bulk.hold_renders(RENDERS.all()).done,
        lambda: bulk.cancel_renders(RENDERS.all()).done,
        lambda: bulk.release_renders(RENDERS.all()).done,
    )
    assert [result for result in results if isinstance(result, Exception)] == []
    assert not RENDERS.exclude(status=Status.PENDING).filter(held_at__isnull=False).exists()
    for render in RENDERS.prefetch_related("events"):
        whats = [event.what for event in render.events.all()]
        assert whats.count("canceled") == (render.status == Status.CANCELED)
        assert whats.count("sending") == (render.status == Status.SUBMITTING)
        assert whats.count("held") - whats.count("released") in {0, 1}


def test_a_row_that_somebody_holds_is_waited_for_alone() -> None:
    if connection.vendor != "postgresql":
        pytest.skip("SQLite has one writer.")
    first, *others = make(30)
    held, done = threading.Event(), threading.Event()

    def hold() -> None:
        with transaction.atomic():
            RENDERS.select_for_update().get(pk=first.pk)
            held.set()
            done.wait(10)

    def let_go() -> int:
        held.wait(10)
        timer = threading.Timer(0.2, done.set)
        timer.start()
        return bulk.cancel_renders(RENDERS.all()).done

    assert set(at_once(hold, let_go)) == {None, 30}
    assert others


def test_many_canceled_ones_are_finished_by_a_few_chains(quiet: list[Step]) -> None:
    make(40)
    quiet.clear()
    bulk.cancel_renders(RENDERS.all())
    assert len(quiet) == services.STARTERS
    chains = [[step] for step in quiet]
    while any(chains):
        for chain in chains:
            if chain:
                step = chain.pop()
                chain += engine.finish(RENDERS.get(pk=step.render_id))
    assert not RENDERS.unhandled().exists()
    assert Effect.objects.count() == 40


def test_what_a_broken_chain_leaves_the_sweep_finds(settings: Any) -> None:
    make(5)
    bulk.cancel_renders(RENDERS.all())  # and all messages are lost
    long_ago = timezone.now() - timedelta(minutes=5)
    RENDERS.update(next_poll_at=long_ago)
    assert [do for do, _ in engine.swept()] == ["finish"] * 5


def test_held_renders_are_sent_by_nobody_and_wake_no_sweep() -> None:
    renders = make(3)
    bulk.hold_renders(RENDERS.all())
    long_ago = timezone.now() - timedelta(days=30)
    RENDERS.update(created_at=long_ago)
    assert claims.claim(renders[0].pk).renders == []
    assert claims.next_in_line("default") == []
    assert engine.swept() == []
    assert RENDERS.filter(status=Status.PENDING).count() == 3
    bulk.release_renders(RENDERS.all())
    assert engine.swept() != []
    assert RENDERS.filter(status=Status.FAILED).count() == 0
    assert len(claims.claim(renders[0].pk, 3).renders) == 3


def test_cancels_beyond_the_minute_are_asked_at_later_reads(
    sandbox: Sandbox, settings: Any, quiet: list[Step]
) -> None:
    renders = make(4)
    for render in renders:
        engine.submit(render)
    settings.RENDERS = {**settings.RENDERS, "WRITES_PER_MINUTE": 6}
    quiet.clear()
    bulk.cancel_renders(RENDERS.all())
    assert [step.do for step in quiet] == ["cancel"] * 2
    for step in quiet:
        cancellation.cancel(step.render_id, sume)
    left = RENDERS.filter(status=Status.SUBMITTED, cancel_answered_at=None).pks(9)
    assert len(left) == 2
    # The minute is full: the next reads send no message, later ones do.
    assert [step.do for pk in left for step in read(pk)] == ["poll"] * 2
    RenderEvent.objects.all().delete()  # the minute is over
    assert [step.do for pk in left for step in read(pk)] == ["poll", "cancel"] * 2


def read(pk: Any) -> list[Step]:
    """A read that finds the job queued still."""

    class Client:
        def status(self, job_id: str) -> JobStatus:
            return JobStatus("queued", None, False, 0.5, SumeFault(), None)

    client = engine.clients_of(Client)
    redis_client().flushall()
    engine.make_due(RENDERS.get(pk=pk))
    return polling.poll(pk, None, client, engine.leases())


def test_of_clicks_at_once_one_adds_the_list() -> None:
    user = get_user_model().objects.create(username="ada")
    common = {"kind": "image", "model": "sume/auto", "priority": 0, "params": {}}
    text = "\n".join(f"fox {number}" for number in range(30))
    draft = drafts.keep(user, "t" * 24, text, Layout.LINES, common)
    assert draft
    added = at_once(*[lambda: drafts.add(draft, user)[1]] * 4)
    assert sorted(added) == [False, False, False, True]
    assert RENDERS.count() == 30
