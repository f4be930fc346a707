"""Celery's side: thin tasks, ids and tokens in, the next steps out.

`task_routes` in the project's settings sends them to four queues: `renders.poll` for reads that
wait for their time, `renders.submit` for the line, `renders.media` for downloads, which take as
long as they take, and `renders.finish` for all that these must not hold up: finishing, cancels,
the sweep.
"""

from functools import lru_cache
from typing import Any
from uuid import UUID

from celery import shared_task

from renders import (
    cancellation,
    finishing,
    polling,
    pruning,
    saving,
    scheduling,
    submission,
    sweep,
)
from renders.connections import redis_client, sume
from renders.lease import Leases
from renders.steps import Step

LEASE_PREFIX = "sume:poll:"
MEDIA_LEASE_PREFIX = "sume:media:"


@shared_task
def submit_render(render_id: str) -> str:
    """Send this pending render to Sume, or whichever is the next in line."""
    claim = submission.begin(UUID(render_id))
    words = _follow(claim.steps)  # the next one starts while this one is on its way
    return words if not claim.renders else _follow(submission.send(claim, sume()))


@shared_task(ignore_result=True)
def poll_render(render_id: str, token: str | None = None) -> None:
    """Read one job's status and schedule the next read, or the finish."""
    _follow(polling.poll(UUID(render_id), token, sume(), _leases(redis_client(), LEASE_PREFIX)))


@shared_task
def finish_render(render_id: str) -> str:
    """Fetch an ended render's result and send its signals."""
    return _follow(finishing.finish(UUID(render_id), sume(), _leases(redis_client(), LEASE_PREFIX)))


@shared_task
def save_media(render_id: str) -> str:
    """Store one picture or clip of a completed render."""
    return _follow(saving.save(UUID(render_id), _leases(redis_client(), MEDIA_LEASE_PREFIX)))


@shared_task
def cancel_render(render_id: str) -> str:
    """Ask Sume to cancel one render."""
    return _follow(cancellation.cancel(UUID(render_id), sume()))


@shared_task(ignore_result=True)
def sweep_renders() -> None:
    """Put back to work whatever stopped; beat sends this every `SWEEP_SECONDS`."""
    _follow(sweep.sweep())
    pruning.prune()  # last: if it fails, the repairs are under way


def _follow(steps: list[Step]) -> str:
    """Schedule what follows; returns it in words, for the task's result."""
    scheduling.follow(steps)
    return ", ".join(map(_in_words, steps)) or "nothing follows"


def _in_words(step: Step) -> str:
    when = f"in {step.after:.1f} s" if step.after else "now"
    return f"{step.do} {str(step.render_id)[:8]} {when}"


@lru_cache(maxsize=8)
def _leases(client: Any, prefix: str) -> Leases:
    return Leases(client, prefix)
