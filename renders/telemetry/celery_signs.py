"""Health signals of Celery's own processes; `renders.tasks` imports them into each.

Beat records in Redis that it sent the sweep, which distinguishes a dead beat from a sweep that no
worker takes. Only beat does this, and it never waits for the database. Workers report their time
on request, since differing clocks break the quota per minute.
"""

import logging
import time
from typing import Any

from celery.signals import after_task_publish, beat_init, worker_init

from renders.celery_settings import SWEEP_TASK
from renders.coordination.connections import REDIS_DOWN, redis_client, uses_redis

logger = logging.getLogger(__name__)

KEY = "sume:beat"
COMMAND = "renders_clock"


@beat_init.connect
def listen(**kwargs: Any) -> None:
    """Record each sweep that this process sends from now on."""
    after_task_publish.connect(leave, sender=SWEEP_TASK)


def leave(**kwargs: Any) -> None:
    """Record the present time in Redis; without Redis, do nothing."""
    if uses_redis():
        try:
            redis_client().set(KEY, f"{time.time():.3f}")
        except REDIS_DOWN as error:
            logger.warning("Redis unreachable (%s): no sign of beat.", type(error).__name__)


@worker_init.connect
def register(**kwargs: Any) -> None:
    """Add `COMMAND` to the commands that workers answer."""
    from celery.worker.control import inspect_command  # only workers need this import

    inspect_command(name=COMMAND, help="The time by this worker's clock.")(tell)


def tell(state: Any) -> float:
    """The worker's time in Unix seconds."""
    return time.time()
