"""(d) SIGKILL of a reader with reads in the air: when another one has read all of them."""

import signal
import time
from dataclasses import dataclass
from itertools import pairwise

from renders.demo.processes import Child
from tests.benchmarks import waiting
from tests.benchmarks.scene import Scene
from tests.benchmarks.table import Line, at_most, plain
from tests.benchmarks.throughput import sorted_set

PART = "d"
DELAY_SECONDS = 0.5
HINT_SECONDS = 2.0
SETTINGS = {
    "RENDERS_REQUEST_TIMEOUT_SECONDS": 2,
    "RENDERS_LEASE_MARGIN_SECONDS": 1,
    "RENDERS_READS_AT_ONCE": 100,
}
LEASE_SECONDS = 3.0
# An ordinary read is late by less.
SLACK_SECONDS = 1.0


@dataclass(frozen=True)
class Recovery:
    """What became of the reads that were in the air. `seconds` is from the kill on."""

    cut: int
    seconds: float
    lost: int
    twice: int


def measure(scene: Scene) -> tuple[list[Line], Recovery]:
    """The lines, and what became of them."""
    found = _kill(scene, int(scene.lasting(300, 100)))
    goal = LEASE_SECONDS + SLACK_SECONDS
    return [
        plain(PART, f"reads cut by the kill (lease {LEASE_SECONDS:g} s)", found.cut, ""),
        at_most(PART, "all of them are read again within", found.seconds, goal, "s"),
        at_most(PART, "lost", found.lost, 0, ""),
        at_most(PART, "read by two at once, or early", found.twice, 0, ""),
    ], found


def _kill(scene: Scene, jobs: int) -> Recovery:
    scene.clear()
    scene.stub(hint=HINT_SECONDS, delay=DELAY_SECONDS)
    waiting.insert(scene, jobs)
    waiting.in_set()
    first = sorted_set(scene, **SETTINGS)
    scene.used(2.5)  # every job was read, most wait, some are in the air
    other = sorted_set(scene, **SETTINGS)
    _pause(other)  # what is in the air now is all with the first one
    scene.used(DELAY_SECONDS + 0.2)
    killed = _kill_when_busy(scene, first)
    other.process.send_signal(signal.SIGCONT)
    scene.used(LEASE_SECONDS * 2 + HINT_SECONDS + 1)
    return _judge(scene.log()["reads"], jobs, killed)


def _pause(child: Child) -> None:
    child.process.send_signal(signal.SIGSTOP)


def _kill_when_busy(scene: Scene, child: Child) -> float:
    """Kill it while reads are in the air; when that was (Unix time)."""
    end = time.monotonic() + 3 * HINT_SECONDS
    while time.monotonic() < end:
        now = time.time()
        flying = [entry for entry in scene.log()["reads"] if entry[1] > now - DELAY_SECONDS / 2]
        if len(flying) >= 20:
            break
        time.sleep(0.02)
    killed = time.time()
    scene.end(child)
    return killed


def _judge(reads: list[list[float]], jobs: int, killed: float) -> Recovery:
    """`reads`: number of the job, when it came, when it was due, when it was answered."""
    by_job: dict[int, list[list[float]]] = {}
    for entry in reads:
        by_job.setdefault(int(entry[0]), []).append(entry)
    # Not answered, or answered so late that nobody was there to write it down.
    cut = [
        number
        for number, entries in by_job.items()
        if any(came <= killed and not answered for _, came, _, answered in entries)
    ]
    again = [
        min((came for _, came, _, _ in by_job[number] if came > killed), default=float("inf"))
        for number in cut
    ]
    twice = 0
    for number, entries in by_job.items():
        for (_, _, _, before), (_, came, _, _) in pairwise(entries):
            wait = HINT_SECONDS if before else 0.0
            early = before and came < before + wait - 0.05
            # In the air when it was killed: to be read again, but not while its lease lives.
            doubled = not before and came < killed and number in cut
            twice += bool(early or doubled)
    return Recovery(
        len(cut),
        max(again, default=killed) - killed,
        jobs - len({number for number in by_job if by_job[number][-1][1] > killed}),
        twice,
    )
