"""Seeds one by one: what each found, shrunk to few incidents, in words."""

import gc
from contextlib import nullcontext
from dataclasses import dataclass

from tests.simulation.mutants import MUTANTS
from tests.simulation.plan import SCHEDULERS, Incident, Plan, drawn
from tests.simulation.world import World

# The end of a history says most.
LINES = 20


@dataclass(frozen=True)
class Found:
    """A plan under which something did not hold."""

    plan: Plan
    why: str
    history: list[str]

    def __str__(self) -> str:
        incidents = "\n".join(map(str, self.plan.incidents))
        lines = "\n".join(self.history[-LINES:])
        return (
            f"Seed {self.plan.seed} ({self.plan.scheduler}): {self.why}\n"
            f"Settings: {self.plan.settings}, Sume: {self.plan.sandbox}, "
            f"faults: {self.plan.fault_rate}\n"
            f"Incidents:\n{incidents}\nThe last {LINES} lines of its history:\n{lines}"
        )


def tried(plan: Plan) -> Found | None:
    """What does not hold under this plan; None if all is well."""
    world = World(plan)
    gc.disable()  # a run is short, and its garbage would be looked through again and again
    try:
        world.run()
    except Exception as error:  # noqa: BLE001 (any error of a process is a finding)
        return Found(plan, f"{type(error).__name__}: {error}", world.history)
    finally:
        gc.collect(1)
        gc.enable()
    return None


def shrunk(found: Found) -> Found:
    """The same kind of failure with as few incidents as possible.

    Hypothesis shrinks only what it has drawn itself, so incidents are dropped here: halves first,
    then single ones, as long as something fails.
    """
    size = max(1, len(found.plan.incidents) // 2)
    while True:
        smaller = _smaller(found, size)
        if smaller is not None:
            found = smaller
        elif size == 1:
            return found
        else:
            size //= 2


def _smaller(found: Found, size: int) -> Found | None:
    incidents = found.plan.incidents
    for start in range(0, len(incidents), size):
        dropped: tuple[Incident, ...] = incidents[start : start + size]
        plan = found.plan.without(dropped)
        if plan.incidents and (still := tried(plan)):
            return still
    return None


def first_found(seeds: range, schedulers: tuple[str, ...] = SCHEDULERS) -> Found | None:
    """The failure of the first of these seeds that has one."""
    return next(filter(None, (tried(drawn(seed, schedulers)) for seed in seeds)), None)


def chunk(work: tuple[str, range, tuple[str, ...]]) -> tuple[range, str, int]:
    """Run seeds, with a mutant if one is named: the seeds, what was found in words, and by which.

    The seed is -1 if nothing was found. Without a mutant, what was found is shrunk.
    """
    name, seeds, schedulers = work
    with MUTANTS[name]() if name else nullcontext():
        found = first_found(seeds, schedulers)
        seed = found.plan.seed if found else -1
        text = str(shrunk(found)) if found and not name else found.why if found else ""
    return seeds, text, seed
