"""Numbers on a command line: what is taken, and what is said where one is not."""

import argparse
from typing import Any

import pytest

from renders.management import arguments

TAKEN = [
    (arguments.port_number, "0", 0),
    (arguments.port_number, "65535", 65535),
    (arguments.seconds, "0", 0.0),
    (arguments.seconds, "1.5", 1.5),
    (arguments.some_seconds, "0.01", 0.01),
    (arguments.count, "1", 1),
    (arguments.count_or_none, "0", 0),
    (arguments.slots, "1", 1),
    (arguments.slots, "100000", 100_000),
    (arguments.batch, "10000", 10_000),
    (arguments.some_or_none, "0", 0),
    (arguments.some_or_none, "10000", 10_000),
    (arguments.hours, "0.5", 0.5),
    (arguments.hours, "100000", 100_000.0),
    (arguments.share, "0", 0.0),
    (arguments.share, "1", 1.0),
]
REFUSED = [
    (arguments.port_number, "65536", "must be a port from 0 to 65535, not '65536'"),
    (arguments.port_number, "-1", "must be a port from 0 to 65535, not '-1'"),
    (arguments.seconds, "-1", "must be a number of seconds, 0 or more, not '-1'"),
    (arguments.seconds, "inf", "must be a number of seconds, 0 or more, not 'inf'"),
    (arguments.some_seconds, "0", "must be a number of seconds above 0, not '0'"),
    (arguments.count, "0", "must be a whole number, 1 or more, not '0'"),
    (arguments.count, "1.5", "must be a whole number, 1 or more, not '1.5'"),
    (arguments.count_or_none, "-1", "must be a whole number, 0 or more, not '-1'"),
    (arguments.slots, "0", "must be a whole number from 1 to 100000, not '0'"),
    (arguments.slots, "100001", "must be a whole number from 1 to 100000, not '100001'"),
    (arguments.slots, "many", "must be a whole number from 1 to 100000, not 'many'"),
    (arguments.slots, "9" * 5000, "must be a whole number from 1 to 100000, not"),
    # SQLite takes so many values in a statement and no more.
    (arguments.batch, "10001", "must be a whole number from 1 to 10000, not '10001'"),
    (arguments.some_or_none, "-1", "must be a whole number from 0 to 10000, not '-1'"),
    (arguments.some_or_none, "9" * 5000, "must be a whole number from 0 to 10000, not"),
    (arguments.hours, "0", "must be a number of hours above 0, at most 100000, not '0'"),
    (arguments.hours, "100001", "must be a number of hours above 0, at most 100000, not '100001'"),
    # In UTC, which databases ask for, these are before the first year and after the last one.
    (arguments.moment, "0001-01-01T00:00+05:00", "must be like 2026-01-31 or"),
    (arguments.moment, "9999-12-31T23:59-10:00", "must be like 2026-01-31 or"),
    (arguments.share, "1.01", "must be a share between 0 and 1, not '1.01'"),
    (arguments.share, "nan", "must be a share between 0 and 1, not 'nan'"),
]


@pytest.mark.parametrize(("read", "text", "value"), TAKEN)
def test_what_is_allowed_is_read(read: Any, text: str, value: float) -> None:
    assert read(text) == value


@pytest.mark.parametrize(("read", "text", "words"), REFUSED)
def test_what_is_not_allowed_is_told(read: Any, text: str, words: str) -> None:
    with pytest.raises(argparse.ArgumentTypeError) as caught:
        read(text)
    assert str(caught.value).startswith(words)
