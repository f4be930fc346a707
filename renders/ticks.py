"""Ticks: the sorted set served by Celery, with no process of its own to operate.

A tick reads what is due for a while and then has the next one follow: a chain, which a token
lease keeps single, as with the polls of one job. The sweep begins a chain that has ended.
"""

import logging
import time
from collections.abc import Callable, Sequence

from renders.conf import conf
from renders.connections import REDIS_DOWN, poll_leases, polls, sume, tick_leases
from renders.due import SetQueue
from renders.reader import Reader
from renders.steps import Step

logger = logging.getLogger(__name__)

# So long a tick goes on while something is due.
TICK_SECONDS = 10.0
# It ends where nothing is due for so long. No render is read sooner after it was sent.
REST_SECONDS = 1.0
TURN_SECONDS = 0.1


def tick(
    chain: str,
    token: str | None,
    follow: Callable[[Sequence[Step]], None],
    go_on: Callable[[str, float, str], None],
) -> None:
    """Read what is due, then `go_on(chain, seconds, token)` has the next tick follow.

    Without a token, only where no chain of that name lives.
    """
    life = TICK_SECONDS + conf.grace_seconds
    try:
        leases = tick_leases()
        own = leases.swap(chain, token, life) if token else leases.acquire(chain, life)
    except REDIS_DOWN as error:
        logger.warning("Redis unreachable (%s): no tick until the sweep.", type(error).__name__)
        return
    if own is None:
        return
    queue = SetQueue(polls(), poll_leases())
    reader = Reader(queue, sume(), slots=conf.READS_AT_ONCE, follow=follow)
    try:
        end = time.monotonic() + TICK_SECONDS
        while time.monotonic() < end:
            reader.turn(TURN_SECONDS)
            if not reader.busy and _rest(reader) >= REST_SECONDS:
                break
        wait = min(REST_SECONDS, _rest(reader))
        try:
            following = leases.hand_on(chain, own, wait + life)
        except REDIS_DOWN as error:
            logger.warning("Redis unreachable (%s): no tick until the sweep.", type(error).__name__)
            following = None
        if following:
            # Before the last answers are here: who is slow does not hold up the others.
            go_on(chain, wait, following)
    finally:
        reader.finish(time.monotonic() + conf.REQUEST_TIMEOUT_SECONDS + 1)


def _rest(reader: Reader) -> float:
    """Seconds until something is due."""
    due = reader.next_due
    return REST_SECONDS if due is None else max(0.0, due - time.time())
