"""A worker dies, or stalls, before any statement of a step: the sweep brings the render home.

The step runs in a forked child that sends itself SIGKILL before its N-th statement, so no
`finally` runs, no transaction is ended and the lease stays. What should have followed is lost
with it. Time passes by moving the rows' times and the sandbox's clock.

N runs over each statement before which something went out: a query, a commit, a Redis command,
a request, a file. Between two of these the outside cannot tell where the process died; with
`CRASH_POINTS=all` in the environment N runs over every statement all the same. On PostgreSQL,
over every third.
"""

import ast
import gc
import itertools
import os
import signal
import sys
import traceback
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from datetime import timedelta
from functools import cache, partial
from pathlib import Path
from types import FrameType
from typing import Any

import pytest
import redis.connection
import requests
import urllib3
from django.core.files.storage import FileSystemStorage, Storage
from django.db import connection
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.backends.utils import CursorWrapper
from django.db.models import Q
from django.utils import timezone

import renders
from renders import services, transitions
from renders.conf import conf
from renders.coordination.connections import redis_client
from renders.lifecycle import cancellation, finishing, media_saving, polling, submission
from renders.lifecycle.steps import Step
from renders.lifecycle.sweep import sweep
from renders.limits import gate
from renders.media import storing
from renders.media.storage import storage
from renders.models import RenderJob
from renders.sandbox import Sandbox
from renders.services import webhook_events
from renders.sume.clients import sume
from tests.effects.models import Effect
from tests.integration import engine

ROOMS = Path(renders.__file__).parent
TRACED = {
    str(path)
    for pattern in (
        "coordination/due_set.py",
        "coordination/leases.py",
        "lifecycle/*.py",
        "limits/capacity.py",
        "limits/gate.py",
        "limits/read_quota.py",
        "media/storing.py",
        "schedulers/*.py",
        "services/__init__.py",
        "services/webhook_events.py",
        "transitions/*.py",
    )
    for path in sorted(ROOMS.glob(pattern))
}
assert len(TRACED) > 30, "The rooms have moved, and nothing is traced."
# Longer than the reap age, every lease, every pause and the making of a picture.
LONG_SECONDS = 1000.0
MOST_ROUNDS = 6
# What goes out of the process, or lets something out.
OUTWARD = {
    function.__code__
    for function in (
        CursorWrapper.execute,
        BaseDatabaseWrapper._commit,  # type: ignore[attr-defined]
        redis.connection.AbstractConnection.send_packed_command,
        requests.Session.send,
        urllib3.HTTPConnectionPool.urlopen,
        Storage.save,
        FileSystemStorage.delete,
    )
}


@cache
def statements_in(path: str) -> dict[int, int]:
    """Each line's statement: the line where the innermost one starts."""
    starts = {}
    for node in ast.walk(ast.parse(Path(path).read_text("utf-8"))):  # outer ones come first
        if isinstance(node, ast.stmt):
            lines = range(node.lineno, (node.end_lineno or node.lineno) + 1)
            starts.update(dict.fromkeys(lines, node.lineno))
    return starts


class Statements:
    """Does something before the N-th statement that this thread runs in the traced modules."""

    def __init__(self, point: int, act: Callable[[], object]) -> None:
        self.count = 0
        self.points: list[int] = []
        self.place = ""
        self._went_out = True
        self._point = point
        self._act = act
        self._busy = False
        self._last: tuple[FrameType, int] | None = None

    def __enter__(self) -> "Statements":
        self._before = sys.gettrace()
        sys.settrace(self._call)
        return self

    def __exit__(self, *error: object) -> None:
        sys.settrace(self._before)
        self._last = None
        self.points.append(self.count + 1)  # at its end, before anything follows
        if os.environ.get("CRASH_POINTS") == "all":
            self.points = list(range(1, self.count + 2))

    def _call(self, frame: FrameType, event: str, argument: Any) -> Any:
        if self._busy:
            return None
        self._went_out |= frame.f_code in OUTWARD
        return self._line if frame.f_code.co_filename in TRACED else None

    def _line(self, frame: FrameType, event: str, argument: Any) -> Any:
        if event != "line" or self._busy:
            return self._line
        statement = (frame, statements_in(frame.f_code.co_filename)[frame.f_lineno])
        if statement != self._last:
            self._last = statement
            self.count += 1
            if self._went_out:
                self.points.append(self.count)
                self._went_out = False
            if self.count == self._point:
                self.place = f"{Path(frame.f_code.co_filename).name}:{frame.f_lineno}"
                self._busy = True
                self._act()
                self._busy = False
        return self._line


def in_child(work: Callable[[], int]) -> int:
    """Run `work` in a forked child and return how it ended: its number, or minus a signal."""
    connection.close()
    with warnings.catch_warnings():
        # The sandbox's threads stay behind; the child needs none of their locks.
        warnings.simplefilter("ignore", DeprecationWarning)
        child = os.fork()
    if not child:
        gc.disable()
        code = 255
        try:
            code = work()
        except BaseException:
            traceback.print_exc()
            raise
        finally:
            os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def killed_before(point: int, call: Callable[[], object]) -> None:
    """Run the call in a child that dies before that statement, or at its end."""

    def work() -> int:
        with Statements(point, lambda: os.kill(os.getpid(), signal.SIGKILL)):
            call()
        return 0

    assert in_child(work) in {0, -signal.SIGKILL}


def points_of(call: Callable[[], object]) -> list[int]:
    """The statements to die before, from a call in which nothing dies."""
    with Statements(-1, lambda: None) as statements:
        call()
    assert len(statements.points) >= 4
    return statements.points[:: step_of_points()]


def step_of_points() -> int:
    """PostgreSQL is dearer: every third."""
    return 3 if connection.vendor == "postgresql" else 1


class World:
    """The sandbox with its clock, the rows, and the messages on their way."""

    def __init__(self) -> None:
        self.now = 1_800_000_000.0
        self.sandbox = Sandbox(
            clock=lambda: self.now,
            queued_seconds=5,
            processing_seconds=5,
            poll_seconds=0.5,
            writes_per_minute=None,
            queued_limit=100_000,
            processing_limit=100_000,
        )

    def pass_time(self, seconds: float) -> None:
        """Let it be later for rows and sandbox; every lease and pause has run out by then."""
        self.now += seconds
        engine.age_rows(seconds)
        engine.age_gates(seconds)
        for key in redis_client().keys("sume:*"):
            redis_client().delete(key)

    def deliver(self, step: Step) -> list[Step]:
        """Do what a worker does with the message."""
        if step.do == "submit":
            return submission.submit(step.render_id, sume)
        if step.do == "poll":
            return polling.poll(step.render_id, step.token, sume, engine.leases())
        if step.do == "media":
            return media_saving.save(step.render_id, sume, engine.media_leases())
        if step.do == "finish":
            return finishing.finish(step.render_id, sume, engine.leases())
        return cancellation.cancel(step.render_id, sume)

    def deliver_all(self, steps: list[Step]) -> list[Step]:
        """Deliver these and what follows at once; return what follows later."""
        later: list[Step] = []
        while steps:
            now = [step for step in steps if not step.after]
            later += [step for step in steps if step.after]
            steps = [following for step in now for following in self.deliver(step)]
        chains = Counter(step.render_id for step in later if step.do == "poll")
        assert set(chains.values()) <= {1}, "two poll chains of one render live"
        return later

    def repair(self, later: list[Step]) -> None:
        """Time, the sweep and the messages, until every render is handled."""
        for _ in range(MOST_ROUNDS):
            self.pass_time(LONG_SECONDS)
            due = [Step(step.do, step.render_id, 0, step.token) for step in later]
            later = self.deliver_all(due + sweep())
            waiting = Q(handled_at__isnull=True) | Q(media_due_at__isnull=False)
            if not RenderJob.objects.filter(waiting).exists():
                return

    def fault_of(self, render: RenderJob, bills: int) -> str:
        """What is wrong with a render in the end; empty where nothing is."""
        ledger = self.sandbox.ledger
        jobs = [b.job_id for b in ledger.bills if b.idempotency_key == render.idempotency_key]
        if len(jobs) != bills:
            return f"{len(jobs)} bills instead of {bills}"
        if not render.handled_at:
            return f"not handled: {render.status}"
        effects = [effect.signal for effect in Effect.objects.filter(render_id=render.pk)]
        late = render.events.filter(what="media not stored").exists()
        if effects != [render.status, *["media stored"] * late]:
            return f"effects {effects} of a {render.status} render"
        truth = self.sandbox.rules.record(jobs[0])["job"]["status"] if jobs else ""
        if truth and render.status != truth:
            return f"{render.status} here, {truth} at Sume"
        if jobs and render.sume_job_id != jobs[0]:
            return "another job's id"
        if conf.SAVE_MEDIA and render.status == "completed" and (wrong := files_fault(render)):
            return wrong
        reads = [read for read in ledger.reads.get(render.sume_job_id, []) if read.what == "status"]
        if not 0 <= len(reads) - render.poll_count <= 1:
            return f"{len(reads)} reads, {render.poll_count} counted"
        return ""


def files_fault(render: RenderJob) -> str:
    """What is wrong with the stored files: of one that is missing, or that nobody names."""
    named = {name for artifact in render.artifacts for name in storing.names_of(artifact)}
    folder = f"renders/{render.pk}"
    there = {f"{folder}/{name}" for name in storage().listdir(folder)[1]}
    return "" if named and named == there else f"{there} stored, {named} on the row"


@pytest.fixture
def world(database: str, redis: Any, settings: Any, tmp_path: Path) -> Iterator[World]:
    settings.MEDIA_ROOT = tmp_path / "media"
    world = World()
    with world.sandbox as sandbox:
        settings.RENDERS = {**settings.RENDERS, "BASE_URL": sandbox.url}
        yield world
    assert not sandbox.ledger.body_conflicts
    assert not sandbox.ledger.reserialized
    assert not sandbox.ledger.early_reads


@dataclass(frozen=True)
class Arrow:
    """A step, from what state of the row, and what it meets."""

    do: Any
    prepare: Callable[[World, list[RenderJob]], object]
    prompt: str = "a red fox"
    fault: tuple[str, str] | None = None
    saves_media: bool = False
    bills: int = 1
    ends: str = ""


def as_created(world: World, made: list[RenderJob]) -> None:
    """As services leaves it."""


def submitted(world: World, made: list[RenderJob]) -> None:
    for render in made:
        engine.submit(render)
        engine.make_due(render)


def over(world: World, made: list[RenderJob]) -> None:
    submitted(world, made)
    world.pass_time(LONG_SECONDS)


def ended(world: World, made: list[RenderJob]) -> None:
    over(world, made)
    for render in made:
        engine.poll(render)


def fetched(world: World, made: list[RenderJob]) -> None:
    ended(world, made)
    for render in made:
        assert finishing.finish(render.pk, sume, engine.leases()) == [Step("media", render.pk)]


def linked_only(world: World, made: list[RenderJob]) -> None:
    """Handled with Sume's link; a late try is due."""
    fetched(world, made)
    world.sandbox.faults.add("server_error", on="media", times=storing.TRIES * len(made))
    for render in made:
        for _ in range(storing.TRIES):
            engine.make_due(render)
            engine.save_media(render)
        assert finishing.finish(render.pk, sume, engine.leases()) == []
    made_now = RenderJob.objects.filter(pk__in=[render.pk for render in made])
    made_now.update(media_due_at=timezone.now())


def stored_late(world: World, made: list[RenderJob]) -> None:
    """All of it is there, and nobody was told."""
    linked_only(world, made)
    for render in made:
        assert engine.save_media(render) == [Step("media", render.pk)]


def ended_without_reason(world: World, made: list[RenderJob]) -> None:
    over(world, made)
    for render in made:
        sume("default").status(render.sume_job_id)
        transitions.end(render.pk, 0, timezone.now(), "failed", sume_status="failed")


def canceled_unsent(world: World, made: list[RenderJob]) -> None:
    for render in made:
        services.cancel_render(render)


def cancel_asked(world: World, made: list[RenderJob]) -> None:
    for render in made:
        transitions.request_cancel(render.pk, timezone.now())


def submitted_and_cancel_asked(world: World, made: list[RenderJob]) -> None:
    submitted(world, made)
    cancel_asked(world, made)


ARROWS = {
    "submit accepted": Arrow("submit", as_created),
    "submit rejected": Arrow("submit", as_created, "REJECT this", bills=0, ends="failed"),
    "submit unknown": Arrow("submit", as_created, fault=("reset_after", "submit")),
    "submit put back": Arrow("submit", as_created, fault=("rate_limited", "submit")),
    "poll running": Arrow("poll", submitted),
    "poll failing": Arrow("poll", submitted, fault=("server_error", "status")),
    "poll completed": Arrow("poll", over, ends="completed"),
    "poll failed": Arrow("poll", over, "FAIL this", ends="failed"),
    "finish completed": Arrow("finish", ended, ends="completed"),
    "media": Arrow("media", fetched, saves_media=True, ends="completed"),
    "media failing": Arrow(
        "media", fetched, saves_media=True, fault=("server_error", "media"), ends="completed"
    ),
    "late media": Arrow("media", linked_only, saves_media=True, ends="completed"),
    "late media failing": Arrow(
        "media", linked_only, saves_media=True, fault=("server_error", "media"), ends="completed"
    ),
    "late media stored": Arrow("media", stored_late, saves_media=True, ends="completed"),
    "finish failed": Arrow("finish", ended_without_reason, "FAIL this", ends="failed"),
    "finish canceled unsent": Arrow("finish", canceled_unsent, bills=0, ends="canceled"),
    "cancel": Arrow("cancel", submitted_and_cancel_asked),
}


def start(world: World, arrow: Arrow, count: int, settings: Any) -> list[tuple[RenderJob, Step]]:
    """That many renders before the arrow, each with the message that a worker now gets."""
    settings.RENDERS = {**settings.RENDERS, "SAVE_MEDIA": arrow.saves_media}
    made = services.create_renders([{"prompt": arrow.prompt}] * count)
    world.sandbox.faults.clear()
    arrow.prepare(world, made)
    if arrow.fault:
        world.sandbox.faults.add(arrow.fault[0], on=arrow.fault[1], times=None)
    messages: list[tuple[RenderJob, Step]] = []
    for render in made:
        # The first poll's message holds no token, every later one does: both are tried.
        handed = arrow.do == "poll" and len(messages) % 2
        token = engine.leases().acquire(str(render.pk), 60) if handed else None
        messages.append((render, Step(arrow.do, render.pk, 0, token)))
    return messages


def assert_all_well(world: World, arrow: Arrow, points: list[tuple[int, RenderJob]]) -> None:
    faults = []
    for point, render in points:
        render.refresh_from_db()
        fault = world.fault_of(render, arrow.bills)
        if not fault and arrow.ends and render.status != arrow.ends:
            fault = f"{render.status} instead of {arrow.ends}"
        if fault:
            faults.append(f"statement {point}: {fault} {[str(e) for e in render.events.all()]}")
    assert not faults, f"{len(faults)} of {len(points)} points:\n" + "\n".join(faults)


# Its tries are many, and each writes.
DEAR = {"media failing", "late media failing"}


@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=pytest.mark.slow) if name in DEAR else name for name in ARROWS],
)
@pytest.mark.parametrize(
    "half", [0, pytest.param(1, marks=pytest.mark.slow)], ids=["even statements", "odd statements"]
)
def test_a_worker_killed_before_any_statement_costs_nothing_but_time(
    name: str, half: int, world: World, settings: Any
) -> None:
    arrow = ARROWS[name]
    [(_render, step)] = start(world, arrow, 1, settings)
    numbers = points_of(lambda: world.deliver(step))[half::2]
    points = []
    for number, (render, message) in zip(
        numbers, start(world, arrow, len(numbers), settings), strict=True
    ):
        gate.resume("default")
        killed_before(number, partial(world.deliver, message))
        points.append((number, render))
    world.sandbox.faults.clear()
    world.repair([])
    assert_all_well(world, arrow, points)


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name, arrow in ARROWS.items() if not arrow.fault])
def test_a_worker_that_stalls_before_any_statement_and_wakes_up_late_changes_nothing(
    name: str, world: World, settings: Any
) -> None:
    """It is taken for dead, others do all of its work, and then it goes on."""
    arrow = ARROWS[name]

    def others_do_it() -> None:
        # Nobody stalls that long within a transaction: the database would end it.
        if not connection.in_atomic_block:
            world.repair([])

    [(_render, spare)] = start(world, arrow, 1, settings)
    points = []
    # Each is repaired on its own, which is dear: every other one. The kills meet them all.
    for number in points_of(partial(world.deliver, spare))[::2]:
        [(render, step)] = start(world, arrow, 1, settings)
        with Statements(number, others_do_it):
            following = world.deliver(step)
        world.repair(world.deliver_all(following))
        points.append((number, render))
    assert_all_well(world, arrow, points)


def test_an_event_whose_receiver_dies_before_any_statement_is_not_lost(
    world: World, settings: Any
) -> None:
    """It is unknown, and comes again; or the sweep has its job read, past the chain that waits."""
    settings.RENDERS = {
        **settings.RENDERS,
        "PUBLIC_URL": "http://127.0.0.1:9",
        "WEBHOOK_SECRET": "a-secret-of-these-tests",
        "WEBHOOK_POLL_SECONDS": 900,
        "MAX_POLL_SECONDS": 900,
        "SAVE_MEDIA": False,
    }

    def waiting() -> RenderJob:
        render = services.create_render("a red fox")
        engine.submit(render)
        engine.make_due(render)
        [step] = engine.poll(render)
        assert (step.after, bool(step.token)) == (900, True)
        RenderJob.objects.filter(pk=render.pk).update(last_polled_at=None)
        return render

    def tell(render: RenderJob) -> bool:
        job_id = render.sume_job_id
        return webhook_events.take("default", f"evt_{job_id}", type="job.completed", job_id=job_id)

    spare = waiting()
    numbers = points_of(lambda: tell(spare))
    points = [(number, waiting()) for number in numbers]
    world.now += LONG_SECONDS  # at Sume; here the leases of the chains live on
    unknown = 0
    for number, render in points:
        killed_before(number, partial(tell, render))
        unknown += tell(render)

    engine.age_rows(conf.grace_seconds + 10)
    later = world.deliver_all(sweep())

    assert 0 < unknown < len(points)
    assert_all_well(world, ARROWS["poll completed"], [*points, (0, spare)])
    assert later == []


class CancelAskedMeanwhile:
    """Sume's client; a person asks to cancel while the request is on its way."""

    def submit(self, path: str, body: str, key: str) -> Any:
        render = RenderJob.objects.get(idempotency_key=key)
        transitions.request_cancel(render.pk, timezone.now())
        return sume("default").submit(path, body, key)


def test_a_render_canceled_while_sume_put_it_off_is_not_sent_again_by_whoever_comes_next(
    world: World, settings: Any
) -> None:
    """The worker dies between putting it back and canceling it."""
    arrow = ARROWS["submit put back"]
    client = engine.clients_of(lambda: CancelAskedMeanwhile())
    [(render, _step)] = start(world, arrow, 1, settings)
    numbers = points_of(lambda: submission.submit(render.pk, client))[::2]
    unsent = []
    for number, (render, _step) in zip(
        numbers, start(world, arrow, len(numbers), settings), strict=True
    ):
        gate.resume("default")
        killed_before(number, partial(submission.submit, render.pk, client))
        render.refresh_from_db()
        if render.cancel_requested_at and render.status in {"pending", "canceled"}:
            assert render.outcome_unknown_at is None  # so Sume certainly holds nothing
            unsent.append((number, render))
    world.sandbox.faults.clear()
    assert unsent
    world.repair([])
    assert_all_well(world, replace(arrow, bills=0, ends="canceled"), unsent)


def test_a_cancel_that_crosses_a_put_back_still_comes_before_the_next_sending(
    world: World,
) -> None:
    """`cancel_render` sees `submitting`; before it notes the wish, the row is pending again."""
    render = services.create_render("a red fox")
    now = timezone.now()
    assert transitions.claim(render.pk, now, "default")
    assert not transitions.cancel_unsent(render.pk, now)
    assert transitions.release(render.pk, now, not_before=now, code="x", message="wait")
    assert transitions.request_cancel(render.pk, now)

    world.repair([])

    render.refresh_from_db()
    assert render.status == "canceled"
    assert not world.sandbox.ledger.bills


def test_a_worker_taken_for_dead_before_the_request_was_fixed_sends_nothing(world: World) -> None:
    """One row, one body: an empty one must never go out under the row's key."""
    bodies: list[str] = []

    class Client:
        def submit(self, path: str, body: str, key: str) -> Any:
            bodies.append(body)
            return sume("default").submit(path, body, key)

    client = engine.clients_of(lambda: Client())
    fixed = False
    for number in itertools.count(1, 2 * step_of_points()):
        render = services.create_render("a red fox")

        def reap(pk: Any = render.pk) -> None:
            nonlocal fixed
            fixed = RenderJob.objects.filter(pk=pk).exclude(request_body="").exists()
            if not connection.in_atomic_block:
                transitions.reap(pk, timezone.now() + timedelta(seconds=60), 4)

        with Statements(number, reap) as statements:
            submission.submit(render.pk, client)
        assert all(bodies), f"an empty request was sent; taken for dead at {statements.place}"
        if fixed:
            break
        assert statements.place, "the request was never fixed"
