"""Hold a lease for the length of one step, where Redis can be reached."""

import logging
from collections.abc import Iterator
from contextlib import contextmanager

from renders.connections import REDIS_DOWN
from renders.lease import Leases

logger = logging.getLogger(__name__)


@contextmanager
def holding(leases: Leases, name: str, life: float) -> Iterator[bool]:
    """Whether the step may be taken: False while somebody else is at it.

    Redis away: it is taken without a lease, and the log says so.
    """
    token = None
    try:
        token = leases.acquire(name, life)
        free = token is not None
    except REDIS_DOWN as error:
        logger.warning(
            "Redis unreachable (%s): render %s goes on without a lease.",
            type(error).__name__,
            name,
        )
        free = True
    try:
        yield free
    finally:
        if token is not None:
            try:
                leases.release(name, token)
            except REDIS_DOWN:
                logger.warning("Redis unreachable: the lease of %s runs out by itself.", name)
