"""SIGTERM in the midst of work: others go on with it at its time, without a sweep."""

import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from django.conf import settings

from project.celery import app
from renders.coordination.connections import redis_client
from renders.demo.processes import Child
from renders.models import RenderJob
from renders.sandbox import Sandbox
from tests.integration import modes
from tests.integration.stack import Stack
from tests.rabbitmq import RabbitMQ

COUNT = 6
POLL_SECONDS = 10.0
LATE_SECONDS = 1.5
THOROUGH = pytest.mark.thorough
pytestmark = [
    pytest.mark.slow,
    pytest.mark.parametrize("database", ["postgresql"], indirect=True),
]


@pytest.fixture
def sandbox(settings: Any) -> Iterator[Sandbox]:
    """Asks for the next read so late that another worker can start, and the first end, before."""
    with Sandbox(
        queued_seconds=0,
        processing_seconds=POLL_SECONDS,
        poll_seconds=POLL_SECONDS,
        processing_limit=2 * COUNT,
        writes_per_minute=None,
    ) as sandbox:
        limits = {"BASE_URL": sandbox.url, "MAX_POLL_SECONDS": 60}
        settings.RENDERS = {**settings.RENDERS, **limits}
        yield sandbox


@pytest.fixture(autouse=True)
def as_late_as_that(stack: Stack) -> None:
    stack.environment |= {
        "RENDERS_MAX_POLL_SECONDS": "60",
        "RENDERS_MEDIA_TIMEOUT_SECONDS": "60",
    }


def all_wait(
    stack: Stack, child: Child, create: Callable[..., object] | None = None
) -> dict[str, float]:
    """Make some renders; once all of them wait for the second read: when that is due."""
    (create or stack.create)(*["a red fox"] * COUNT)
    read = RenderJob.objects.filter(prompt="a red fox", poll_count=1)
    stack.until(lambda: read.count() == COUNT, child=child)
    return {r.sume_job_id: r.next_poll_at.timestamp() for r in read if r.next_poll_at}


def serve_all(name: str) -> None:
    """Have a worker that stood by serve all queues from now on."""
    for queue in settings.CELERY_TASK_QUEUES:
        [reply] = app.control.add_consumer(
            queue.name, destination=[name], reply=True, limit=1, timeout=20
        )
        assert "ok" in reply[name], reply


def in_time(due: dict[str, float]) -> None:
    """Whether what has happened so far came before the reads that it is about."""
    assert time.time() < min(due.values()), "all of it took too long to show anything"


def assert_read_on_time(stack: Stack, due: dict[str, float], ready: float = 0) -> None:
    """The second read of each came when it was due, or once somebody was `ready` for it."""

    def seconds() -> dict[str, float]:
        reads = stack.sandbox.ledger.reads
        times = {job: [r.at for r in reads[job] if r.what == "status"][1:] for job in due}
        return {job: found[0] for job, found in times.items() if found}

    stack.until(lambda: len(seconds()) == COUNT)
    late = {job: at - max(due[job], ready) for job, at in seconds().items()}
    assert max(late.values()) < LATE_SECONDS, late


@pytest.mark.parametrize("pool", ["prefork", pytest.param("threads", marks=THOROUGH)])
def test_polls_that_wait_in_a_worker_that_ends_are_read_on_time_by_another(
    stack: Stack, pool: str
) -> None:
    worker = stack.worker("-P", pool)
    stack.worker("-P", pool, "-Q", "standby")
    due = all_wait(stack, worker)
    # All of them in the first one's memory; a row may know of a message before it has come.
    stack.until(lambda: redis_client().hlen("unacked") >= COUNT, child=worker)

    serve_all("w1@test")
    modes.end(stack, worker)
    in_time(due)

    assert_read_on_time(stack, due)
    stack.until_handled(sweeping=False)
    modes.assert_each_read_was_recorded(stack)


def a_download_and_polls(
    stack: Stack, worker: Child, create: Callable[..., object]
) -> dict[str, float]:
    """Once it downloads, and goes on for long, have it hold polls as well: when they are due."""
    stack.sandbox.faults.add("job_takes", on="submit", argument=0)
    stack.sandbox.faults.add("slow", on="media", argument=3 * POLL_SECONDS)
    create("a blue fox")

    def is_under_way() -> bool:
        reads = list(stack.sandbox.ledger.reads.values())
        return any(read.what == "media" for job in reads for read in job)

    stack.until(is_under_way, child=worker)
    return all_wait(stack, worker, create)


@pytest.mark.thorough
def test_a_worker_that_still_has_to_end_a_task_holds_no_polls_back(stack: Stack) -> None:
    worker = stack.worker()
    stack.worker("-Q", "standby")
    due = a_download_and_polls(stack, worker, stack.create)

    worker.process.terminate()
    serve_all("w1@test")
    in_time(due)

    assert_read_on_time(stack, due)
    assert worker.alive, "the download is over: nothing was shown"


@pytest.mark.thorough
def test_nor_does_it_with_rabbitmq(stack: Stack, rabbitmq: RabbitMQ) -> None:
    worker = stack.worker()
    # This process has another broker.
    due = a_download_and_polls(
        stack, worker, create=lambda *words: stack.command("render", *words, "--no-follow")
    )

    worker.process.terminate()
    stack.worker()

    assert_read_on_time(stack, due, ready=time.time())
    assert worker.alive, "the download is over: nothing was shown"


@pytest.mark.parametrize(
    ("scheduler", "command"),
    [
        pytest.param("sortedset", "pollrenders", marks=THOROUGH),
        pytest.param("database", "runrenders", marks=THOROUGH),
    ],
)
def test_what_is_due_when_a_reader_has_ended_is_read_by_another(
    stack: Stack, scheduler: str, command: str
) -> None:
    modes.use(stack, scheduler)
    if scheduler == "sortedset":
        stack.worker()
    reader = modes.start(stack, command, 1)
    modes.start(stack, command, 2)
    due = all_wait(stack, reader)

    modes.end(stack, reader)
    in_time(due)

    assert_read_on_time(stack, due)
    stack.until_handled(sweeping=False)
    modes.assert_each_read_was_recorded(stack)
