"""`pollrenders` and ticks: the sorted set read by real processes that are killed and stopped."""

import signal
from typing import Any

import pytest
from django.db import OperationalError

from renders import tasks
from renders.coordination.connections import polls, redis_client, tick_leases
from renders.demo.processes import Child
from renders.models import RenderJob
from renders.schedulers import ticks
from renders.states import Status
from tests.integration import modes
from tests.integration.stack import Stack

ON_POSTGRESQL = pytest.mark.parametrize("database", ["postgresql"], indirect=True)
ON_SQLITE = pytest.mark.parametrize("database", ["sqlite"], indirect=True)


@pytest.fixture(autouse=True)
def sorted_set(stack: Stack, settings: Any) -> None:
    modes.use(stack, "sortedset")


def all_sent() -> bool:
    return not RenderJob.objects.filter(status__in=["pending", "submitting"]).exists()


def in_the_air(stack: Stack) -> int:
    """Reads that Sume has got and that are not written down."""
    renders = RenderJob.objects.filter(status=Status.SUBMITTED)
    return sum(len(modes.status_reads(stack, one)) - one.poll_count for one in renders)


def slow_reads(stack: Stack, seconds: float) -> None:
    stack.sandbox.faults.add("slow", on="status", argument=seconds, times=None)


# --- pollrenders --------------------------------------------------------------------------


@pytest.mark.thorough
@pytest.mark.slow
def test_two_readers_share_the_reads_and_read_nothing_twice(stack: Stack) -> None:
    stack.worker()
    readers = [modes.start(stack, "pollrenders", number) for number in range(2)]
    slow_reads(stack, 0.2)
    stack.create(*["a red fox"] * 8)

    stack.until_handled(sweeping=False)

    for reader in readers:
        modes.end(stack, reader)
    modes.assert_each_read_was_recorded(stack)
    assert len(polls()) == 0
    assert redis_client().keys("sume:poll:*") == []


@pytest.mark.slow
@ON_POSTGRESQL
def test_what_a_killed_reader_had_in_the_air_another_reads_when_the_lease_is_over(
    stack: Stack,
) -> None:
    worker = stack.worker()
    reader = modes.start(stack, "pollrenders")
    slow_reads(stack, 1.5)
    renders = stack.create(*["a red fox"] * 6)
    stack.until(lambda: in_the_air(stack) >= 4, child=worker)
    stack.kill(reader)
    killed = {pk: len(reads) for pk, reads in all_reads(stack, renders).items()}
    held = [pk for pk, count in killed.items() if count]
    stack.sandbox.faults.clear()

    modes.start(stack, "pollrenders", 1)
    stack.until_handled(sweeping=False)

    assert set(RenderJob.objects.values_list("status", flat=True)) == {"completed"}
    # One read of each was lost with its reader; nothing was read twice.
    for render in renders:
        reads = modes.status_reads(stack, render)
        assert len(reads) - render.poll_count == (render.pk in held), stack.report()
        if render.pk in held:
            lease = 2 + 0.5  # `REQUEST_TIMEOUT_SECONDS` and `LEASE_MARGIN_SECONDS` of the tests
            # Not two of them: whoever comes at the lease's end finds the render free.
            assert 1.5 < reads[1] - reads[0] < 2 * lease


def all_reads(stack: Stack, renders: list[RenderJob]) -> dict[Any, list[float]]:
    return {render.pk: modes.status_reads(stack, render) for render in renders}


@ON_SQLITE
def test_sigterm_lets_the_reads_under_way_end(stack: Stack) -> None:
    worker = stack.worker()
    reader = modes.start(stack, "pollrenders")
    slow_reads(stack, 1)
    [render] = stack.create("a red fox")
    stack.until(lambda: in_the_air(stack), child=worker)

    modes.end(stack, reader)

    render.refresh_from_db()
    assert render.poll_count == len(modes.status_reads(stack, render)) == 1
    assert "Ending after 1 reads" in reader.output()
    assert "Ended." in reader.output()


@pytest.mark.parametrize(
    ("number", "status"),
    [(signal.SIGINT, 130), pytest.param(signal.SIGTERM, 143, marks=pytest.mark.thorough)],
    ids=["int", "term"],
)
@ON_SQLITE
def test_a_second_signal_ends_a_reader_at_once(stack: Stack, number: int, status: int) -> None:
    stack.environment |= {
        "RENDERS_REQUEST_TIMEOUT_SECONDS": "60",
        "RENDERS_REAP_AFTER_SECONDS": "600",
    }
    worker = stack.worker()
    reader = modes.start(stack, "pollrenders")
    slow_reads(stack, 60)
    stack.create("a red fox")
    stack.until(lambda: in_the_air(stack), child=worker)
    reader.process.send_signal(number)
    stack.until(lambda: reader.has_written("Ending after 1 reads"), child=reader)
    reader.process.send_signal(number)
    stack.until(lambda: not reader.alive, seconds=20)
    assert reader.process.returncode == status
    assert "Traceback" not in reader.output()


@pytest.mark.slow
@ON_POSTGRESQL
def test_a_reader_lives_through_redis_away_and_reads_from_the_table_meanwhile(
    stack: Stack,
) -> None:
    stack.sandbox.faults.add("job_takes", on="submit", argument=3, times=None)
    worker = stack.worker()
    reader = modes.start(stack, "pollrenders")
    renders = stack.create(*["a red fox"] * 4)
    stack.until(all_sent, child=worker)
    stack.redis.halt()
    stack.until(lambda: reader.has_written("the database says what is due"), child=reader)

    stack.until(lambda: not RenderJob.objects.filter(status="submitted").exists(), child=reader)
    stack.redis.start()
    stack.until_handled()

    assert reader.alive
    for render in renders:
        assert modes.status_reads(stack, render)
    modes.assert_each_read_was_recorded(stack)


@ON_POSTGRESQL
def test_a_reader_lives_through_an_outage_of_the_database(stack: Stack) -> None:
    worker = stack.worker()
    reader = modes.start(stack, "pollrenders")
    stack.create(*["a red fox"] * 4)
    stack.until(all_sent, child=worker)
    with modes.DatabaseAway():
        stack.until(lambda: reader.has_written("The database is away"), child=reader)
    stack.until_handled()
    assert reader.alive
    assert set(RenderJob.objects.values_list("status", flat=True)) == {"completed"}


@pytest.mark.slow
@ON_POSTGRESQL
def test_a_reader_that_is_stopped_while_the_database_is_away_ends_well(stack: Stack) -> None:
    reader = modes.start(stack, "pollrenders")
    slow_reads(stack, 1.5)
    worker = stack.worker()
    stack.create("a red fox")
    stack.until(lambda: in_the_air(stack), child=worker)
    with modes.DatabaseAway():
        modes.end(stack, reader)
    assert "what was not answered is read again" in reader.output()
    assert "Traceback" not in reader.output()
    modes.start(stack, "pollrenders", 1)
    stack.until_handled()


# --- Ticks --------------------------------------------------------------------------------


@pytest.fixture
def short_ticks(stack: Stack, monkeypatch: Any) -> list[tuple[str, float, str | None]]:
    """Ticks that end soon, in this process; what they ask for instead of messages."""
    modes.use(stack, "sortedset", ticks=2)
    monkeypatch.setattr(ticks, "TICK_SECONDS", 0.2)
    asked: list[tuple[str, float, str | None]] = []
    monkeypatch.setattr(
        "renders.schedulers.dispatch.tick_again",
        lambda chain, after=0.0, token=None: asked.append((chain, after, token)),
    )
    return asked


@ON_SQLITE
def test_of_two_ticks_of_one_chain_one_reads_and_goes_on(
    stack: Stack, short_ticks: list[tuple[str, float, str | None]]
) -> None:
    tasks.poll_due("0")
    tasks.poll_due("0")  # the sweep's, while the chain lives
    [(chain, _, token)] = short_ticks
    assert chain == "0"
    tasks.poll_due("0", token)
    tasks.poll_due("0", token)  # delivered twice
    assert len(short_ticks) == 2
    tasks.poll_due("1")  # another chain
    assert len(short_ticks) == 3


@ON_SQLITE
def test_a_chain_of_ticks_that_was_lost_begins_anew(
    stack: Stack, short_ticks: list[tuple[str, float, str | None]]
) -> None:
    tasks.poll_due("0")
    redis_client().flushall()
    tasks.poll_due("0")
    assert len(short_ticks) == 2
    tasks.poll_due("0", short_ticks[0][2])  # the old chain's message comes after all
    assert len(short_ticks) == 2


@ON_POSTGRESQL
def test_a_tick_that_the_database_ended_calls_the_next(
    stack: Stack, short_ticks: list[tuple[str, float, str | None]], monkeypatch: Any
) -> None:
    def away(*args: Any) -> None:
        raise OperationalError

    with monkeypatch.context() as patch:
        patch.setattr("renders.schedulers.queues.SetQueue.take", away)
        tasks.poll_due("0")
    [(chain, _, token)] = short_ticks
    assert tick_leases().swap(chain, token or "", 1)


@pytest.mark.slow
@ON_POSTGRESQL
def test_renders_are_read_by_ticks_that_outlive_their_worker(stack: Stack) -> None:
    modes.use(stack, "sortedset", ticks=1)
    stack.sandbox.faults.add("job_takes", on="submit", argument=3, times=None)
    first, beat = stack.worker(), stack.beat()
    stack.create(*["a red fox"] * 4)
    stack.until(lambda: RenderJob.objects.filter(poll_count__gt=0).count() == 4, child=first)
    first.process.terminate()
    ended_in_time(stack, first)
    stack.worker()
    stack.create("FAIL on purpose")

    stack.until_handled(sweeping=False)

    assert beat.alive
    assert RenderJob.objects.filter(status="completed").count() == 4
    modes.assert_each_read_was_recorded(stack)


def ended_in_time(stack: Stack, worker: Child) -> None:
    """A warm shutdown waits for the tick under way."""
    stack.until(lambda: not worker.alive, seconds=ticks.TICK_SECONDS + 15)
    assert worker.process.returncode == 0, worker.output()
