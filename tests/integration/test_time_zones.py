"""Worker and beat in another time zone than the process that creates renders, which has UTC."""

from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import pytest

from renders.models import RenderJob
from renders.sandbox import Sandbox
from tests.integration.stack import Stack

pytestmark = pytest.mark.slow

POLL_SECONDS = 1.0
LATE_SECONDS = 3.0


@pytest.fixture
def sandbox(settings: Any) -> Iterator[Sandbox]:
    """One whose jobs last for some reads."""
    with Sandbox(
        queued_seconds=0.1,
        processing_seconds=2,
        poll_seconds=POLL_SECONDS,
        writes_per_minute=None,
    ) as sandbox:
        settings.RENDERS = {**settings.RENDERS, "BASE_URL": sandbox.url}
        yield sandbox


@pytest.mark.parametrize(
    ("database", "zone"),
    [
        pytest.param("sqlite", "Asia/Kolkata", marks=pytest.mark.thorough),
        ("postgresql", "America/St_Johns"),
    ],
    indirect=["database"],
)
def test_each_read_comes_after_exactly_the_countdown_asked_for(stack: Stack, zone: str) -> None:
    stack.environment["TESTS_TIME_ZONE"] = zone
    worker = stack.worker()
    stack.beat()
    stack.create("a red fox", "a blue fox")

    stack.until_handled(sweeping=False)

    # That no read was early, `assert_sound` looks after each test.
    for render in RenderJob.objects.all():
        reads = stack.sandbox.ledger.reads[render.sume_job_id]
        asked = [read.at for read in reads if read.what == "status"]
        assert len(asked) >= 2
        assert max(b - a for a, b in pairwise(asked)) < POLL_SECONDS + LATE_SECONDS
    # A message that came hours early would be sent on again and again until its time.
    hops = sum(render.poll_count for render in RenderJob.objects.all())
    assert times_written(stack, "poll_render", "received") == hops
    # What beat sends expires within a second; an hour's error would throw all of it away.
    stack.until(lambda: times_written(stack, "sweep_renders", "succeeded"), child=worker)
    assert "revoked" not in stack.logs()


def times_written(stack: Stack, task: str, what: str) -> int:
    """How often the worker says this of the task."""
    return sum(
        f"renders.tasks.{task}[" in line and what in line for line in stack.logs().splitlines()
    )
