"""(c) How late reads are, with few and many waiting; what a waiting render costs; a submit at once.

Late is what passes between the time that Sume asked for and the read's arrival at Sume.
"""

import time
from dataclasses import dataclass
from typing import Any

from tests.benchmarks import waiting
from tests.benchmarks.scene import Scene
from tests.benchmarks.table import Line, at_most, disturbed, plain
from tests.benchmarks.throughput import sorted_set

PART = "c"
MOST_MS = 100.0
FULL = (1_000, 10_000, 100_000)
QUICK = (1_000, 5_000)
LOADS = (0.25, 0.5, 0.75)
# Of a core that is all the reader's, so much is kept for whatever else the machine does.
WARM_SECONDS = 2.0


@dataclass(frozen=True)
class Late:
    """Milliseconds."""

    waiting: int
    load: float
    half: float
    nearly_all: float
    others: float


def measure(scene: Scene) -> tuple[list[Line], list[Late]]:
    """The lines, and how late reads were at each load and number."""
    most = _capacity(scene)
    numbers = QUICK if scene.quick else FULL
    cases = [(number, LOADS[-1]) for number in numbers[:-1]]
    cases += [(numbers[-1], load) for load in (LOADS[-1:] if scene.quick else LOADS)]
    found = [_late(scene, number, load, load * most) for number, load in cases]
    lines = [plain(PART, "reads per second of the clock, as many as can be", most, "/s")]
    for late in found:
        words = f"{late.waiting:,} waiting, {late.load:.0%} load: late by, p50"
        lines.append(plain(PART, words, late.half, "ms"))
        lines.append(at_most(PART, words.replace("p50", "p99"), late.nearly_all, MOST_MS, "ms"))
    return [*lines, disturbed(PART, max(late.others for late in found))], found


def _capacity(scene: Scene) -> float:
    scene.clear()
    scene.stub(hint=1.0)
    waiting.insert(scene, 8_000)
    waiting.in_set()
    child = sorted_set(scene)
    scene.warm(1_500)
    return scene.used(scene.lasting(5, 1.5), child).rate


def _late(scene: Scene, number: int, load: float, rate: float) -> Late:
    """Each job comes back after all others: so the load is even, and `number` of them wait."""
    scene.clear()
    seconds = scene.lasting(8, 2)
    spacing = 1 / rate
    # Before the first is due, the reader shall be there.
    base = time.time() + WARM_SECONDS + 4 + number / 15_000
    scene.stub(hint=number * spacing, base=base, spacing=spacing)
    waiting.insert(scene, number, base=base, spacing=spacing)
    waiting.in_set()
    child = sorted_set(scene)
    time.sleep(max(0.0, base + WARM_SECONDS - time.time()))
    others = scene.used(seconds, child).others
    late = sorted(
        1000 * (came - due) for _, came, due, _ in scene.log()["reads"] if due > base + WARM_SECONDS
    )
    return Late(number, load, _share(late, 0.5), _share(late, 0.99), others)


def _share(ordered: list[float], share: float) -> float:
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))] if ordered else float("nan")


def percentiles(values: list[float]) -> dict[str, Any]:
    """The middle, and what 99 of 100 stay below."""
    ordered = sorted(values)
    return {"p50": _share(ordered, 0.5), "p99": _share(ordered, 0.99)}
