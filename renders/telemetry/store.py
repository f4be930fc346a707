"""The summed counts of all processes: one hash in Redis, or a table if there is no Redis.

Handing over costs one command or one statement. If the store is unreachable, the counts stay in
their process and go with the next ones; nothing waits and nothing is raised. Counts that a store
took before a time-out are counted twice: they are for graphs, not for bills.
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
# Busy processes hand over at most once in this time.
SOON_SECONDS = 1.0
# A store that is unreachable is not asked again for this time.
REST_SECONDS = 10.0
STORE_AWAY = (*REDIS_DOWN, DatabaseError, InterfaceError)

_ADD = """
for i = 1, #ARGV, 2 do redis.call('HINCRBY', KEYS[1], ARGV[i], ARGV[i + 1]) end
return 1
"""


class _Times:
    """The next hand-over of this process (monotonic clock)."""

    soon_at = rests_until = 0.0


def flush() -> bool:
    """Hand over this process's counts; True if none are left."""
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
        # Only debug: code that needs Redis or the database for its work logs the outage itself.
        logger.debug("Counts wait in this process (%s).", type(error).__name__)
        return False
    return True


def flush_soon() -> None:
    """As `flush`, but at most once a second: for frequent callers."""
    if time.monotonic() >= _Times.soon_at:
        _Times.soon_at = time.monotonic() + SOON_SECONDS
        flush()


def totals() -> dict[str, int] | None:
    """All counts handed over so far, by `metrics.key_of`; None if the store is unreachable."""
    try:
        if not uses_redis():
            return Tally.objects.totals()
        counts: Mapping[bytes, bytes] = redis_client().hgetall(KEY)
    except STORE_AWAY:
        return None
    return {key.decode(): int(value) for key, value in counts.items()}


def _may_write() -> bool:
    """Whether the store may be written: in a transaction, the table's rows would stay locked."""
    return uses_redis() or not connection.in_atomic_block


def _add_to_redis(counts: Mapping[str, int]) -> None:
    words = [word for key, amount in counts.items() for word in (key, amount)]
    _script(redis_client())(keys=[KEY], args=words)


@lru_cache(maxsize=8)
def _script(client: Any) -> Any:
    return client.register_script(_ADD)
