"""The counts of all processes together: one hash in Redis, or a table where there is no Redis.

To hand over costs one command, or one statement. Where the store is away, the counts stay in
their process and go with the next ones; nobody waits for that, and nothing is raised. What a
store took without saying so (a time-out) is counted twice: figures for graphs, not for bills.
"""

import logging
import time
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from django.db import DatabaseError, InterfaceError, connection

from renders.coordination.connections import REDIS_DOWN, redis_client, uses_redis
from renders.models import Tally
from renders.telemetry import metrics

logger = logging.getLogger(__name__)

KEY = "sume:metrics"
# Those who do many things in a second hand over once.
SOON_SECONDS = 1.0
# So long a store that is away is left alone.
REST_SECONDS = 10.0
STORE_AWAY = (*REDIS_DOWN, DatabaseError, InterfaceError)

_ADD = """
for i = 1, #ARGV, 2 do redis.call('HINCRBY', KEYS[1], ARGV[i], ARGV[i + 1]) end
return 1
"""


class _Times:
    """When this process hands over next (monotonic clock)."""

    soon_at = rests_until = 0.0


def flush() -> bool:
    """Hand over what this process has counted; whether nothing is left."""
    if time.monotonic() < _Times.rests_until or not _may_write():
        return False
    if not (counts := metrics.take()):
        return True
    _Times.soon_at = time.monotonic() + SOON_SECONDS
    try:
        if uses_redis():
            _add_to_redis(counts)
        else:
            Tally.objects.add(counts)
    except STORE_AWAY as error:
        metrics.give_back(counts)
        _Times.rests_until = time.monotonic() + REST_SECONDS
        # Whoever needs the store for more than this says so in the log.
        logger.debug("Counts wait in this process (%s).", type(error).__name__)
        return False
    return True


def flush_soon() -> None:
    """As `flush`, at most once in a second: for those who call it again and again."""
    if time.monotonic() >= _Times.soon_at:
        _Times.soon_at = time.monotonic() + SOON_SECONDS
        flush()


def totals() -> dict[str, int] | None:
    """All that was ever handed over, by `counting.key_of`; None while the store is away."""
    try:
        if not uses_redis():
            return Tally.objects.totals()
        found: Mapping[bytes, bytes] = redis_client().hgetall(KEY)
    except STORE_AWAY:
        return None
    return {key.decode(): int(value) for key, value in found.items()}


def _may_write() -> bool:
    """Not inside somebody's transaction: it would hold our rows until its end."""
    return uses_redis() or not connection.in_atomic_block


def _add_to_redis(counts: Mapping[str, int]) -> None:
    words = [word for key, amount in counts.items() for word in (key, amount)]
    _script(redis_client())(keys=[KEY], args=words)


@lru_cache(maxsize=8)
def _script(client: Any) -> Any:
    return client.register_script(_ADD)
