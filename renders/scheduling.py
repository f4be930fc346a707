"""Puts the next step of a render into Celery. Knows when, not why.

A message is a hint: where the broker cannot be reached the step is only late, because the
sweep finds it in the database.
"""

import logging
from collections.abc import Iterable

from kombu.exceptions import OperationalError

from renders.steps import Step

logger = logging.getLogger(__name__)


def follow(steps: Iterable[Step]) -> None:
    """Have these steps taken; stops at the first that the broker does not take."""
    all(_send(step) for step in steps)


def _send(step: Step) -> bool:
    """Whether the broker took the message."""
    from renders import tasks  # here, since tasks say what follows through this module

    args = [str(step.render_id)]
    if step.token is not None:
        args.append(step.token)
    task = getattr(tasks, f"{step.do}_render")
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
