"""The plan that a seed decides: how the site is set up, what people do, and what goes wrong."""

import random
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

SCHEDULERS = ("countdown", "sortedset", "database")
# Everything that goes wrong, and everything that people do, happens in this time.
CHAOS_SECONDS = 120.0
PROMPTS = ("a red fox", "a red fox", "a red fox", "a boat", "FAIL a boat")
# What happens, and how often compared with the others.
INCIDENTS: tuple[tuple[str, int], ...] = (
    ("cancel", 4),
    ("hold", 1),
    ("retry", 2),
    ("pause", 1),
    ("erase", 1),
    ("check now", 2),
    ("kill", 8),
    ("stall", 2),
    ("empty redis", 2),
    ("redis away", 1),
    ("broker away", 1),
    ("beat away", 1),
    ("lose a message", 3),
    ("double a message", 4),
    ("delay a message", 2),
    ("clock", 1),
    ("other settings", 1),
)


@dataclass(frozen=True)
class Incident:
    """Something that happens at a time; `number` chooses to whom, `seconds` is how long or far."""

    at: float
    what: str
    number: int = 0
    seconds: float = 0.0
    text: str = ""

    def __str__(self) -> str:
        return f"{self.at:6.1f} s: {self.what} {self.text or self.number} ({self.seconds:.1f} s)"


@dataclass(frozen=True)
class Plan:
    """All that a seed decides, but for the order in which actors take turns."""

    seed: int
    scheduler: str
    settings: dict[str, Any]
    sandbox: dict[str, Any]
    fault_rate: float
    message_faults: float
    """The share of messages that are lost, doubled or late by themselves."""
    incidents: tuple[Incident, ...]

    @property
    def steps_clock(self) -> bool:
        """Whether the machines' clock is set at some time."""
        return any(one.what == "clock" for one in self.incidents)

    def without(self, dropped: Sequence[Incident]) -> "Plan":
        """The same without these incidents."""
        kept = tuple(one for one in self.incidents if one not in dropped)
        return replace(self, incidents=kept)


def drawn(seed: int, schedulers: Sequence[str] = SCHEDULERS) -> Plan:
    """The plan of a seed."""
    dice = random.Random(f"plan {seed}")
    return Plan(
        seed=seed,
        scheduler=schedulers[seed % len(schedulers)],
        settings={
            "WRITES_PER_MINUTE": dice.choice([3, 4, 8, 100]),
            "MAX_IN_FLIGHT": dice.choice([1, 2, 4]),
            "BUDGET_USD": dice.choice([0, 0, 0.3]),
        },
        sandbox={
            "queued_seconds": dice.choice([0, 2, 12]),
            "processing_seconds": dice.choice([2, 11, 25]),
            "poll_seconds": dice.choice([2, 7, 15]),
            "processing_limit": dice.choice([1, 4]),
        },
        fault_rate=dice.choice([0, 0.1, 0.3]),
        message_faults=dice.choice([0, 0, 0.1]),
        incidents=_incidents(dice),
    )


def _incidents(dice: random.Random) -> tuple[Incident, ...]:
    creates = [
        Incident(
            dice.uniform(0, 50),
            "create",
            dice.randrange(2),
            text=dice.choice(PROMPTS),
        )
        for _ in range(dice.randint(1, 4))
    ]
    names, weights = zip(*INCIDENTS, strict=True)
    others = [
        Incident(
            dice.uniform(0, CHAOS_SECONDS),
            what,
            dice.randrange(60),
            dice.choice([-200.0, -30.0, 45.0, 200.0] if what == "clock" else [5.0, 40.0, 100.0]),
        )
        for what in dice.choices(names, weights, k=dice.randint(2, 9))
    ]
    return tuple(sorted([*creates, *others], key=lambda one: one.at))
