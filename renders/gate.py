"""May we submit now? One answer for all workers, kept in Redis.

Where Redis cannot be reached the gate is open: Sume's own limits still hold, and a refused
submit costs nothing.
"""

import logging

from renders.connections import REDIS_DOWN, redis_client

logger = logging.getLogger(__name__)
PAUSE_KEY = "sume:gate:pause"


def pause(seconds: float, reason: str) -> None:
    """Close the gate for everybody; a pause that lasts longer already stays."""
    logger.warning("Submitting pauses for %.1f s, for all workers. Sume says: %s", seconds, reason)
    millis = max(1, int(seconds * 1000))
    try:
        client = redis_client()
        # Two that pause at once: the later one wins, and either pause is right.
        if client.pttl(PAUSE_KEY) < millis:
            client.set(PAUSE_KEY, reason[:300], px=millis)
    except REDIS_DOWN as error:
        logger.warning("Redis unreachable (%s): the pause is not shared.", type(error).__name__)


def closed_for() -> float:
    """Seconds until the gate opens; 0 where it is open."""
    try:
        return max(0, redis_client().pttl(PAUSE_KEY)) / 1000
    except REDIS_DOWN as error:
        logger.warning("Redis unreachable (%s): the gate counts as open.", type(error).__name__)
        return 0.0
