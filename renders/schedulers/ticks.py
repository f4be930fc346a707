"""Ticks: the sorted set served by Celery, with no process of its own to operate.

A tick reads what is due for a while and then has the next one follow: a chain, which a token
lease keeps single, as with the polls of one job. The sweep begins a chain that has ended.
"""

import logging
import time
from collections.abc import Callable, Sequence

from renders.conf import conf
from renders.coordination.connections import REDIS_DOWN, poll_leases, polls, tick_leases
from renders.lifecycle.steps import Step
from renders.models.outages import DATABASE_FAILS, in_words
from renders.schedulers.queues import SetQueue
from renders.schedulers.reader import Reader
from renders.sume.clients import sume

logger = logging.getLogger(__name__)

# So long a tick goes on while something is due.
TICK_SECONDS = 10.0
# It ends where nothing is due for so long; what is added while it rests waits for the next.
REST_SECONDS = 1.0
TURN_SECONDS = 0.1
# A chain whose worker was killed may begin anew after so long; a living one says so every second.
LEASE_SECONDS = 10.0
RENEW_SECONDS = 1.0


def longest_seconds() -> float:
    """How long a tick takes at most, with the answers that it waits for at its end."""
    return TICK_SECONDS + conf.REQUEST_TIMEOUT_SECONDS + 1


def tick(
    chain: str,
    token: str | None,
    follow: Callable[[Sequence[Step]], None],
    go_on: Callable[[str, float, str], None],
) -> None:
    """Read what is due, then `go_on(chain, seconds, token)` has the next tick follow.

    Without a token, only where no chain of that name lives.
    """
    lease = Lease(chain)
    if not lease.take(token):
        return
    queue = SetQueue(polls(), poll_leases())
    reader = Reader(queue, sume, slots=conf.READS_AT_ONCE, follow=follow)
    try:
        _read(reader, lease)
        wait = min(REST_SECONDS, _rest(reader))
        if following := lease.keep(wait + LEASE_SECONDS):
            # Before the last answers are here: who is slow does not hold up the others.
            go_on(chain, wait, following)
    finally:
        reader.finish(time.monotonic() + conf.REQUEST_TIMEOUT_SECONDS + 1)


class Lease:
    """The lease of a chain of ticks. Redis away: this tick goes on without, and calls no other."""

    def __init__(self, chain: str) -> None:
        self._chain = chain
        self._leases = tick_leases()
        self._token: str | None = None

    def take(self, token: str | None) -> bool:
        """Whether this tick may read."""
        try:
            if token:
                self._token = self._leases.swap(self._chain, token, LEASE_SECONDS)
            else:
                self._token = self._leases.acquire(self._chain, LEASE_SECONDS)
        except REDIS_DOWN as error:
            self._without(error)
            return True
        return self._token is not None

    def keep(self, seconds: float) -> str | None:
        """Hold it for so long from now on; the token, None where it is not ours any more."""
        if self._token:
            try:
                self._token = self._leases.hand_on(self._chain, self._token, seconds)
            except REDIS_DOWN as error:
                self._without(error)
        return self._token

    def _without(self, error: Exception) -> None:
        self._token = None
        logger.warning(
            "Redis unreachable (%s): a tick without its lease; the sweep calls the next.",
            type(error).__name__,
        )


def _read(reader: Reader, lease: Lease) -> None:
    """Read for a while."""
    end = time.monotonic() + TICK_SECONDS
    renew_at = time.monotonic() + RENEW_SECONDS
    while time.monotonic() < end:
        try:
            reader.turn(TURN_SECONDS)
        except DATABASE_FAILS as error:
            logger.warning("%s; again in a moment.", in_words(error))
            time.sleep(REST_SECONDS)  # then the next tick, with a connection of its own
            break
        if not reader.busy and _rest(reader) >= REST_SECONDS:
            break
        if time.monotonic() >= renew_at:
            renew_at = time.monotonic() + RENEW_SECONDS
            lease.keep(LEASE_SECONDS)


def _rest(reader: Reader) -> float:
    """Seconds until something is due."""
    due = reader.next_due
    return REST_SECONDS if due is None else max(0.0, due - time.time())
