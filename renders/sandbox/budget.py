"""How many requests a minute each API key may make."""

import math
from collections import defaultdict, deque
from dataclasses import dataclass

WINDOW_SECONDS = 60.0


@dataclass(frozen=True)
class Allowance:
    """The answer to one request: let in or not, what is left, seconds until more is free."""

    allowed: bool
    limit: int
    remaining: int
    reset_seconds: int

    def headers(self) -> dict[str, str]:
        """The `RateLimit-*` headers."""
        return {
            "RateLimit-Limit": str(self.limit),
            "RateLimit-Remaining": str(self.remaining),
            "RateLimit-Reset": str(self.reset_seconds),
        }


class Budget:
    """A sliding window of one minute for each caller. Not thread-safe: `Rules` holds the lock."""

    def __init__(self, per_minute: int) -> None:
        self._limit = per_minute
        self._times: dict[str, deque[float]] = defaultdict(deque)

    def spend(self, caller: str, now: float) -> Allowance:
        """Take one request from `caller`'s minute, unless it is used up."""
        times = self._times[caller]
        while times and times[0] <= now - WINDOW_SECONDS:
            times.popleft()
        allowed = len(times) < self._limit
        if allowed:
            times.append(now)
        reset = math.ceil(times[0] + WINDOW_SECONDS - now)
        return Allowance(allowed, self._limit, self._limit - len(times), max(1, reset))
