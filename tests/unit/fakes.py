"""Stand-ins for what a reader works with: the sorted set, the leases, a queue, Sume."""

import threading
from collections.abc import Callable, Iterable
from typing import Any
from uuid import UUID

import redis

from renders.coordination.due_set import Taken
from renders.schedulers.queues import LeasedRender
from renders.states import Status
from renders.sume.replies import JobStatus, SumeFault


def goes(word: str = "processing", wait: float | None = 3.0) -> JobStatus:
    """Sume says that the job runs."""
    return JobStatus(word, None, False, wait, SumeFault(), None)


def done(
    ending: Status = Status.COMPLETED, *, cost: int | None = 5, ready: bool = True
) -> JobStatus:
    """Sume says that the job has ended."""
    fault = SumeFault() if ending == Status.COMPLETED else SumeFault("odd", "Too odd.")
    return JobStatus(ending.value, ending, ready, None, fault, cost)


class FakeSet:
    """As `SortedSet`, in memory. `away` makes each call fail as where Redis is away."""

    def __init__(self, due: dict[UUID, float] | None = None) -> None:
        self.due = dict(due or {})
        self.away = False
        self.whole = True
        self.calls = 0

    def __len__(self) -> int:
        return len(self.due)

    def _reach(self) -> None:
        self.calls += 1
        if self.away:
            raise redis.ConnectionError

    def add(self, due: dict[UUID, float]) -> None:
        self._reach()
        for pk, at in due.items():
            self.due[pk] = min(at, self.due.get(pk, at))

    def add_missing(self, due: dict[UUID, float]) -> int:
        self._reach()
        missing = due.keys() - self.due.keys()
        self.due |= {pk: due[pk] for pk in missing}
        return len(missing)

    def take(self, now: float, limit: int, lease: float) -> Taken:
        self._reach()
        ids = sorted((pk for pk, at in self.due.items() if at <= now), key=self.due.__getitem__)
        self.due |= dict.fromkeys(ids[:limit], now + lease)
        return Taken(ids[:limit], now + lease, min(self.due.values(), default=None))

    def settle(self, entries: Iterable[tuple[UUID, float, float | None]]) -> None:
        self._reach()
        for pk, ends, due in entries:
            held = self.due.get(pk)
            if due is None:
                if held == ends:
                    del self.due[pk]
            elif held is None or held == ends or held > due:
                self.due[pk] = due

    def due_by(self, moment: float, limit: int) -> dict[UUID, float]:
        self._reach()
        found = sorted((at, pk) for pk, at in self.due.items() if at <= moment)
        return {pk: at for at, pk in found[:limit]}

    def remove(self, pks: Iterable[UUID]) -> None:
        self._reach()
        for pk in pks:
            self.due.pop(pk, None)

    def is_whole(self) -> bool:
        self._reach()
        return self.whole

    def note_whole(self, seconds: float) -> None:
        self._reach()
        self.whole = True


class FakeLeases:
    """As `Leases`, in memory, without any end: token of each name; r reads, w waits."""

    def __init__(self) -> None:
        self.tokens: dict[str, str] = {}
        self.lives: dict[str, float] = {}
        self.away = False
        self._count = 0

    def _fresh(self, does: str, name: str, life: float) -> str:
        self._count += 1
        self.tokens[name] = f"{does}{self._count}"
        self.lives[name] = life
        return self.tokens[name]

    def _reach(self) -> None:
        if self.away:
            raise redis.ConnectionError

    def acquire(self, name: str, life: float) -> str | None:
        self._reach()
        return None if name in self.tokens else self._fresh("r", name, life)

    def acquire_many(self, names: Iterable[str], life: float) -> dict[str, str]:
        found = {name: self.acquire(name, life) for name in names}
        return {name: token for name, token in found.items() if token}

    def swap(self, name: str, token: str, life: float) -> str | None:
        self._reach()
        free = self.tokens.get(name, token) == token
        return self._fresh("r", name, life) if free else None

    def hand_on(self, name: str, token: str, life: float) -> str | None:
        self._reach()
        return self._fresh("w", name, life) if self.tokens.get(name) == token else None

    def overtake(self, name: str, life: float) -> str | None:
        self._reach()
        free = self.tokens.get(name, "w").startswith("w")
        return self._fresh("r", name, life) if free else None

    def release_many(self, tokens: dict[str, str]) -> None:
        self._reach()
        for name, token in tokens.items():
            if self.tokens.get(name) == token:
                del self.tokens[name]


class FakeQueue:
    """Gives what is put into `ready`, and keeps what a reader says about it."""

    idle_seconds = 0.0

    def __init__(self, *renders: Any) -> None:
        self.ready = list(renders)
        self.next_due: float | None = None
        self.limits: list[int] = []
        self.settled: list[tuple[Any, float | None]] = []
        self.let_go_of: list[Any] = []
        self.given_back: list[tuple[Any, float]] = []

    def take(self, limit: int, resting: Iterable[str] = ()) -> list[LeasedRender]:
        self.limits.append(limit)
        taken, self.ready = self.ready[:limit], self.ready[limit:]
        self.next_due = 0.0 if self.ready else None
        return [LeasedRender(render) for render in taken]

    def settle(self, read: Iterable[tuple[LeasedRender, float | None]]) -> None:
        self.settled += [(held.render, seconds) for held, seconds in read]

    def let_go(self, held: Iterable[LeasedRender]) -> None:
        self.let_go_of += [one.render for one in held]

    def give_back(self, held: Iterable[LeasedRender], seconds: float) -> None:
        self.given_back += [(one.render, seconds) for one in held]


class FakeSume:
    """Answers a read of a job as told; counts how many are under way at once."""

    def __init__(self, answer: Callable[[str], JobStatus] = lambda job_id: goes()) -> None:
        self.answer = answer
        self.asked: list[str] = []
        self.under_way = self.most = 0
        self.gate = threading.Event()
        self.gate.set()
        self._lock = threading.Lock()

    def __call__(self, workspace: str) -> "FakeSume":
        """As `connections.sume`: the client of a workspace."""
        return self

    def status(self, job_id: str) -> JobStatus:
        with self._lock:
            self.asked.append(job_id)
            self.under_way += 1
            self.most = max(self.most, self.under_way)
        try:
            self.gate.wait(20)
            return self.answer(job_id)
        finally:
            with self._lock:
                self.under_way -= 1
