"""The broker goes away while polls wait: worker and beat go on by themselves once it is back."""

import time
from collections.abc import Iterator
from typing import Any

import pytest

from renders.demo.processes import Child
from renders.models import RenderJob
from renders.sandbox import Sandbox
from tests.integration.stack import Stack
from tests.rabbitmq import RabbitMQ

ON_ONE_DATABASE = pytest.mark.parametrize("database", ["postgresql"], indirect=True)


@pytest.fixture
def sandbox(settings: Any) -> Iterator[Sandbox]:
    """One whose jobs last for some reads, so that polls wait when the outage begins."""
    with Sandbox(
        queued_seconds=0.1, processing_seconds=3, poll_seconds=1.5, writes_per_minute=None
    ) as sandbox:
        settings.RENDERS = {**settings.RENDERS, "BASE_URL": sandbox.url}
        yield sandbox


PROMPTS = [f"fox {number}" for number in range(4)]


def until_polls_wait(stack: Stack, worker: Child) -> None:
    """Until each render was read once and waits for its next read."""
    waiting = RenderJob.objects.filter(status="submitted", poll_count__gt=0)
    stack.until(lambda: waiting.count() == len(PROMPTS), child=worker)


def until_handled_by_themselves(stack: Stack, worker: Child) -> None:
    """For longer than Celery waits between two tries to connect."""
    unhandled = RenderJob.objects.filter(handled_at__isnull=True)
    stack.until(lambda: not unhandled.exists(), child=worker, seconds=90)


def let_pass(stack: Stack, seconds: float) -> None:
    """The outage must last for its time: there is nothing to wait for."""
    end = time.monotonic() + seconds
    stack.until(lambda: time.monotonic() > end, seconds=seconds + 5)


def assert_all_completed(stack: Stack, count: int, *processes: Child) -> None:
    """Everything ended, was billed once, and no process ended or restarted meanwhile."""
    assert all(process.alive for process in processes)
    assert RenderJob.objects.filter(status="completed").count() == count
    assert len(stack.sandbox.ledger.bills) == count


@ON_ONE_DATABASE
def test_a_worker_goes_on_by_itself_after_redis_was_away_for_3_seconds(stack: Stack) -> None:
    worker = stack.worker()
    stack.create(*PROMPTS)
    until_polls_wait(stack, worker)
    stack.redis.halt()
    let_pass(stack, 3)
    assert worker.has_written("Connection to broker lost")
    stack.redis.start()

    stack.until_handled()

    assert_all_completed(stack, 4, worker)
    assert "Traceback" not in stack.logs()


@pytest.mark.slow
@pytest.mark.parametrize("pool", ["threads", pytest.param("gevent", marks=pytest.mark.thorough)])
@ON_ONE_DATABASE
def test_a_worker_with_this_pool_goes_on_by_itself_after_redis_was_away(
    stack: Stack, pool: str
) -> None:
    worker = stack.worker("-P", pool, "-c4")
    stack.create(*PROMPTS)
    until_polls_wait(stack, worker)
    stack.redis.halt()
    let_pass(stack, 3)
    stack.redis.start()

    stack.until_handled()

    assert_all_completed(stack, 4, worker)


@pytest.mark.thorough
@pytest.mark.slow
@pytest.mark.timeout(300)
@ON_ONE_DATABASE
def test_renders_end_by_themselves_after_redis_was_away_for_a_minute(stack: Stack) -> None:
    """Celery waits ever longer between its tries to connect, so more than a minute passes."""
    worker, beat = stack.worker(), stack.beat()
    stack.create(*PROMPTS)
    until_polls_wait(stack, worker)
    stack.redis.halt()
    stack.create("made", "in the outage")
    let_pass(stack, 60)
    stack.redis.start()

    until_handled_by_themselves(stack, worker)

    assert_all_completed(stack, 6, worker, beat)


@pytest.mark.slow
@ON_ONE_DATABASE
def test_renders_end_by_themselves_after_rabbitmq_was_killed(
    stack: Stack, rabbitmq: RabbitMQ
) -> None:
    worker, beat = stack.worker(), stack.beat()
    stack.command("render", *PROMPTS, "--no-follow")
    until_polls_wait(stack, worker)
    rabbitmq.kill()
    stack.until(lambda: worker.has_written("Connection to broker lost"), child=worker)
    rabbitmq.start()

    until_handled_by_themselves(stack, worker)

    assert_all_completed(stack, 4, worker, beat)
