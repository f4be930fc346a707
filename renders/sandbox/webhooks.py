"""Sends the events of jobs that were submitted with mode `webhook`, from a thread of its own.

Each is sent once, whatever the receiver answers; the faults `event_*` send it twice, late, after
the next one, or never.
"""

import contextlib
import hashlib
import heapq
import hmac
import itertools
import json
import logging
import threading
import time
from http.client import HTTPConnection, HTTPException, HTTPSConnection
from urllib.parse import urlsplit

from . import documents
from .faults import FaultBook
from .jobs import Job
from .ledger import SentEvent
from .rules import Rules

logger = logging.getLogger(__name__)

# How often the line catches up with the clock, so that a job's end is told soon.
TICK_SECONDS = 0.05
TIMEOUT_SECONDS = 5.0


def signature(secret: str, timestamp: str, body: bytes) -> str:
    """The header `X-Sume-Signature` of an event."""
    message = timestamp.encode() + b"." + body
    return f"v1={hmac.new(secret.encode(), message, hashlib.sha256).hexdigest()}"


class Courier:
    """Hears of each job's end from the rules. Without a secret it does nothing."""

    def __init__(self, rules: Rules, faults: FaultBook) -> None:
        self._rules = rules
        self._faults = faults
        self._secret = (rules.options.webhook_secret or "").strip()
        self._lock = threading.Lock()
        self._due: list[tuple[float, int, Job]] = []
        self._held: list[Job] = []
        self._numbers = itertools.count()
        self._stopping = threading.Event()
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        """Send from now on."""
        if self._secret:
            self._stopping.clear()
            self._rules.on_end = self._hear
            self._thread = threading.Thread(target=self._run, name="sume-webhooks", daemon=True)
            self._thread.start()

    def stop(self) -> None:
        """Send no more."""
        if self._thread is not None:
            self._stopping.set()
            self._thread.join()
            self._thread = None

    def _hear(self, job: Job) -> None:
        """A job has ended; called under the lock of the rules."""
        if not job.webhook_url:
            return
        fault = self._faults.pick("event")
        if fault is not None:
            self._rules.ledger.note_fault(fault.name, "event", self._rules.now())
        name = fault.name if fault else ""
        with self._lock:
            if name == "event_held":
                self._held.append(job)
            elif name != "event_never":
                at = time.monotonic() + (fault.argument if fault and name == "event_late" else 0)
                jobs = [job, *([job] if name == "event_twice" else []), *self._held]
                self._held.clear()
                for one in jobs:
                    heapq.heappush(self._due, (at, next(self._numbers), one))

    def _run(self) -> None:
        while not self._stopping.wait(TICK_SECONDS):
            self._rules.settle()
            while not self._stopping.is_set() and (job := self._next()) is not None:
                self._send(job)

    def _next(self) -> Job | None:
        with self._lock:
            ripe = self._due and self._due[0][0] <= time.monotonic()
            return heapq.heappop(self._due)[2] if ripe else None

    def _send(self, job: Job) -> None:
        event = documents.event(job)
        body = json.dumps(event).encode()
        timestamp = str(int(time.time()))  # what the receiver's clock shows, whatever ours does
        headers = {
            "Content-Type": "application/json",
            "X-Sume-Event-Id": event["id"],
            "X-Sume-Timestamp": timestamp,
            "X-Sume-Signature": signature(self._secret, timestamp, body),
        }
        # Whoever is told may read at once, whatever the last reply asked for.
        self._rules.ledger.set_due(job.id, None)
        status = _post(job.webhook_url, body, headers)
        self._rules.ledger.note_event(SentEvent(event["id"], job.id, status))
        logger.info("Webhook %s answered with %d.", event["type"], status)


def _post(url: str, body: bytes, headers: dict[str, str]) -> int:
    """The status of the answer; 0 where none came."""
    parts = urlsplit(url)
    make = HTTPSConnection if parts.scheme == "https" else HTTPConnection
    connection = make(parts.hostname or "", parts.port, timeout=TIMEOUT_SECONDS)
    path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    with contextlib.closing(connection), contextlib.suppress(OSError, HTTPException):
        connection.request("POST", path, body, headers)
        return connection.getresponse().status
    return 0
