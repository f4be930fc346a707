"""Signs that Celery's own processes give; `renders.tasks` brings them into each.

Beat notes in Redis that it sent the sweep: that tells a silent beat from a sweep that nobody takes.
Only beat listens for that, and it never waits for the database. Workers tell the time when they are
asked, since clocks that differ break the plan's minute.
"""

import logging
import time
from typing import Any

from celery.signals import after_task_publish, beat_init, worker_init

from renders.celery_settings import SWEEP_TASK
from renders.coordination.connections import REDIS_DOWN, redis_client, uses_redis

logger = logging.getLogger(__name__)

KEY = "sume:beat"


@beat_init.connect
def listen(**kwargs: Any) -> None:
    """From now on, each sweep that this process sends leaves a sign."""
    after_task_publish.connect(leave, sender=SWEEP_TASK)


def leave(**kwargs: Any) -> None:
    """Note the time, for as long as Redis keeps it; without Redis, say nothing."""
    if uses_redis():
        try:
            redis_client().set(KEY, f"{time.time():.3f}")
        except REDIS_DOWN as error:
            logger.warning("Redis unreachable (%s): no sign of beat.", type(error).__name__)


COMMAND = "renders_clock"


@worker_init.connect
def register(**kwargs: Any) -> None:
    """Add the command to those that workers answer to."""
    from celery.worker.control import inspect_command  # only workers need what this brings

    inspect_command(name=COMMAND, help="The time by this worker's clock.")(tell)


def tell(state: Any) -> float:
    """Unix seconds."""
    return time.time()
