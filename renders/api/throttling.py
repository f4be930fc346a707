"""Rate limits: requests per user and minute, counted in Redis for all web processes.

If Redis is down, requests are not limited, and the log says so. After a failure, Redis is not
used for some seconds, so that a silent server does not delay every request.
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

# The minute starts with its first request. A counter without expiry would never be deleted, so
# one is set whenever it is missing.
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
    """A minute's limit and count; `reset` is the number of seconds until the next minute."""

    limit: int
    count: int
    reset: int

    @property
    def headers(self) -> dict[str, str]:
        """The headers for every reply, so that callers can slow down in time."""
        return {
            "RateLimit-Limit": str(self.limit),
            "RateLimit-Remaining": str(max(0, self.limit - self.count)),
            "RateLimit-Reset": str(self.reset),
        }

    def check(self) -> None:
        """Raise `Problem` if the limit is exceeded."""
        if self.count > self.limit:
            raise Problem(
                429,
                f"More than {self.limit:,} requests in a minute; wait {self.reset} s.",
                Retry_After=str(self.reset),
            )


class _Rest:
    """Until when this process does not use Redis, after a failure."""

    until = 0.0


def count_request(user: Any) -> Quota | None:
    """Count a request of this user; None if requests are not counted."""
    limit = conf.API_REQUESTS_PER_MINUTE
    return _count(f"user:{user.pk}", limit) if limit else None


def count_refusal(address: str) -> None:
    """Count an invalid token from this address. Raises `Problem` if there were too many.

    Valid tokens are not limited by address: many users, or our own proxy, can share one.
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
