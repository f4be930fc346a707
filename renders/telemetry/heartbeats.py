"""Signs of life: who works without being asked says so in the database, now and then.

Beat's own sign of life, in Redis: tells a beat that is silent from a sweep that nobody takes.

Beat sends the sweep, a worker does it. Only beat listens here; it never waits for the database.


Has each worker tell the time when it is asked: clocks that differ break the plan's minute.
"""

import logging
import socket
import time
from typing import Any

from celery.signals import after_task_publish, beat_init, worker_init
from django.db.models.functions import Now
from django.utils import timezone

from renders.celery_settings import SWEEP_TASK
from renders.coordination.connections import REDIS_DOWN, redis_client, uses_redis
from renders.models import Heartbeat
from renders.models.outages import DATABASE_FAILS, in_words

logger = logging.getLogger(__name__)

# The names of what must go on.
SWEEP, POLLRENDERS, RUNRENDERS = "sweep", "pollrenders", "runrenders"
# A loop writes its sign this often.
BEAT_SECONDS = 5.0


def note(name: str) -> None:
    """Say that this ran just now. Never raises for a database that does not take it."""
    beat = Heartbeat(name=name, at=timezone.now(), stored_at=Now(), host=socket.gethostname()[:200])
    try:
        Heartbeat.objects.bulk_create(
            [beat],
            update_conflicts=True,
            unique_fields=["name"],
            update_fields=["at", "stored_at", "host"],
        )
    except DATABASE_FAILS as error:
        logger.warning("No sign of life of %s: %s.", name, in_words(error))


class Pulse:
    """The sign of a loop, which calls `beat` as often as it likes."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._next_at = 0.0  # on the monotonic clock

    def beat(self) -> None:
        """Write the sign if it is time."""
        if time.monotonic() >= self._next_at:
            self._next_at = time.monotonic() + BEAT_SECONDS
            note(self._name)


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
