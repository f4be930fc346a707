"""(a) Reads per second of the processor: each mode against the two loops of one thread."""

import json
from collections.abc import Callable
from dataclasses import dataclass

from renders.demo.processes import Child
from tests.benchmarks import waiting
from tests.benchmarks.scene import Scene, Used
from tests.benchmarks.table import Line, at_least, disturbed, plain

PART = "a"
# Always more are due than can be read: each comes back sooner than the round is over.
HINT_SECONDS = 1.0
JOBS = 8_000
# A message waits in the worker's memory: few, so that their number costs nothing.
MESSAGES = 400
LOOP_JOBS = 1_000


@dataclass(frozen=True)
class Mode:
    """A way to read that is measured."""

    name: str
    jobs: int
    put: Callable[[], None]
    start: Callable[[Scene], Child]
    safe: bool = False
    warm: int = 1_500
    """Reads until it runs as it will: each slot has its connection."""


def sorted_set(scene: Scene, *, safe: bool = False, **settings: object) -> Child:
    """`pollrenders`."""
    return scene.command(
        "pollrenders",
        ready="Reading what is due",
        safe=safe,
        RENDERS_SCHEDULER="sortedset",
        RENDERS_TICKS=0,
        **settings,
    )


def table(scene: Scene) -> Child:
    """`runrenders`, on PostgreSQL."""
    return scene.command("runrenders", ready="Sending, reading", RENDERS_SCHEDULER="database")


def ticks(scene: Scene) -> Child:
    """A worker whose ticks read the sorted set."""
    child = scene.worker("renders.poll", "-c1", RENDERS_SCHEDULER="sortedset")
    from renders.schedulers import dispatch

    dispatch.tick_again("0")
    return child


def processes(scene: Scene, **settings: object) -> Child:
    """A worker of one process: countdown messages."""
    return scene.worker("renders.poll", "-c1", RENDERS_SCHEDULER="countdown", **settings)


def threads(scene: Scene) -> Child:
    """A worker of many threads: countdown messages."""
    return scene.worker("renders.poll", "-P", "threads", "-c16", RENDERS_SCHEDULER="countdown")


def nothing() -> None:
    """The table is enough."""


SORTED_SET, SAFE = "sorted set (pollrenders)", "sorted set, TLS"
COUNTDOWN = ("countdown (prefork)", "countdown (16 threads)")
MODES = (
    Mode(SORTED_SET, JOBS, waiting.in_set, sorted_set),
    Mode(SAFE, JOBS, waiting.in_set, lambda scene: sorted_set(scene, safe=True), safe=True),
    Mode("sorted set (ticks of a worker)", JOBS, waiting.in_set, ticks),
    Mode("table (runrenders)", JOBS, nothing, table),
    Mode(COUNTDOWN[0], MESSAGES, waiting.in_messages, processes, warm=100),
    Mode(COUNTDOWN[1], MESSAGES, waiting.in_messages, threads, warm=100),
)


def measure(scene: Scene) -> tuple[list[Line], dict[str, Used]]:
    """The lines, and what each way used."""
    seconds = scene.lasting(6, 1)
    found = {
        f"{which} loop{', TLS' if url.startswith('https') else ''}": loop(
            scene, which, url, seconds
        )
        for url in (scene.http_url, scene.https_url)
        for which in ("bare", "plain")
        if url
    }
    for mode in MODES:
        if scene.https_url or not mode.safe:
            found[mode.name] = _of(scene, mode, scene.lasting(8, 1.5))
    # The machine may have become slower meanwhile.
    again = loop(scene, "bare", scene.http_url, seconds)
    first = found["bare loop"]
    found["bare loop"] = Used(
        first.reads + again.reads,
        first.processor + again.processor,
        first.seconds + again.seconds,
    )
    return _lines(found), found


def loop(scene: Scene, which: str, url: str, seconds: float, delay: float = 0.0) -> Used:
    """One of the loops, in a process of its own."""
    scene.clear()
    scene.stub(hint=HINT_SECONDS, delay=delay)
    words = (which, url, str(seconds), str(LOOP_JOBS), scene.server.url, scene.trusted)
    child = scene.start("loop", "-m", "tests.benchmarks.loops", *words)
    if child.process.wait(seconds + 60):
        raise child.death()
    return Used(*json.loads(child.output().splitlines()[-1]))


def _of(scene: Scene, mode: Mode, seconds: float) -> Used:
    scene.clear()
    scene.stub(hint=HINT_SECONDS)
    waiting.insert(scene, mode.jobs)
    mode.put()
    child = mode.start(scene)
    scene.warm(mode.warm)
    return scene.used(seconds, child)


def _lines(found: dict[str, Used]) -> list[Line]:
    bare, ours = found["bare loop"].each, found[SORTED_SET].each
    lines = [
        plain(PART, f"{name}: reads per second of the processor", 1 / used.each, "/s")
        for name, used in found.items()
    ]
    lines.append(at_least(PART, "sorted set : bare loop", bare / ours, 0.8))
    lines.append(at_least(PART, "sorted set : plain loop", found["plain loop"].each / ours, 2))
    if SAFE in found:
        safe = found[SAFE].each
        lines.append(
            at_least(PART, "sorted set : plain loop, TLS", found["plain loop, TLS"].each / safe, 20)
        )
        lines.append(
            plain(PART, "sorted set : bare loop, TLS", found["bare loop, TLS"].each / safe, "x")
        )
    best = min(found[name].each for name in COUNTDOWN)
    lines.append(at_least(PART, "sorted set : countdown (the better one)", best / ours, 4))
    for name, used in found.items():
        if name in {"sorted set (ticks of a worker)", "table (runrenders)", *COUNTDOWN}:
            lines.append(plain(PART, f"{name} : bare loop", bare / used.each, "x"))
    return [*lines, disturbed(PART, found[SORTED_SET].others)]
