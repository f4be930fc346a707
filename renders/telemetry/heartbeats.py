"""Heartbeats: processes that work by themselves record in the database that they are alive."""

import logging
import socket
import time

from django.db.models.functions import Now
from django.utils import timezone

from renders.models import Heartbeat
from renders.models.outages import DATABASE_FAILS, in_words

logger = logging.getLogger(__name__)

# The names of the heartbeats.
SWEEP, POLLRENDERS, RUNRENDERS = "sweep", "pollrenders", "runrenders"
# A loop writes its heartbeat this often.
BEAT_SECONDS = 5.0


def note(name: str) -> None:
    """Record that this ran just now. A database outage is only logged."""
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
    """The heartbeat of a loop, which may call `beat` as often as it likes."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._next_at = 0.0  # on the monotonic clock

    def beat(self) -> None:
        """Write the heartbeat if it is due."""
        if time.monotonic() >= self._next_at:
            self._next_at = time.monotonic() + BEAT_SECONDS
            note(self._name)
