"""Threads that do one thing with whatever is put in, as many at once as there is work for."""

import queue
import threading
from collections.abc import Callable
from typing import Generic, TypeVar

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
