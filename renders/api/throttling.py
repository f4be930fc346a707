"""How often: requests of one user in a minute, counted in Redis for all web processes.

Redis is a cost saver here too. While it is away, everybody is let in and the log says so; after
a failure it is left alone for some seconds, so that a silent one does not slow down each request.
"""

import logging
import time
from dataclasses import dataclass
from typing import Any

from renders.conf import conf
from renders.coordination.connections import REDIS_DOWN, redis_client, uses_redis
from renders.presentation.problems import Problem

logger = logging.getLogger(__name__)

KEY = "renders:api:"
WINDOW_SECONDS = 60
REFUSALS_PER_MINUTE = 30
REST_SECONDS = 5.0

# The minute begins with its first request. A count without an end would never be forgotten.
_COUNT = """
local count = redis.call('INCR', KEYS[1])
local left = redis.call('PTTL', KEYS[1])
if left < 0 then
  redis.call('PEXPIRE', KEYS[1], ARGV[1])
  left = tonumber(ARGV[1])
end
return {count, left}
"""


@dataclass(frozen=True)
class Quota:
    """What is left of a minute: `reset` is in how many seconds the next one begins."""

    limit: int
    count: int
    reset: int

    @property
    def headers(self) -> dict[str, str]:
        """For every reply, so that callers can slow down in time."""
        return {
            "RateLimit-Limit": str(self.limit),
            "RateLimit-Remaining": str(max(0, self.limit - self.count)),
            "RateLimit-Reset": str(self.reset),
        }

    def check(self) -> None:
        """Raise `Problem` if there were too many."""
        if self.count > self.limit:
            raise Problem(
                429,
                f"More than {self.limit:,} requests in a minute; wait {self.reset} s.",
                Retry_After=str(self.reset),
            )


class _Rest:
    """Since when Redis is left alone, in this process."""

    until = 0.0


def count_request(user: Any) -> Quota | None:
    """Count a request of this user; None where nothing is counted."""
    limit = conf.API_REQUESTS_PER_MINUTE
    return _count(f"user:{user.pk}", limit) if limit else None


def count_refusal(address: str) -> None:
    """Count a wrong token from this address. Raises `Problem` if there were too many.

    Only wrong ones are held up: behind one address there can be many, and a proxy of ours.
    """
    quota = _count(f"refused:{address}", REFUSALS_PER_MINUTE)
    if quota:
        quota.check()


def _count(name: str, limit: int) -> Quota | None:
    if not uses_redis() or time.monotonic() < _Rest.until:
        return None
    try:
        count, left = redis_client().eval(_COUNT, 1, KEY + name, WINDOW_SECONDS * 1000)
    except REDIS_DOWN as error:
        _Rest.until = time.monotonic() + REST_SECONDS
        logger.warning(
            "Redis unreachable (%s): API requests are not counted for %g s.",
            type(error).__name__,
            REST_SECONDS,
        )
        return None
    return Quota(limit, int(count), max(1, -(-int(left) // 1000)))
