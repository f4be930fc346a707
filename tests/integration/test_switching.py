"""From one scheduler to another in mid-run, and side by side: nothing lost, nothing twice."""

from typing import Any

import pytest

from renders import tasks
from renders.coordination.connections import polls, redis_client
from renders.demo.processes import Child
from renders.models import RenderJob
from tests.integration import modes
from tests.integration.stack import Stack

pytestmark = pytest.mark.parametrize("database", ["postgresql"], indirect=True)
COUNT = 4
# The others take their time.
MODES = ["countdown", "sortedset", "database"]


@pytest.fixture(autouse=True)
def jobs_that_last(stack: Stack, settings: Any) -> None:
    settings.RENDERS = {**settings.RENDERS}  # what `modes.use` changes is undone
    stack.sandbox.faults.add("job_takes", on="submit", argument=3, times=None)


def outlast_the_worker(stack: Stack) -> None:
    """However long it takes to end, the jobs still run then."""
    stack.sandbox.faults.clear()
    stack.sandbox.faults.add("job_takes", on="submit", argument=10, times=None)


def begin(stack: Stack, mode: str, number: int = 0) -> list[Child]:
    """Start what the mode needs, beat included."""
    modes.use(stack, mode)
    if mode == "database":
        return [modes.start(stack, "runrenders", number)]
    started = [stack.worker()]
    if mode == "sortedset":
        started.append(modes.start(stack, "pollrenders", number))
    beat = ["beat", "-s", f"{stack.marker}-{number}", "--pidfile="]
    return [*started, stack.run(f"beat{number}", "-m", "celery", "-A", "project", *beat)]


def each_was_read(stack: Stack, child: Child) -> None:
    read = RenderJob.objects.filter(poll_count__gt=0)
    stack.until(lambda: read.count() == COUNT, child=child)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("old", "new"),
    [
        # The others are a matter of a thorough run.
        pytest.param(old, new, marks=() if old == "countdown" else pytest.mark.thorough)
        for old in MODES
        for new in MODES
        if old != new
    ],
)
def test_renders_go_on_in_another_mode(stack: Stack, old: str, new: str) -> None:
    """The old processes are killed, with leases held and messages or places in the set left."""
    before = begin(stack, old)
    stack.create(*["a red fox"] * COUNT)
    each_was_read(stack, before[0])
    for child in before:
        stack.kill(child)

    after = begin(stack, new, 1)
    stack.create("FAIL on purpose")
    stack.until_handled(sweeping=False)

    assert all(child.alive for child in after)
    assert RenderJob.objects.filter(status="completed").count() == COUNT
    assert len(stack.sandbox.ledger.bills) == COUNT + 1


@pytest.mark.thorough
@pytest.mark.slow
def test_messages_that_wait_in_the_broker_go_on_in_the_set(stack: Stack) -> None:
    """The worker ends as it should, and gives back what it has not begun."""
    outlast_the_worker(stack)
    modes.use(stack, "countdown")
    worker = stack.worker()
    stack.create(*["a red fox"] * COUNT)
    each_was_read(stack, worker)
    modes.end(stack, worker)
    assert redis_client().llen("renders.poll") == COUNT  # their leases may have run out by now

    begin(stack, "sortedset", 1)
    stack.until_handled(sweeping=False)

    modes.assert_each_read_was_recorded(stack)
    assert redis_client().keys("sume:poll:*") == []


@pytest.mark.thorough
@pytest.mark.slow
def test_what_is_left_in_the_set_goes_on_by_messages(stack: Stack) -> None:
    outlast_the_worker(stack)
    modes.use(stack, "sortedset")
    worker, reader = stack.worker(), modes.start(stack, "pollrenders")
    stack.create(*["a red fox"] * COUNT)
    each_was_read(stack, reader)
    modes.end(stack, reader)
    modes.end(stack, worker)
    assert len(polls()) == COUNT

    modes.use(stack, "countdown")
    tasks.sweep_renders()

    assert len(polls()) == 0
    stack.worker()
    stack.until_handled(sweeping=False)
    modes.assert_each_read_was_recorded(stack)


@pytest.mark.slow
def test_messages_and_the_set_side_by_side_read_nothing_twice(stack: Stack) -> None:
    """As while processes are replaced one after the other; `assert_sound` finds early reads."""
    begin(stack, "countdown")
    begin(stack, "sortedset", 1)
    stack.create(*["a red fox"] * 8)

    stack.until_handled(sweeping=False)

    modes.assert_each_read_was_recorded(stack)


@pytest.mark.thorough
@pytest.mark.slow
def test_messages_and_the_table_side_by_side_bill_and_handle_once(stack: Stack) -> None:
    """Neither knows of the other's reads, so some are made twice; what they tell counts once."""
    begin(stack, "countdown")
    begin(stack, "database", 1)
    stack.create(*["a red fox"] * 8)

    stack.until_handled(sweeping=False)

    assert RenderJob.objects.filter(status="completed").count() == 8
    assert set(stack.sandbox.ledger.posts.values()) == {1}
    stack.sandbox.ledger._early.clear()  # see above
