"""What is counted and measured over all processes: names, labels and their values, buckets.

A label has no value but those named here (anything else is counted as `other`), so that no remote
party decides how much is kept.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product

from renders import workspaces
from renders.states import TERMINAL, Kind

OTHER = "other"


@dataclass(frozen=True)
class Meter:
    """A counter; with buckets (upper bounds, in its unit) a histogram."""

    help: str
    labels: Mapping[str, Sequence[str]] = field(default_factory=dict)
    by_workspace: bool = False
    """Whether it has the label `workspace` too, the first."""
    buckets: Sequence[float] = ()
    scale: int = 1
    """What is kept are whole numbers: so many stand for one of the unit that is shown."""

    def known(self) -> dict[str, Sequence[str]]:
        """All its labels, each with the values that it may have now."""
        return {**({"workspace": workspaces.names()} if self.by_workspace else {}), **self.labels}

    def cells(self) -> list[tuple[str, ...]]:
        """All combinations of the labels' values, `other` apart."""
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
