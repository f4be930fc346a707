"""Counts of this process, until `renders.tallies` hands them over. Nothing here waits or fails.

Safe to use from any thread; a process that is forked starts with nothing.
"""

import os
import threading
from bisect import bisect_left
from collections.abc import Mapping

from renders.meters import COUNTERS, HISTOGRAMS, OTHER, Meter

SUM = "sum"


class _Counts:
    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.kept: dict[str, int] = {}


_counts = _Counts()


def count(name: str, amount: int = 1, **labels: str) -> None:
    """Add to a counter. The labels are all that it has, in any order."""
    key = key_of(name, _values(COUNTERS[name], labels))
    with _counts.lock:
        _counts.kept[key] = _counts.kept.get(key, 0) + amount


def observe(name: str, value: float, **labels: str) -> None:
    """Add one value to a histogram; what is below zero (a clock put back) counts as zero."""
    meter = HISTOGRAMS[name]
    values, value = _values(meter, labels), max(0.0, value)
    bucket = key_of(name, [*values, str(bisect_left(meter.buckets, value))])
    total = key_of(name, [*values, SUM])
    with _counts.lock:
        kept = _counts.kept
        kept[bucket] = kept.get(bucket, 0) + 1
        kept[total] = kept.get(total, 0) + round(value * meter.scale)


def take() -> dict[str, int]:
    """What was counted since the last time; it is the caller's now."""
    with _counts.lock:
        taken, _counts.kept = _counts.kept, {}
    return taken


def give_back(counts: Mapping[str, int]) -> None:
    """Keep what could not be handed over. There are no more keys than there are meters' cells."""
    with _counts.lock:
        for key, amount in counts.items():
            _counts.kept[key] = _counts.kept.get(key, 0) + amount


def key_of(name: str, values: list[str]) -> str:
    """Where it is kept."""
    return "|".join([name, *values])


def _values(meter: Meter, labels: Mapping[str, str]) -> list[str]:
    known = meter.known()
    if labels.keys() != known.keys():
        raise TypeError(f"Its labels are {list(known)}.")
    return [labels[name] if labels[name] in values else OTHER for name, values in known.items()]


def _forget() -> None:
    """In a child: what its parent has counted, the parent hands over."""
    global _counts
    _counts = _Counts()


os.register_at_fork(after_in_child=_forget)
