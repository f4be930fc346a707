"""(f) Claims in batches and one at a time, by four workers, with a million rows in the table."""

from tests.benchmarks.claiming import claims_per_second
from tests.benchmarks.databases import filled
from tests.benchmarks.filling import Filling
from tests.benchmarks.scene import Scene
from tests.benchmarks.table import Line, at_least, plain

PART = "f"
ONE, MANY = 1, 50
GOAL = 10.0
FULL = Filling(rows=1_000_000, pending=100_000)
QUICK = Filling(rows=25_000, pending=15_000, users=100)


def measure(scene: Scene) -> tuple[list[Line], dict[int, float]]:
    """The lines, and claims per second for each limit."""
    scene.clear()
    filling = QUICK if scene.quick else FULL
    with filled(filling) as url:
        rates = claims_per_second(url, (ONE, MANY), seconds=scene.lasting(5, 1))
    lines = [
        plain(PART, f"claims a second, {limit} at a time, {filling.rows:,} rows", rate, "/s")
        for limit, rate in rates.items()
    ]
    ratio = rates[MANY] / rates[ONE]
    return [*lines, at_least(PART, f"{MANY} at a time : one at a time", ratio, GOAL)], rates
