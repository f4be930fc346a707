"""Threads that do one thing with whatever is put in, as many at once as there is work for.

Threads that take steps when their time has come, the earliest first.
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
    """Up to `most` threads that call `work`, which must not raise; they end with the process."""

    def __init__(self, work: Callable[[Job], Done], most: int, name: str) -> None:
        self._work = work
        self._most = most
        self._name = name
        self._jobs: queue.SimpleQueue[Job | None] = queue.SimpleQueue()
        self._done: queue.SimpleQueue[Done] = queue.SimpleQueue()
        self._started = 0
        self.busy = 0
        """How many were put in and not yet got back."""

    @property
    def free(self) -> int:
        """How many more can begin at once."""
        return self._most - self.busy

    def put(self, job: Job) -> None:
        """Have this done."""
        if self.busy >= self._started:
            self._start()
        self.busy += 1
        self._jobs.put(job)

    def get(self, seconds: float, most: int) -> list[Done]:
        """What is done, up to so many; waits for the first at most so long."""
        found: list[Done] = []
        try:
            while len(found) < most:
                wait = 0.0 if found else seconds
                found.append(self._done.get(block=wait > 0, timeout=wait))
        except queue.Empty:
            pass
        self.busy -= len(found)
        return found

    def end(self) -> None:
        """Let the threads end once they have done what was put in."""
        for _ in range(self._started):
            self._jobs.put(None)

    def _start(self) -> None:
        try:
            threading.Thread(target=self._run, name=self._name, daemon=True).start()
        except RuntimeError:
            if not self._started:
                raise
            self._most = self._started  # the system allows no more
        else:
            self._started += 1

    def _run(self) -> None:
        while (job := self._jobs.get()) is not None:
            self._done.put(self._work(job))


class StepPool:
    """Up to `most` steps under way. `take` gives a step back with those that follow.

    What is to be done at once already and is not done yet is not noted twice, submits apart:
    these stand for whoever is next in line.
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
        """How many steps are under way."""
        return self._threads.busy

    @property
    def free(self) -> int:
        """How many more can begin at once."""
        return self._threads.free

    @property
    def next_at(self) -> float:
        """When the next step can begin (monotonic clock); infinity until one ends, or is put."""
        return self._heap[0][0] if self._heap and self._threads.free > 0 else float("inf")

    def put(self, step: Step) -> None:
        """Have this step taken in its time."""
        if not step.after and step.do != "submit":
            if _name(step) in self._noted:
                return
            self._noted.add(_name(step))
        heapq.heappush(self._heap, (time.monotonic() + step.after, next(self._order), step))

    def start(self) -> None:
        """Begin what is due, as far as threads are free."""
        while self.next_at <= time.monotonic():
            step = heapq.heappop(self._heap)[2]
            self._under_way[_name(step)] += 1
            self._threads.put(step)

    def collect(self, seconds: float) -> list[Step]:
        """What follows what is done; waits for the first at most so long."""
        following = []
        for step, steps in self._threads.get(seconds, self._most):
            self._under_way[_name(step)] -= 1
            self._under_way += Counter()  # none with nothing under way
            self._noted.discard(_name(step))
            following += steps
        return following

    def all_of(self, do: str) -> set[UUID]:
        """Of which renders a step of this sort is under way, or due; not waiting for its time."""
        now = time.monotonic()
        due = {step.render_id for at, _, step in self._heap if step.do == do and at <= now}
        return due | {pk for doing, pk in self._under_way if doing == do}


def _name(step: Step) -> tuple[str, UUID]:
    return step.do, step.render_id
