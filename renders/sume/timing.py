"""When to act next. Pure functions: the clock is an argument, seconds are the unit."""

import math
import random
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any


def parse_delay(value: Any) -> float | None:
    """Read a delay from a JSON reply: seconds, or None where the value names no time.

    A number, or text that holds one, is taken if it is finite and not negative. Everything
    else (missing, boolean, NaN, infinity, list, object) names no time.
    """
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    try:
        seconds = float(value)
    except (ValueError, OverflowError):
        # An integer too large for a float is still "very long".
        return math.inf if isinstance(value, int) and value > 0 else None
    return seconds if math.isfinite(seconds) and seconds >= 0 else None


def clamp(delay: float | None, *, default: float, shortest: float, longest: float) -> float:
    """Turn what Sume asked for into a wait in seconds, never a tight loop, never too long."""
    return max(shortest, min(longest, default if delay is None else delay))


def parse_retry_after(value: str | None, now: datetime) -> float | None:
    """Read a `Retry-After` header, seconds or an HTTP date (RFC 9110, 10.2.3).

    Returns seconds from `now`, zero or more, or None where it names no time.
    """
    if not value:
        return None
    value = value.strip()
    delay = parse_delay(value)
    if delay is not None:
        return delay
    at = parse_date(value)
    return None if at is None else max(0.0, (at - now).total_seconds())


def parse_date(value: str | None) -> datetime | None:
    """Read an HTTP date (RFC 9110, 5.6.7), as of the header `Date`; None where it is none."""
    try:
        at = parsedate_to_datetime(value or "")
    except (ValueError, TypeError, IndexError, OverflowError):
        return None
    return at.replace(tzinfo=UTC) if at.tzinfo is None else at


def back_off(failures: int, *, base: float, longest: float) -> float:
    """Wait after the `failures`-th failure in a row (1 is the first), in seconds.

    Doubles each time, with jitter: between half and the whole of the step, so that many
    renders that failed together do not come back together.
    """
    step = min(longest, base * 2.0 ** min(max(failures, 1) - 1, 30))
    return step * random.uniform(0.5, 1.0)  # noqa: S311 (jitter, no secret)
