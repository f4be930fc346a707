"""Passes the next steps of renders to the scheduler that is configured.

`SCHEDULER` chooses it. `countdown` sends Celery a message for each step. `sortedset` keeps polls in
a sorted set in Redis and sends messages for all other steps. `database` leaves all steps to
`runrenders`, which finds them in the table. A step that is lost (for instance because the broker
is unreachable) is only late: the sweep finds its render in the database.
"""

import logging
import time
from collections.abc import Iterable
from typing import Any

from celery import current_app
from django.db import DatabaseError, InterfaceError, connection
from kombu.exceptions import OperationalError

from renders.conf import conf
from renders.coordination.connections import REDIS_DOWN, poll_leases, polls
from renders.lifecycle.steps import Step
from renders.telemetry import log_context

logger = logging.getLogger(__name__)

# The PostgreSQL channel on which `runrenders` listens.
CHANNEL = "renders"


def follow(steps: Iterable[Step]) -> None:
    """Schedule these steps; stops at the first message that the broker does not accept."""
    steps = list(steps)
    if conf.SCHEDULER == "database":
        _notify(steps)
        return
    if conf.SCHEDULER == "sortedset":
        _add([step for step in steps if step.do == "poll"])
        steps = [step for step in steps if step.do != "poll"]
    all(_send(step) for step in steps)


def tick_again(chain: str, after: float = 0.0, token: str | None = None) -> None:
    """Schedule a tick. Without a token, it starts the chain, unless that is running already."""
    try:
        task("poll_due").apply_async([chain, *([token] if token else [])], countdown=after or None)
    except (OperationalError, OSError) as error:
        logger.warning("Broker unreachable (%s): no tick until the sweep.", type(error).__name__)


def task(name: str) -> Any:
    """One of this app's tasks, by its name: the tasks import this module."""
    return current_app.tasks[f"renders.tasks.{name}"]


def task_of(step: Step) -> tuple[Any, list[str]]:
    """The task that takes a step, and its arguments."""
    name = "save_media" if step.do == "media" else f"{step.do}_render"
    return task(name), [str(step.render_id), *([step.token] if step.token else [])]


def _send(step: Step) -> bool:
    """Send one step as a message; True if the broker accepted it."""
    celery_task, args = task_of(step)
    try:
        celery_task.apply_async(args, countdown=step.after or None)
    except (OperationalError, OSError) as error:
        with log_context.about(render=step.render_id):
            logger.warning(
                "Broker unreachable (%s): %s of render %s waits for the sweep.",
                type(error).__name__,
                step.do,
                step.render_id,
            )
        return False
    return True


def _add(steps: list[Step]) -> None:
    """Add these polls to the sorted set, and release the leases that their chains held."""
    if not steps:
        return
    now = time.time()
    try:
        polls().add({step.render_id: now + step.after for step in steps})
        poll_leases().release_many(
            {str(step.render_id): step.token for step in steps if step.token}
        )
    except REDIS_DOWN as error:
        logger.warning(
            "Redis unreachable (%s): %d polls wait for the sweep.", type(error).__name__, len(steps)
        )


def _notify(steps: list[Step]) -> None:
    """Wake up waiting `runrenders` processes; without that, they find the steps a little later."""
    if steps and connection.vendor == "postgresql" and not connection.in_atomic_block:
        try:
            with connection.cursor() as cursor:
                cursor.execute(f"NOTIFY {CHANNEL}")
        except (DatabaseError, InterfaceError) as error:
            logger.warning("Nobody was woken up (%s).", type(error).__name__)
