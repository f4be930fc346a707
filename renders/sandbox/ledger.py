"""What happened, for tests to count: bills, refunds, reads, POSTs. Thread-safe."""

import threading
from collections import Counter
from dataclasses import asdict, dataclass
from typing import Any

# A read this much before its time is a rounding difference, not an early read.
TOLERANCE_SECONDS = 0.05


@dataclass(frozen=True)
class Bill:
    """One accepted job, charged once. `at` is Unix seconds (the sandbox's clock)."""

    job_id: str
    idempotency_key: str | None
    amount_usd_micros: int
    at: float


@dataclass(frozen=True)
class Refund:
    """The amount of a failed or canceled job, given back."""

    job_id: str
    amount_usd_micros: int
    at: float


@dataclass(frozen=True)
class Read:
    """A GET for a job. `what`: status, result, record, events or media."""

    what: str
    at: float


@dataclass(frozen=True)
class EarlyRead:
    """A status read before `due`, the time the last status reply asked for."""

    job_id: str
    at: float
    due: float


@dataclass(frozen=True)
class KeyNote:
    """Something noted about an idempotency key."""

    idempotency_key: str
    at: float


@dataclass(frozen=True)
class FaultNote:
    """A fault that a request met. `on` is the operation, for instance `submit`."""

    fault: str
    on: str
    at: float


@dataclass(frozen=True)
class SentEvent:
    """A webhook that was sent. `status` is the receiver's answer, 0 where none came."""

    event_id: str
    job_id: str
    status: int


class Ledger:
    """The sandbox's account of what it was asked and what it charged.

    Every property returns a copy. Faulted requests are counted too: what arrived, counts.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._bills: list[Bill] = []
        self._refunds: list[Refund] = []
        self._reads: dict[str, list[Read]] = {}
        self._posts: Counter[str] = Counter()
        self._posts_without_key = 0
        self._conflicts: list[KeyNote] = []
        self._reserialized: list[KeyNote] = []
        self._early: list[EarlyRead] = []
        self._faults: list[FaultNote] = []
        self._events: list[SentEvent] = []
        self._due: dict[str, float] = {}
        self._net_usd_micros = 0

    @property
    def bills(self) -> list[Bill]:
        """One entry for each accepted job, in order."""
        with self._lock:
            return list(self._bills)

    @property
    def refunds(self) -> list[Refund]:
        """One entry for each failed or canceled job."""
        with self._lock:
            return list(self._refunds)

    @property
    def reads(self) -> dict[str, list[Read]]:
        """Job id to its reads, in order."""
        with self._lock:
            return {job_id: list(reads) for job_id, reads in self._reads.items()}

    @property
    def posts(self) -> Counter[str]:
        """Idempotency key to the number of POSTs (submits and cancels) that carried it."""
        with self._lock:
            return Counter(self._posts)

    @property
    def posts_without_key(self) -> int:
        """POSTs (submits and cancels) that carried no `Idempotency-Key`."""
        with self._lock:
            return self._posts_without_key

    @property
    def body_conflicts(self) -> list[KeyNote]:
        """Keys that came again with another request."""
        with self._lock:
            return list(self._conflicts)

    @property
    def reserialized(self) -> list[KeyNote]:
        """Keys that came again with the same JSON in other bytes: let in here, risky elsewhere."""
        with self._lock:
            return list(self._reserialized)

    @property
    def early_reads(self) -> list[EarlyRead]:
        """Status reads that came before the time the last status reply asked for."""
        with self._lock:
            return list(self._early)

    @property
    def faults(self) -> list[FaultNote]:
        """The faults that requests met, in order."""
        with self._lock:
            return list(self._faults)

    @property
    def events(self) -> list[SentEvent]:
        """The webhooks that were sent, in order."""
        with self._lock:
            return list(self._events)

    @property
    def net_usd_micros(self) -> int:
        """Bills less refunds, in millionths of a dollar."""
        with self._lock:
            return self._net_usd_micros

    def as_json(self) -> dict[str, Any]:
        """Everything above under the same names, ready for JSON."""
        return {
            "bills": [asdict(entry) for entry in self.bills],
            "refunds": [asdict(entry) for entry in self.refunds],
            "reads": {job: [asdict(r) for r in reads] for job, reads in self.reads.items()},
            "posts": dict(self.posts),
            "posts_without_key": self.posts_without_key,
            "body_conflicts": [asdict(entry) for entry in self.body_conflicts],
            "reserialized": [asdict(entry) for entry in self.reserialized],
            "early_reads": [asdict(entry) for entry in self.early_reads],
            "faults": [asdict(entry) for entry in self.faults],
            "events": [asdict(entry) for entry in self.events],
            "net_usd_micros": self.net_usd_micros,
        }

    def note_bill(self, bill: Bill) -> None:
        with self._lock:
            self._bills.append(bill)
            self._net_usd_micros += bill.amount_usd_micros

    def note_refund(self, refund: Refund) -> None:
        with self._lock:
            self._refunds.append(refund)
            self._net_usd_micros -= refund.amount_usd_micros

    def note_post(self, key: str | None) -> None:
        with self._lock:
            if key is None:
                self._posts_without_key += 1
            else:
                self._posts[key] += 1

    def note_conflict(self, key: str, at: float) -> None:
        with self._lock:
            self._conflicts.append(KeyNote(key, at))

    def note_reserialized(self, key: str, at: float) -> None:
        with self._lock:
            self._reserialized.append(KeyNote(key, at))

    def note_fault(self, fault: str, on: str, at: float) -> None:
        with self._lock:
            self._faults.append(FaultNote(fault, on, at))

    def note_event(self, event: SentEvent) -> None:
        with self._lock:
            self._events.append(event)

    def note_read(self, job_id: str, what: str, at: float) -> None:
        """Count a read, and see whether it is a poll before its time."""
        with self._lock:
            self._reads.setdefault(job_id, []).append(Read(what, at))
            due = self._due.get(job_id)
            if what == "status" and due is not None and at < due - TOLERANCE_SECONDS:
                self._early.append(EarlyRead(job_id, at, due))

    def set_due(self, job_id: str, due: float | None) -> None:
        """Remember when the next status read is due; None: the client was told nothing."""
        with self._lock:
            if due is None:
                self._due.pop(job_id, None)
            else:
                self._due[job_id] = due
