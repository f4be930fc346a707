"""Signs of life: who works without being asked says so in the database, now and then."""

import logging
import socket
import time

from django.db.models.functions import Now
from django.utils import timezone

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
