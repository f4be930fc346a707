"""A batch on Pro limits, worked off in thought: what a client that reads in some rhythm would see.

The stand-in's own line says who is queued and processed; nothing takes time but the jobs.
"""

import heapq
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from renders.sandbox.jobs import COMPLETED, KINDS, PROCESSING, Job
from renders.sandbox.line import JobQueue
from renders.sandbox.options import Options

IN_FLIGHT = 24
# What Sume names at most while a job is queued, and while it is processed; what it is where a
# reply (that to the submit) names none.
QUEUED_SECONDS, PROCESSING_SECONDS, DEFAULT_SECONDS = 30.0, 5.0, 15.0
# POSTs in a minute.
WRITES = 300

Rhythm = Callable[[float], float]
"""From what Sume asks for (seconds) to the wait until the next read."""


def as_asked(hint: float) -> float:
    """The least that is possible: exactly when asked to."""
    return hint


def every(seconds: float) -> Rhythm:
    """A fixed loop."""
    return lambda hint: seconds


@dataclass(frozen=True)
class Told:
    """What came of a batch; times in Sume's seconds."""

    reads: float
    """For each render."""
    notice: float
    """From the end of a job to the read that tells of it, on average."""
    total: float
    """From the first submit to the last end noticed."""


def hint(job: Job, remaining: float) -> float:
    """`next_poll_after_seconds`: whole seconds, up to 30 while queued, 5 while processed."""
    most = PROCESSING_SECONDS if job.status == PROCESSING else QUEUED_SECONDS
    return min(max(1.0, math.ceil(remaining)), most)


def simulate(spans: Sequence[float], rhythm: Rhythm) -> Told:
    """One render for each of `spans` (seconds of processing), sent as soon as there is room."""
    line = JobQueue(Options(queued_seconds=0.0))
    waiting = list(reversed(spans))
    # When, in what order, which job is read; None: send the next one.
    events: list[tuple[float, int, Job | None]] = [(0.0, 0, None)]
    order = flying = reads = 0
    notices: list[float] = []
    sent = now = 0.0
    while events:
        now, _, job = heapq.heappop(events)
        line.catch_up(now)
        order += 1
        if job is None:
            if waiting and flying < IN_FLIGHT:
                job = Job(KINDS["image"], "sume/auto", "", now, 0)
                job.processing_seconds = waiting.pop()
                line.join(job)
                line.catch_up(now)
                flying += 1
                heapq.heappush(events, (now + rhythm(DEFAULT_SECONDS), order, job))
                if waiting and flying < IN_FLIGHT:
                    sent = max(sent, now) + 60 / WRITES
                    heapq.heappush(events, (sent, -order, None))
            continue
        reads += 1
        if job.status == COMPLETED:
            notices.append(now - (job.finished_at or now))
            flying -= 1
            heapq.heappush(events, (max(now, sent), -order, None))
        else:
            wait = rhythm(hint(job, line.remaining(job, now)))
            heapq.heappush(events, (now + wait, order, job))
    return Told(reads / len(spans), sum(notices) / len(notices), now)
