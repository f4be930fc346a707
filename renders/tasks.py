"""Celery's side: thin tasks, ids and tokens in, the next steps out.

`task_routes` in the project's settings sends them to four queues: `renders.poll` for reads that
wait for their time, `renders.submit` for the line, `renders.media` for downloads, which take as
long as they take, and `renders.finish` for all that these must not hold up: finishing, cancels,
the sweep.
"""

import logging
import time
from typing import Any
from uuid import UUID

from celery import shared_task
from celery.signals import beat_init, celeryd_after_setup, task_postrun, task_prerun

from renders.conf import conf, destination
from renders.coordination.connections import REDIS_DOWN, media_leases, poll_leases, polls
from renders.housekeeping import pruning
from renders.lifecycle import cancellation, finishing, media_saving, polling, submission, sweep
from renders.lifecycle.steps import Step
from renders.schedulers import dispatch, due_set_upkeep, ticks
from renders.sume.clients import sume
from renders.telemetry import (
    celery_signs,  # noqa: F401 (workers and beat listen by it)
    heartbeats,
    log_context,
    store,
)

logger = logging.getLogger(__name__)

# So long at a time, and so long a rest for others.
PRUNE_SECONDS = 20.0


_begun: dict[str, Any] = {}


@celeryd_after_setup.connect
@beat_init.connect
def say_where_renders_go(**kwargs: Any) -> None:
    """A worker and beat say it once their logs are set up, before the first task."""
    destination.say_where_renders_go()


@task_prerun.connect
def begin_context(task_id: str, task: Any, args: Any, **kwargs: Any) -> None:
    """Every line of a task's log says which task it is, and of ours which render."""
    render = log_context.render_in(args) if task.name.startswith("renders.tasks.") else ""
    name = log_context.short(task.name)
    _begun[task_id] = log_context.bind(render=render, task=name, task_id=task_id)


@task_postrun.connect
def end_context(task_id: str, **kwargs: Any) -> None:
    """What a task has counted is known as soon as it has ended, whichever process ran it."""
    if token := _begun.pop(task_id, None):
        log_context.unbind(token)
    store.flush()


@shared_task
def submit_render(render_id: str) -> str:
    """Send this pending render to Sume, or whichever is the next in line."""
    claim = submission.begin(UUID(render_id))
    words = _follow(claim.steps)  # the next one starts while this one is on its way
    return words if not claim.renders else _follow(submission.send(claim, sume))


@shared_task(ignore_result=True)
def poll_render(render_id: str, token: str | None = None) -> None:
    """Read one job's status and schedule the next read, or the finish."""
    _follow(polling.poll(UUID(render_id), token, sume, poll_leases()))


@shared_task
def finish_render(render_id: str) -> str:
    """Fetch an ended render's result and send its signals."""
    return _follow(finishing.finish(UUID(render_id), sume, poll_leases()))


@shared_task
def save_media(render_id: str) -> str:
    """Store one picture or clip of a completed render."""
    return _follow(media_saving.save(UUID(render_id), sume, media_leases()))


@shared_task
def cancel_render(render_id: str) -> str:
    """Ask Sume to cancel one render."""
    return _follow(cancellation.cancel(UUID(render_id), sume))


@shared_task(ignore_result=True)
def sweep_renders() -> None:
    """Put back to work whatever stopped; beat sends this every `SWEEP_SECONDS`."""
    _follow(sweep.sweep())
    heartbeats.note(heartbeats.SWEEP)
    try:
        _tend()
    except REDIS_DOWN as error:
        logger.warning("Redis unreachable (%s): the next sweep tends it.", type(error).__name__)
    pruning.prune()  # last: if it fails, the repairs are under way


@shared_task(ignore_result=True)
def prune_renders() -> None:
    """Delete what is kept for so many days and no longer, a while at a time; beat sends it daily.

    A worker that dies, or a storage that is away, leaves the rest to the next day.
    """
    until = time.monotonic() + PRUNE_SECONDS
    done = pruning.run_as_set(lambda: time.monotonic() > until)
    if done.stopped and done.failed < pruning.MOST_FAILED:
        prune_renders.apply_async(countdown=PRUNE_SECONDS)


@shared_task(ignore_result=True)
def poll_due(chain: str, token: str | None = None) -> None:
    """Read whatever the sorted set says is due, for a while; the next one of the chain follows."""
    if conf.SCHEDULER != "sortedset" or not 0 <= int(chain) < conf.TICKS:
        return  # the settings have changed since it was called
    ticks.tick(chain, token, dispatch.follow, dispatch.tick_again)


def _tend() -> None:
    """Look after the sorted set: keep it true, or hand over what is left in it."""
    if conf.SCHEDULER == "countdown":
        due_set_upkeep.drain(polls(), dispatch.follow)
    elif conf.SCHEDULER == "sortedset":
        due_set_upkeep.keep(polls())
        for number in range(conf.TICKS):
            dispatch.tick_again(str(number))


def _follow(steps: list[Step]) -> str:
    """Schedule what follows; returns it in words, for the task's result."""
    dispatch.follow(steps)
    return ", ".join(map(_in_words, steps)) or "nothing follows"


def _in_words(step: Step) -> str:
    when = f"in {step.after:.1f} s" if step.after else "now"
    return f"{step.do} {str(step.render_id)[:8]} {when}"
