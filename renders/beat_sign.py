"""Beat's own sign of life, in Redis: tells a beat that is silent from a sweep that nobody takes.

Beat sends the sweep, a worker does it. Only beat listens here; it never waits for the database.
"""

import logging
import time
from typing import Any

from celery.signals import after_task_publish, beat_init

from renders.celery_settings import SWEEP_TASK
from renders.connections import REDIS_DOWN, redis_client, uses_redis

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
