"""Ticks: Celery tasks that serve the sorted set, so that it needs no process of its own.

A tick reads due jobs for a while and then schedules the next tick. A token lease keeps this chain
single, as with the polls of one job. If a chain has ended, the sweep starts it again.
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

# A tick continues for this long while reads are due.
TICK_SECONDS = 10.0
# It ends early if no read is due within this time; a read added later waits for the next tick.
REST_SECONDS = 1.0
TURN_SECONDS = 0.1
# After a worker was killed, its chain's lease expires in this time; a live tick renews it often.
LEASE_SECONDS = 10.0
RENEW_SECONDS = 1.0


def longest_seconds() -> float:
    """Longest duration of a tick, including the answers that it waits for at its end."""
    return TICK_SECONDS + conf.REQUEST_TIMEOUT_SECONDS + 1


def tick(
    chain: str,
    token: str | None,
    follow: Callable[[Sequence[Step]], None],
    go_on: Callable[[str, float, str], None],
) -> None:
    """Read due jobs, then schedule the next tick by `go_on(chain, seconds, token)`.

    Without a token, a tick starts the chain, and does nothing if that is running already.
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
            # Before the last answers have come: a slow one does not delay the other reads.
            go_on(chain, wait, following)
    finally:
        reader.finish(time.monotonic() + conf.REQUEST_TIMEOUT_SECONDS + 1)


class Lease:
    """The lease of a chain of ticks.

    If Redis is unreachable, this tick goes on without a lease and schedules no successor.
    """

    def __init__(self, chain: str) -> None:
        self._chain = chain
        self._leases = tick_leases()
        self._token: str | None = None

    def take(self, token: str | None) -> bool:
        """True if this tick may read."""
        try:
            if token:
                self._token = self._leases.swap(self._chain, token, LEASE_SECONDS)
            else:
                self._token = self._leases.acquire(self._chain, LEASE_SECONDS)
        except REDIS_DOWN as error:
            self._go_on_without(error)
            return True
        return self._token is not None

    def keep(self, seconds: float) -> str | None:
        """Extend the lease to `seconds` from now; its new token, or None if it was lost."""
        if self._token:
            try:
                self._token = self._leases.hand_on(self._chain, self._token, seconds)
            except REDIS_DOWN as error:
                self._go_on_without(error)
        return self._token

    def _go_on_without(self, error: Exception) -> None:
        self._token = None
        logger.warning(
            "Redis unreachable (%s): a tick without its lease; the sweep calls the next.",
            type(error).__name__,
        )


def _read(reader: Reader, lease: Lease) -> None:
    """Read due jobs for up to `TICK_SECONDS`."""
    end = time.monotonic() + TICK_SECONDS
    renew_at = time.monotonic() + RENEW_SECONDS
    while time.monotonic() < end:
        try:
            reader.turn(TURN_SECONDS)
        except DATABASE_FAILS as error:
            logger.warning("%s; again in a moment.", in_words(error))
            time.sleep(REST_SECONDS)  # the next tick has its own connection
            break
        if not reader.busy and _rest(reader) >= REST_SECONDS:
            break
        if time.monotonic() >= renew_at:
            renew_at = time.monotonic() + RENEW_SECONDS
            lease.keep(LEASE_SECONDS)


def _rest(reader: Reader) -> float:
    """Seconds until the next read is due; `REST_SECONDS` if none waits."""
    due = reader.next_due
    return REST_SECONDS if due is None else max(0.0, due - time.time())
