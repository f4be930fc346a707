"""The arguments of faults. Each is read by a function that raises ValueError with what it takes."""

import math
from typing import Any

ODD_POLLS: dict[str, Any] = {
    "missing": None,
    "string": "soon",
    "negative": -5,
    "zero": 0,
    "nan": math.nan,
    "huge": 1e12,
    "bool": True,
    "list": [5],
    "null": None,
}


def seconds(value: Any) -> float:
    """A time, 0 or more."""
    seconds = float(value)
    if isinstance(value, bool) or not math.isfinite(seconds) or seconds < 0:
        raise ValueError("takes a number of seconds, 0 or more")
    return seconds


def http_error(value: Any) -> int:
    """A status that says that something went wrong."""
    status = int(value)
    if not 400 <= status <= 599:
        raise ValueError("takes an HTTP status from 400 to 599")
    return status


def missing_result(value: Any) -> int:
    """A status of a result that is not there."""
    if int(value) not in (404, 409):
        raise ValueError("takes 404 or 409")
    return int(value)


def odd_poll(value: Any) -> str:
    """The name of an odd wait."""
    if value not in ODD_POLLS:
        raise ValueError(f"takes one of {', '.join(ODD_POLLS)}")
    return str(value)


def word(value: Any) -> str:
    """Any text."""
    if not isinstance(value, str) or not value:
        raise ValueError("takes a word")
    return value
