"""Thread pools that start threads only as work arrives.

`Threads` runs one function on each job. `StepPool` takes steps when they are due, the earliest
first.
"""

import heapq
import itertools
import queue
import threading
import time
from collections import Counter
from collections.abc import Callable
from typing import Generic, TypeVar
from uuid import UUID

from renders.lifecycle.steps import Step

Job = TypeVar("Job")
Done = TypeVar("Done")


class Threads(Generic[Job, Done]):
    """Up to `most` threads that call `work`, which must not raise. They end with the process."""

    def __init__(self, work: Callable[[Job], Done], most: int, name: str) -> None:
        self._work = work
        self._most = most
        self._name = name
        self._jobs: queue.SimpleQueue[Job | None] = queue.SimpleQueue()
        self._done: queue.SimpleQueue[Done] = queue.SimpleQueue()
        self._started = 0
        self.busy = 0
        """Number of jobs put in and not yet returned by `get`."""

    @property
    def free(self) -> int:
        """Number of jobs that could begin at once."""
        return self._most - self.busy

    def put(self, job: Job) -> None:
        """Have a thread do this job."""
        if self.busy >= self._started:
            self._start()
        self.busy += 1
        self._jobs.put(job)

    def get(self, seconds: float, most: int) -> list[Done]:
        """Up to `most` results; waits up to `seconds` for the first."""
        results: list[Done] = []
        try:
            while len(results) < most:
                wait = 0.0 if results else seconds
                results.append(self._done.get(block=wait > 0, timeout=wait))
        except queue.Empty:
            pass
        self.busy -= len(results)
        return results

    def end(self) -> None:
        """Let the threads end once all jobs that were put in are done."""
        for _ in range(self._started):
            self._jobs.put(None)

    def _start(self) -> None:
        try:
            threading.Thread(target=self._run, name=self._name, daemon=True).start()
        except RuntimeError:
            if not self._started:
                raise
            self._most = self._started  # the system allows no further thread
        else:
            self._started += 1

    def _run(self) -> None:
        while (job := self._jobs.get()) is not None:
            self._done.put(self._work(job))


class StepPool:
    """Takes up to `most` steps at once. `take` returns a step with the steps that follow it.

    A step without a wait is queued once until it is done. Submits are the exception: each of them
    may send any render, the next in line.
    """

    def __init__(
        self, take: Callable[[Step], tuple[Step, list[Step]]], most: int, name: str
    ) -> None:
        self._threads = Threads(take, most, name)
        self._most = most
        self._heap: list[tuple[float, int, Step]] = []
        self._order = itertools.count()
        self._noted: set[tuple[str, UUID]] = set()
        self._under_way: Counter[tuple[str, UUID]] = Counter()

    @property
    def busy(self) -> int:
        """Number of steps running now."""
        return self._threads.busy

    @property
    def free(self) -> int:
        """Number of steps that could begin at once."""
        return self._threads.free

    @property
    def next_at(self) -> float:
        """When the next step can begin (monotonic clock); infinity: after a step ends or is put."""
        return self._heap[0][0] if self._heap and self._threads.free > 0 else float("inf")

    def put(self, step: Step) -> None:
        """Have this step taken when it is due."""
        if not step.after and step.do != "submit":
            if _name(step) in self._noted:
                return
            self._noted.add(_name(step))
        heapq.heappush(self._heap, (time.monotonic() + step.after, next(self._order), step))

    def start(self) -> None:
        """Begin the steps that are due, as far as threads are free."""
        while self.next_at <= time.monotonic():
            step = heapq.heappop(self._heap)[2]
            self._under_way[_name(step)] += 1
            self._threads.put(step)

    def collect(self, seconds: float) -> list[Step]:
        """The steps that follow completed ones; waits up to `seconds` for the first completion."""
        following = []
        for step, steps in self._threads.get(seconds, self._most):
            self._under_way[_name(step)] -= 1
            self._under_way += Counter()  # drops entries that count 0
            self._noted.discard(_name(step))
            following += steps
        return following

    def all_of(self, do: str) -> set[UUID]:
        """Ids of renders with such a step running or due now (delayed ones excluded)."""
        now = time.monotonic()
        due = {step.render_id for at, _, step in self._heap if step.do == do and at <= now}
        return due | {pk for doing, pk in self._under_way if doing == do}


def _name(step: Step) -> tuple[str, UUID]:
    return step.do, step.render_id
