"""The state machine: what each request does and what it is answered. Knows no HTTP server.

Every method takes plain values and returns the `data` of the reply as a dict, or raises
`ApiError`. The clock is passed in; all methods may be called from any thread.
"""

import math
import threading
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from . import documents, submissions
from .avatars import Avatars
from .bodies import Wish
from .budget import Budgets
from .idempotency import KeyStore, fingerprint
from .jobs import COMPLETED, FAILED, KINDS, QUEUED, TERMINAL, Job
from .ledger import Bill, Ledger, Refund
from .line import JobQueue
from .options import Options
from .replies import ApiError, job_not_found, result_not_ready

Clock = Callable[[], float]
SignedUrl = Callable[[str, str], str]


class Rules:
    """One workspace of the stand-in API.

    `clock` returns seconds (Unix time outside tests). `signed_path(job_id, file_name)` gives
    the path and query under which a result lies.
    """

    def __init__(self, options: Options, clock: Clock, signed_path: SignedUrl) -> None:
        self.options = options
        self.ledger = Ledger()
        self.on_end: Callable[[Job], object] = lambda job: None
        """Called once for each job that has ended."""
        self._clock = clock
        self._signed_path = signed_path
        self._lock = threading.RLock()
        self._jobs: dict[str, Job] = {}
        self._keys = KeyStore(self.ledger)
        self._line = JobQueue(options)
        self._plans: deque[dict[str, Any]] = deque()
        self._budgets = Budgets(options.writes_per_minute)
        self.avatars = Avatars(options.avatars, clock())

    def now(self) -> float:
        """The sandbox's time, in seconds."""
        return self._clock()

    def settle(self) -> None:
        """Let every job catch up with the clock, so that the ledger is up to date."""
        with self._lock:
            self._catch_up()

    @contextmanager
    def settled(self) -> Iterator[list[Job]]:
        """All jobs, the oldest first, up to date; none of them moves inside the block."""
        with self._lock:
            self._catch_up()
            yield list(self._jobs.values())

    def url_of(self, job: Job, base_url: str) -> str:
        """Where the job's file lies, once it is completed."""
        return f"{base_url}{self._signed_path(job.id, job.kind.file_name)}"

    def spend(self, caller: str, *, write: bool) -> dict[str, str]:
        """Take one request from the caller's minute; the `RateLimit-*` headers.

        Raises ApiError 429 `rate_limit_exceeded` with Retry-After when it is used up.
        """
        with self._lock:
            return self._budgets.spend(caller, self.now(), write=write)

    def submit(
        self, kind: str, body: bytes, key: str | None, *, path: str = "", base_url: str = ""
    ) -> dict[str, Any]:
        """Accept a job, bill it and put it in line; or answer a replay with the first job.

        `kind` is a key of `jobs.KINDS`. Raises ApiError 400, 402, 409, 422, 429.
        """
        fields = submissions.read_json_object(body)
        request = fingerprint(path, fields, body)
        with self._lock:
            now = self._catch_up()
            job = self._keys.replayed(key, request, now)
            hit = job is not None
            if job is None:
                wish = submissions.check(kind, fields)
                self.avatars.check(kind, wish.avatar_handle)
                self._admit(now)
                job = self._accept(kind, wish, key, now)
                job.webhook_url = fields["webhook_url"] if fields.get("mode") == "webhook" else ""
                self._keys.remember(key, request, job)
            capacity = max(0, self.options.queued_limit - self._line.waiting)
            return documents.submitted(job, base_url=base_url, hit=hit, capacity=capacity)

    def status(self, job_id: str, *, base_url: str = "") -> dict[str, Any]:
        """A job's status, with the seconds until the next read is welcome. ApiError 404."""
        with self._lock:
            now = self._catch_up()
            self.ledger.note_read(job_id, "status", now)
            job = self._find(job_id)
            hint = self._hint(job, now)
            self.ledger.set_due(job_id, None if hint is None else now + hint)
            data = documents.status(job, now=now, hint=hint)
            return data | self._avatar_of(job, base_url)

    def result(self, job_id: str, *, base_url: str = "") -> dict[str, Any]:
        """A completed job's result. ApiError 404; 409 when there is none, or none yet."""
        with self._lock:
            now = self._catch_up()
            self.ledger.note_read(job_id, "result", now)
            job = self._find(job_id)
            if job.terminal and job.status != COMPLETED:
                message = f"The job {job.status}; it has no result."
                raise ApiError(409, f"job_{job.status}", message, retryable=False)
            if not job.result_ready(now):
                raise result_not_ready(409)
            data = documents.result(job, url=self.url_of(job, base_url))
            return data | self._avatar_of(job, base_url)

    def record(self, job_id: str) -> dict[str, Any]:
        """The job record. ApiError 404."""
        with self._lock:
            self.ledger.note_read(job_id, "record", self._catch_up())
            return documents.record(self._find(job_id))

    def events(self, job_id: str, limit: int = 50) -> dict[str, Any]:
        """What happened to a job. ApiError 404."""
        with self._lock:
            self.ledger.note_read(job_id, "events", self._catch_up())
            return documents.events(self._find(job_id), limit)

    def jobs(self, limit: int = 20) -> dict[str, Any]:
        """The newest jobs, newest first."""
        with self._lock:
            self._catch_up()
            newest = list(self._jobs.values())[::-1][:limit]
            return {"jobs": [documents.record(job)["job"] for job in newest]}

    def balance(self) -> dict[str, Any]:
        """What the account still holds."""
        with self._lock:
            self._catch_up()
            return {"currency": "USD", "balance_usd_micros": self._balance()}

    def cancel(self, job_id: str, key: str | None, *, path: str = "") -> dict[str, Any]:
        """Cancel a queued job and refund it; the same key again gets the same answer.

        ApiError 404; 409 `job_generation_already_started` or `job_not_cancelable`.
        """
        request = fingerprint(path or job_id, {})
        with self._lock:
            now = self._catch_up()
            replayed = self._keys.replayed(key, request, now)
            if replayed is not None:
                return documents.canceled(replayed)
            job = self._find(job_id)
            if job.status in TERMINAL:
                message = f"The job is {job.status} already."
                raise ApiError(409, "job_not_cancelable", message, retryable=False)
            if job.status != QUEUED:
                message = "The generation has started; it can no longer be canceled."
                raise ApiError(409, "job_generation_already_started", message, retryable=False)
            self._line.cancel(job, now)
            self._refund(job)
            self._keys.remember(key, request, job)
            self.on_end(job)
            return documents.canceled(job)

    def plan(self, **fields: Any) -> None:
        """What shall become of the next job that is accepted: fields of `Job`."""
        self._plans.append(fields)

    def hold_result(self, job_id: str, seconds: float) -> None:
        """Let a job be terminal, but its result not ready, for `seconds`. Unknown ids pass."""
        with self._lock:
            now = self._catch_up()
            job = self._jobs.get(job_id)
            if job is not None:
                job.result_seconds = seconds
                job.ready_at = now + seconds if job.terminal else None

    def finished_job(self, job_id: str) -> Job | None:
        """The completed job of that id, for drawing its result."""
        with self._lock:
            self._catch_up()
            job = self._jobs.get(job_id)
            return job if job is not None and job.status == COMPLETED else None

    def _catch_up(self) -> float:
        now = self.now()
        for job in self._line.catch_up(now):
            if job.status == FAILED:
                self._refund(job)
            self.on_end(job)
        return now

    def _avatar_of(self, job: Job, base_url: str) -> dict[str, Any]:
        avatar = self.avatars.of(job)
        url = self.url_of(job, base_url)
        return {} if avatar is None else {"avatar": documents.avatar(avatar, url=url)}

    def _find(self, job_id: str) -> Job:
        job = self._jobs.get(job_id)
        if job is None:
            raise job_not_found()
        return job

    def _admit(self, now: float) -> None:
        if self._balance() < self.options.price_usd_micros:
            raise ApiError(402, "insufficient_credits", "The balance does not cover this job.")
        if self._line.waiting >= self.options.queued_limit:
            wait = max(1, math.ceil(self._line.next_place(now)))
            message = f"{self._line.waiting} jobs are waiting already."
            raise ApiError(429, "queue_full", message, retryable=True, retry_after=str(wait))

    def _accept(self, kind: str, wish: Wish, key: str | None, now: float) -> Job:
        price = self.options.price_usd_micros
        plan = self._plans.popleft() if self._plans else {}
        job = Job(KINDS[kind], wish.model, wish.text, now, price, **plan)
        job.avatar_handle, job.source_type = wish.avatar_handle, wish.source_type
        job.result_seconds = self.options.result_seconds
        self._jobs[job.id] = job
        if kind == "avatar":
            self.avatars.add(job)
        self._line.join(job)
        self.ledger.note_bill(Bill(job.id, key, price, now))
        return job

    def _refund(self, job: Job) -> None:
        at = job.finished_at if job.finished_at is not None else self.now()
        self.ledger.note_refund(Refund(job.id, job.amount_usd_micros, at))

    def _balance(self) -> int:
        return self.options.balance_usd_micros - self.ledger.net_usd_micros

    def _hint(self, job: Job, now: float) -> float | None:
        if job.terminal:
            return None
        remaining = max(1, math.ceil(self._line.remaining(job, now)))
        return min(remaining, self.options.poll_seconds)
