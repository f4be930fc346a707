"""Delays: when to act next. Pure functions in seconds; the present time is an argument."""

import math
import random
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any


def parse_delay(value: Any) -> float | None:
    """Parse a delay in a JSON reply: seconds, or None if the value is not a delay.

    A number, or text with a number, counts if it is finite and not negative. Everything else
    (missing, boolean, NaN, infinity, list, object) is not a delay.
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
    """The wait in seconds for the delay that Sume asked for, within bounds: never a tight loop."""
    return max(shortest, min(longest, default if delay is None else delay))


def parse_retry_after(value: str | None, now: datetime) -> float | None:
    """Parse a `Retry-After` header, seconds or an HTTP date (RFC 9110, 10.2.3).

    Returns seconds from `now`, zero or more, or None if the header is neither.
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
    """Parse an HTTP date (RFC 9110, 5.6.7), as in the header `Date`; None if it is not one."""
    try:
        at = parsedate_to_datetime(value or "")
    except (ValueError, TypeError, IndexError, OverflowError):
        return None
    return at.replace(tzinfo=UTC) if at.tzinfo is None else at


def back_off(failures: int, *, base: float, longest: float) -> float:
    """The wait after the `failures`-th failure in a row (1 is the first), in seconds.

    It doubles each time, with jitter between half and the whole of the step, so that renders that
    failed together are not retried together.
    """
    step = min(longest, base * 2.0 ** min(max(failures, 1) - 1, 30))
    return step * random.uniform(0.5, 1.0)  # noqa: S311 (jitter, no secret)
