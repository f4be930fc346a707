"""(b) Replies that take 200 ms: reads by the clock, against the number of slots."""

from typing import Any

from tests.benchmarks import waiting
from tests.benchmarks.scene import Scene, Used
from tests.benchmarks.table import Line, at_least, disturbed, plain
from tests.benchmarks.throughput import loop, sorted_set

PART = "b"
DELAY_SECONDS = 0.2
HINT_SECONDS = 1.0
JOBS = 4_000
GOAL = 300
# The last one is what a process has by default.
SLOTS = (10, 30, 100, 200, 300)
QUICK_SLOTS = (30, 300)


def measure(scene: Scene) -> tuple[list[Line], dict[str, Any]]:
    """The lines, and reads per second for each number of slots (and both loops)."""
    seconds = scene.lasting(3, 1)
    loops = {
        which: loop(scene, which, scene.http_url, seconds, DELAY_SECONDS).rate
        for which in ("bare", "plain")
    }
    slots = QUICK_SLOTS if scene.quick else SLOTS
    used = {number: _used(scene, number) for number in slots}
    rates = {number: one.rate for number, one in used.items()}
    most = slots[-1]
    # Each read is in the air for the delay: Little's law.
    air = rates[most] * DELAY_SECONDS
    flying = _most(scene)
    lines = [
        plain(PART, f"{number} slots: reads per second, replies after 200 ms", rate, "/s")
        for number, rate in rates.items()
    ]
    lines += [
        plain(PART, f"reads in the air, on average, with {most} slots", air, ""),
        at_least(PART, f"reads in the air, at one moment, with {most} slots", flying, GOAL, ""),
        plain(PART, f"{most} slots : bare loop", rates[most] / loops["bare"], "x"),
        plain(PART, f"{most} slots : plain loop", rates[most] / loops["plain"], "x"),
        disturbed(PART, used[most].others),
    ]
    return lines, {"rates": rates, "loops": loops}


def _used(scene: Scene, slots: int) -> Used:
    scene.clear()
    scene.stub(hint=HINT_SECONDS, delay=DELAY_SECONDS)
    waiting.insert(scene, JOBS)
    waiting.in_set()
    child = sorted_set(scene, RENDERS_READS_AT_ONCE=slots)
    scene.warm(2 * slots)
    return scene.used(scene.lasting(5, 1.5), child)


def _most(scene: Scene) -> int:
    """The most reads that were with the stub at one moment, in what it remembers."""
    changes = []
    for _, came, _, answered in scene.log()["reads"]:
        changes += [(came, 1), (answered or came + DELAY_SECONDS, -1)]
    busy = most = 0
    for _, change in sorted(changes):
        busy += change
        most = max(most, busy)
    return most
