"""Workers that run tasks in threads or greenlets instead of processes."""

import pytest

from renders import services
from renders.models import RenderJob
from tests.integration.stack import Stack

pytestmark = pytest.mark.slow


def starts_and_ends_renders(stack: Stack, pool: str, *prompts: str) -> None:
    """Good ones, these, a failing, a refused and a canceled one; slow replies from Sume."""
    stack.sandbox.faults.add("trickle", on="status", argument=3)
    stack.sandbox.faults.add("slow", on="submit", argument=1)
    [canceled] = stack.create("never sent")
    assert services.cancel_render(canceled)
    worker = stack.worker("-P", pool, "-c4")
    stack.create("fox 1", "fox 2", "fox 3", *prompts, "FAIL this", "REJECT this")

    stack.until_handled()

    assert dict(RenderJob.objects.values_list("prompt", "status")) == {
        **dict.fromkeys(["fox 1", "fox 2", "fox 3", *prompts], "completed"),
        "FAIL this": "failed",
        "REJECT this": "failed",
        "never sent": "canceled",
    }
    assert worker.alive
    assert "Traceback" not in stack.logs()
    assert "unreachable" not in stack.logs()


def test_threads_bring_every_render_to_its_end(stack: Stack) -> None:
    starts_and_ends_renders(stack, "threads", "[pause] 1", "[pause] 2")
    assert "SQLite" not in stack.logs()


@pytest.mark.parametrize("database", ["postgresql"], indirect=True)
def test_greenlets_bring_every_render_to_its_end(stack: Stack) -> None:
    """Receivers that wait inside their transaction stop nobody else."""
    starts_and_ends_renders(stack, "gevent", "[pause] 1", "[pause] 2")
    assert "SQLite" not in stack.logs()


@pytest.mark.thorough
@pytest.mark.parametrize("database", ["sqlite"], indirect=True)
def test_greenlets_with_sqlite_bring_renders_to_their_end_and_warn(stack: Stack) -> None:
    """A receiver that waits would hold the lock for which SQLite blocks the only thread."""
    starts_and_ends_renders(stack, "gevent")
    assert "SQLite and greenlets" in stack.logs()
