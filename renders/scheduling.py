"""Puts the next step of a render into Celery. Knows when, not why.

A message is a hint: where the broker cannot be reached the step is only late, because the
sweep finds it in the database.
"""

import logging
from collections.abc import Iterable
from typing import Any

from kombu.exceptions import OperationalError

from renders.steps import Step

logger = logging.getLogger(__name__)


def follow(steps: Iterable[Step]) -> None:
    """Have these steps taken; stops at the first that the broker does not take."""
    all(_send(step) for step in steps)


def task_of(step: Step) -> tuple[Any, list[str]]:
    """The task that takes a step, and its arguments."""
    from renders import tasks  # here, since tasks say what follows through this module

    task = tasks.save_media if step.do == "media" else getattr(tasks, f"{step.do}_render")
    return task, [str(step.render_id), *([step.token] if step.token else [])]


def _send(step: Step) -> bool:
    """Whether the broker took the message."""
    task, args = task_of(step)
    try:
        task.apply_async(args, countdown=step.after or None)
    except (OperationalError, OSError) as error:
        logger.warning(
            "Broker unreachable (%s): %s of render %s waits for the sweep.",
            type(error).__name__,
            step.do,
            step.render_id,
        )
        return False
    return True
