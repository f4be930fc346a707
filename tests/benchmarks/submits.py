"""(c) How long a submit at once takes to reach Sume while all that the Pro plan allows is read.

From the call to `create_render` to the arrival of the POST; reader and submit worker share a core.
"""

import time

from tests.benchmarks import waiting
from tests.benchmarks.punctuality import percentiles
from tests.benchmarks.scene import Scene
from tests.benchmarks.table import Line, at_most, plain
from tests.benchmarks.throughput import HINT_SECONDS, JOBS, MESSAGES, processes, sorted_set

PART = "c"
MOST_MS = 100.0
# Far from what one worker can send: this is about waiting, not about many.
PAUSE_SECONDS = 0.25
SCHEDULERS = ("sortedset", "countdown")
# As many reads as the largest plan allows: 40 times its 300 writes a minute.
FULL_POLLING = {"RENDERS_WRITES_PER_MINUTE": 300}


def measure(scene: Scene) -> tuple[list[Line], dict[str, list[float]]]:
    """The lines, and the milliseconds of each submit."""
    found = {name: _under(scene, name, int(scene.lasting(150, 8))) for name in SCHEDULERS}
    lines = []
    for name, spans in found.items():
        told = percentiles(spans)
        words = f"a submit under full polling ({name}) arrives after"
        lines.append(plain(PART, f"{words}, p50", told["p50"], "ms"))
        lines.append(at_most(PART, f"{words}, p99", told["p99"], MOST_MS, "ms"))
    return lines, found


def _under(scene: Scene, scheduler: str, number: int) -> list[float]:
    from renders import services

    scene.clear()
    scene.stub(hint=HINT_SECONDS)
    # Its submits wait for nothing; what it polls later does not come back to it.
    scene.worker("renders.submit", "-c1", RENDERS_SCHEDULER=scheduler)
    services.create_render("The first one opens the connections.")
    if scheduler == "sortedset":
        waiting.insert(scene, JOBS)
        waiting.in_set()
        sorted_set(scene, **FULL_POLLING)
    else:
        waiting.insert(scene, MESSAGES)
        processes(scene, **FULL_POLLING)
        waiting.in_messages()
    scene.warm(1_500 if scheduler == "sortedset" else 100)
    known = len(scene.log()["submits"])
    made = {}
    for place in range(number):
        prompt = f"At once: {place}"
        made[prompt] = time.time()
        services.create_render(prompt)
        time.sleep(PAUSE_SECONDS)
    end = time.monotonic() + 20
    while len(scene.log()["submits"]) < known + number and time.monotonic() < end:
        time.sleep(0.2)
    came = dict(scene.log()["submits"])
    # What has not arrived is as late as can be.
    return [1000 * (came.get(prompt, float("inf")) - at) for prompt, at in made.items()]
