"""The app's metrics: their names, labels and buckets, and this process's counts.

A label has only the values listed here; anything else counts as `other`, so that no remote party
decides how much is stored.

Counts stay in this process until `renders.telemetry.store` hands them over. Counting never waits
and never fails, is safe from any thread, and starts from zero in a forked process.
"""

import os
import threading
from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product

from renders.conf import workspaces
from renders.states import TERMINAL, Kind

OTHER = "other"
# In a histogram's keys: the sum of its values.
SUM = "sum"


@dataclass(frozen=True)
class Meter:
    """A counter; with buckets (upper bounds, in its unit) a histogram."""

    help: str
    labels: Mapping[str, Sequence[str]] = field(default_factory=dict)
    by_workspace: bool = False
    """Whether it also has the label `workspace`, as the first one."""
    buckets: Sequence[float] = ()
    scale: int = 1
    """Whole numbers are stored: this many make one of the unit that is shown."""

    def known(self) -> dict[str, Sequence[str]]:
        """All labels, each with its present values."""
        return {**({"workspace": workspaces.names()} if self.by_workspace else {}), **self.labels}

    def cells(self) -> list[tuple[str, ...]]:
        """All combinations of the labels' values, without `other`."""
        return list(product(*self.known().values()))


# Histograms keep their sums in millionths of a second.
MILLIONTHS = 1_000_000
KINDS = [str(kind) for kind in Kind]
ERRORS = ["back_off", "unreachable", "paused", "unknown", "refused"]

COUNTERS: dict[str, Meter] = {
    "submits": Meter(
        "POSTs that ask for a job, by what came of them.",
        {"outcome": ["accepted", "idempotency_hit", *ERRORS]},
        by_workspace=True,
    ),
    "reads": Meter(
        "Reads of a job's status, by what they told.",
        {"outcome": ["waiting", "ended", "not_found", *ERRORS]},
    ),
    "ended": Meter(
        "Renders that have ended and are handled.",
        {"status": [str(status) for status in TERMINAL], "kind": KINDS},
    ),
    "cost_usd": Meter(
        "What handled renders cost, in US dollars.",
        {"kind": KINDS},
        by_workspace=True,
        scale=MILLIONTHS,
    ),
    "sweeps": Meter("Sweeps that were made."),
    "repairs": Meter(
        "Renders that the sweep put back, by what had stopped.",
        {
            "repair": [
                "reaped",
                "canceled",
                "given_up",
                "submit",
                "poll",
                "finish",
                "restored",
            ]
        },
    ),
    "lease_losses": Meter(
        "Reads given up, or made without a lease, by why.",
        {"reason": ["spent", "held", "lost", "fenced", "unreachable"]},
    ),
    "webhooks": Meter(
        "Webhook requests, by what came of them.",
        {"outcome": ["taken", "known", "refused", "unreadable", "not_kept", "off"]},
    ),
    "media": Meter(
        "Tries to store a picture or clip.",
        {"outcome": ["stored", "postponed", "given_up", "lost"]},
    ),
    "finish_failures": Meter(
        "Finishes that are tried again, by what failed.", {"reason": ["sume", "receiver"]}
    ),
}

HISTOGRAMS: dict[str, Meter] = {
    "request_duration_seconds": Meter(
        "How long requests to Sume took, answered or not.",
        {
            "request": [
                "submit",
                "status",
                "result",
                "record",
                "cancel",
                "balance",
                "jobs",
                "avatars",
            ]
        },
        buckets=(0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30),
        scale=MILLIONTHS,
    ),
    "poll_lateness_seconds": Meter(
        "How long after its time a read of a status began.",
        buckets=(0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 15, 60, 300),
        scale=MILLIONTHS,
    ),
    "stage_duration_seconds": Meter(
        "How long renders stayed: pending (until Sume took them), at_sume, finishing.",
        {"stage": ["pending", "at_sume", "finishing"]},
        buckets=(1, 5, 15, 30, 60, 120, 300, 600, 1800, 3600, 21600, 86400),
        scale=MILLIONTHS,
    ),
}

METERS = COUNTERS | HISTOGRAMS


class _Counts:
    """The counts of this process, by `key_of`."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.kept: dict[str, int] = {}


_counts = _Counts()


def count(name: str, amount: int = 1, **labels: str) -> None:
    """Add to a counter. All of its labels are needed, in any order."""
    key = key_of(name, _values(COUNTERS[name], labels))
    with _counts.lock:
        _counts.kept[key] = _counts.kept.get(key, 0) + amount


def observe(name: str, value: float, **labels: str) -> None:
    """Add one value to a histogram; a value below zero (a clock put back) counts as zero."""
    meter = HISTOGRAMS[name]
    values, value = _values(meter, labels), max(0.0, value)
    bucket = key_of(name, [*values, str(bisect_left(meter.buckets, value))])
    total = key_of(name, [*values, SUM])
    with _counts.lock:
        kept = _counts.kept
        kept[bucket] = kept.get(bucket, 0) + 1
        kept[total] = kept.get(total, 0) + round(value * meter.scale)


def take() -> dict[str, int]:
    """The counts since the last call, which are handed over to the caller."""
    with _counts.lock:
        taken, _counts.kept = _counts.kept, {}
    return taken


def give_back(counts: Mapping[str, int]) -> None:
    """Add counts that could not be handed over. Their number is limited by the meters' cells."""
    with _counts.lock:
        for key, amount in counts.items():
            _counts.kept[key] = _counts.kept.get(key, 0) + amount


def key_of(name: str, values: list[str]) -> str:
    """The key of a count: the meter's name and the values of its labels."""
    return "|".join([name, *values])


def _values(meter: Meter, labels: Mapping[str, str]) -> list[str]:
    """The labels' values in the meter's order; an unlisted value is `other`."""
    allowed = meter.known()
    if labels.keys() != allowed.keys():
        raise TypeError(f"Its labels are {list(allowed)}.")
    return [labels[name] if labels[name] in values else OTHER for name, values in allowed.items()]


def _forget() -> None:
    """In a child process: start from zero, since the parent hands over its own counts."""
    global _counts
    _counts = _Counts()


os.register_at_fork(after_in_child=_forget)
