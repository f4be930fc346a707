"""Numbers on a command line, as types for argparse; and what two commands share."""

import argparse
import math
from typing import Any

from django.conf import settings

from renders.conf import conf


def port_number(text: str) -> int:
    """An argparse type: 0 to 65535."""
    return _checked(int, text, lambda port: 0 <= port <= 65535, "a port from 0 to 65535")


def seconds(text: str) -> float:
    """An argparse type: a time that can be 0."""
    return _checked(float, text, lambda value: value >= 0, "a number of seconds, 0 or more")


def some_seconds(text: str) -> float:
    """An argparse type: a time above 0."""
    return _checked(float, text, lambda value: value > 0, "a number of seconds above 0")


def count(text: str) -> int:
    """An argparse type: 1 or more."""
    return _checked(int, text, lambda value: value >= 1, "a whole number, 1 or more")


def count_or_none(text: str) -> int:
    """An argparse type: 0 or more."""
    return _checked(int, text, lambda value: value >= 0, "a whole number, 0 or more")


def slots(text: str) -> int:
    """An argparse type: 1 to 100,000."""
    return _checked(
        int, text, lambda value: 1 <= value <= 100_000, "a whole number from 1 to 100000"
    )


def add_slots(parser: argparse.ArgumentParser) -> None:
    """Add `--slots`, for commands that read."""
    parser.add_argument(
        "--slots",
        type=slots,
        help=f"most reads under way (RENDERS_READS_AT_ONCE: {conf.READS_AT_ONCE})",
    )


def use_slots(given: int | None) -> int:
    """Have this process read that many at once, and keep as many connections; how many it is."""
    if given:
        settings.RENDERS = {**settings.RENDERS, "READS_AT_ONCE": given}
    return conf.READS_AT_ONCE


def share(text: str) -> float:
    """An argparse type: 0 to 1."""
    return _checked(float, text, lambda value: 0 <= value <= 1, "a share between 0 and 1")


def _checked(convert: Any, text: str, allowed: Any, wanted: str) -> Any:
    try:
        value = convert(text)
        fine = math.isfinite(value) and allowed(value)
    except (ValueError, OverflowError):
        fine = False
    if not fine:
        raise argparse.ArgumentTypeError(f"must be {wanted}, not {text!r}")
    return value
