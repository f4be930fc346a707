"""How many requests a minute each API key may make."""

import math
from collections import defaultdict, deque
from dataclasses import dataclass

from .replies import ApiError

WINDOW_SECONDS = 60.0
READS_PER_WRITE = 40


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


class Budgets:
    """The budgets of writes and of reads; `writes_per_minute` None: no limit."""

    def __init__(self, writes_per_minute: int | None) -> None:
        writes = writes_per_minute
        self._writes = None if writes is None else Budget(writes)
        self._reads = None if writes is None else Budget(writes * READS_PER_WRITE)

    def spend(self, caller: str, now: float, *, write: bool) -> dict[str, str]:
        """Take one request from the caller's minute; the `RateLimit-*` headers.

        Raises ApiError 429 `rate_limit_exceeded` with Retry-After when it is used up.
        """
        budget = self._writes if write else self._reads
        if budget is None:
            return {}
        allowance = budget.spend(caller, now)
        if allowance.allowed:
            return allowance.headers()
        raise ApiError(
            429,
            "rate_limit_exceeded",
            f"More than {allowance.limit} {'writes' if write else 'reads'} in a minute.",
            retryable=True,
            retry_after=str(allowance.reset_seconds),
        )
