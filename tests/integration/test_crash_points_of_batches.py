"""A process that reads many at once, or does all by the table, dies before any statement.

As in `test_crash_points`, whose tools these are. A batch holds two renders, so that it can die
between them; each point has a batch of its own, and the leases of the dead outlast the others.
"""

import time
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

from renders import services
from renders.coordination.connections import poll_leases, polls
from renders.lifecycle.steps import Step
from renders.lifecycle.sweep import sweep
from renders.limits import gate
from renders.models import RenderJob
from renders.schedulers import due_set_upkeep, ticks
from renders.schedulers import runner as table_runner
from renders.schedulers.queues import SetQueue, TableQueue
from renders.schedulers.reader import Reader
from renders.schedulers.runner import Runner
from renders.sume.clients import sume
from tests.integration import test_crash_points as points
from tests.integration.test_crash_points import ARROWS, MOST_ROUNDS, Arrow, World, killed_before

pytestmark = pytest.mark.slow
world = points.world

IN_A_BATCH = 2
READS = {
    "running": ("poll running", None),
    "failing": ("poll failing", None),
    "completed": ("poll completed", "completed"),
    "failed": ("poll failed", "failed"),
}


def read(queue: Callable[[], Any]) -> list[Step]:
    """Whatever is due, once, as `pollrenders` and `runrenders` do; returns what follows."""
    steps: list[Step] = []
    reader = Reader(queue(), sume, slots=10, follow=steps.extend)
    reader.turn(0.0)
    while reader.busy:
        reader.turn(5.0, take=False)
    reader.finish(time.monotonic() + 5)
    return steps


def read_from_set(number: int) -> list[Step]:
    return read(lambda: SetQueue(polls(), poll_leases()))


def read_from_table(number: int) -> list[Step]:
    return read(TableQueue)


def tick(number: int) -> list[Step]:
    """Each has a chain of its own: the dead one's lease outlasts the test."""
    steps: list[Step] = []
    ticks.tick(f"{number}", None, steps.extend, lambda chain, after, token: None)
    return steps


WAYS = {
    "set": ("sortedset", read_from_set),
    "tick": ("sortedset", tick),
    "table": ("database", read_from_table),
}


@pytest.fixture
def slow_clocks(settings: Any) -> None:
    """No lease of a dead reader runs out meanwhile, and no job is read twice in one tick."""
    settings.RENDERS = {
        **settings.RENDERS,
        "LEASE_MARGIN_SECONDS": 300,
        "MIN_POLL_SECONDS": 60,
        "MAX_POLL_SECONDS": 60,
        "SAVE_MEDIA": False,
    }


def batch(world: World, arrow: Arrow, scheduler: str) -> list[RenderJob]:
    """Renders whose read is due, in the set too where there is one."""
    world.sandbox.faults.clear()
    made = services.create_renders([{"prompt": arrow.prompt}] * IN_A_BATCH)
    points.submitted(world, made)
    if arrow.prepare is points.over:
        world.now += points.LONG_SECONDS  # at Sume; here the leases of the dead live on
    if arrow.fault:
        world.sandbox.faults.add(arrow.fault[0], on=arrow.fault[1], times=None)
    if scheduler == "sortedset":
        polls().add({render.pk: time.time() for render in made})
    return made


def mend(world: World, scheduler: str, way: Callable[[int], list[Step]]) -> None:
    """Time passes, Redis is emptied, sweeps come, and whoever reads in this mode."""
    world.sandbox.faults.clear()
    gate.resume("default")
    for number in range(MOST_ROUNDS):
        world.pass_time(points.LONG_SECONDS)
        steps = sweep()
        if scheduler == "sortedset":
            polls().add({step.render_id: time.time() for step in steps if step.do == "poll"})
            due_set_upkeep.keep(polls())
        else:
            steps += table_runner.find()
        steps = [step for step in steps if step.do != "poll"]
        world.deliver_all([Step(s.do, s.render_id) for s in [*steps, *way(-1 - number)]])
        if not RenderJob.objects.filter(handled_at__isnull=True).exists():
            return


@pytest.mark.usefixtures("slow_clocks")
@pytest.mark.parametrize("name", READS)
@pytest.mark.parametrize(
    "kind",
    [pytest.param(kind, marks=pytest.mark.thorough) if kind == "tick" else kind for kind in WAYS],
)
def test_a_reader_of_many_killed_before_any_statement_costs_nothing_but_time(
    kind: str, name: str, world: World, settings: Any
) -> None:
    scheduler, way = WAYS[kind]
    settings.RENDERS = {**settings.RENDERS, "SCHEDULER": scheduler}
    arrow_name, ends = READS[name]
    arrow = ARROWS[arrow_name]
    spare = batch(world, arrow, scheduler)
    numbers = points.points_of(lambda: way(0))[::2]
    died = [(0, render) for render in spare]
    for number in numbers:
        made = batch(world, arrow, scheduler)
        gate.resume("default")
        killed_before(number, partial(way, number))
        died += [(number, render) for render in made]

    mend(world, scheduler, way)

    points.assert_all_well(world, arrow, died)
    assert {render.status for _, render in died} <= {ends or "completed", "failed"}
    if scheduler == "sortedset":
        assert world.sandbox.ledger.bills
        read_from_set(0)  # what has ended leaves the set
        assert len(polls()) == 0


STEPS = ["submit accepted", "submit unknown", "finish completed", "media", "cancel"]


@pytest.mark.parametrize("name", STEPS)
def test_a_process_without_redis_killed_before_any_statement_costs_nothing_but_time(
    name: str, world: World, settings: Any, monkeypatch: Any
) -> None:
    arrow = ARROWS[name]

    def deliver(step: Step) -> list[Step]:
        """Do what a thread of `runrenders` does with the step."""
        if step.do == "poll":
            return []  # found in the table
        runner = Runner(sume, slots=1)
        _, following = runner._take(step)
        while not runner._early.empty():
            following = [*following, runner._early.get()]
        return following

    messages = points.start(world, arrow, 1, settings)
    settings.RENDERS = {**settings.RENDERS, "SCHEDULER": "database"}
    monkeypatch.setattr(world, "deliver", deliver)
    numbers = points.points_of(lambda: deliver(messages[0][1]))[::2]
    died = [(0, messages[0][0])]
    for number, (render, step) in zip(
        numbers, points.start(world, arrow, len(numbers), settings), strict=True
    ):
        gate.resume("default")
        killed_before(number, partial(deliver, step))
        died.append((number, render))

    mend(world, "database", read_from_table)

    points.assert_all_well(world, arrow, died)
