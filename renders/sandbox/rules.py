"""The state machine: what each request does and what it is answered. Knows no HTTP server.

Every method takes plain values and returns the `data` of the reply as a dict, or raises
`ApiError`. The clock is passed in; all methods may be called from any thread.
"""

import math
import threading
from collections import deque
from collections.abc import Callable
from typing import Any

from . import documents, submissions
from .budget import Budget
from .idempotency import KeyStore, fingerprint
from .jobs import COMPLETED, FAILED, KINDS, QUEUED, TERMINAL, Job
from .ledger import Bill, Ledger, Refund
from .line import Line
from .options import READS_PER_WRITE, Options
from .replies import ApiError

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
        self._line = Line(options)
        self._plans: deque[dict[str, Any]] = deque()
        writes = options.writes_per_minute
        self._writes = None if writes is None else Budget(writes)
        self._reads = None if writes is None else Budget(writes * READS_PER_WRITE)

    def now(self) -> float:
        """The sandbox's time, in seconds."""
        return self._clock()

    def settle(self) -> None:
        """Let every job catch up with the clock, so that the ledger is up to date."""
        with self._lock:
            self._catch_up()

    def spend(self, caller: str, *, write: bool) -> dict[str, str]:
        """Take one request from the caller's minute; the `RateLimit-*` headers.

        Raises ApiError 429 `rate_limit_exceeded` with Retry-After when it is used up.
        """
        with self._lock:
            budget = self._writes if write else self._reads
            if budget is None:
                return {}
            allowance = budget.spend(caller, self.now())
        if allowance.allowed:
            return allowance.headers()
        raise ApiError(
            429,
            "rate_limit_exceeded",
            f"More than {allowance.limit} {'writes' if write else 'reads'} in a minute.",
            retryable=True,
            retry_after=str(allowance.reset_seconds),
        )

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
                submissions.check(fields)
                self._admit(now)
                job = self._accept(kind, fields, key, now)
                self._keys.remember(key, request, job)
            capacity = max(0, self.options.queued_limit - self._line.waiting)
            return documents.submitted(job, base_url=base_url, hit=hit, capacity=capacity)

    def status(self, job_id: str) -> dict[str, Any]:
        """A job's status, with the seconds until the next read is welcome. ApiError 404."""
        with self._lock:
            now = self._catch_up()
            self.ledger.note_read(job_id, "status", now)
            job = self._find(job_id)
            hint = self._hint(job, now)
            self.ledger.set_due(job_id, None if hint is None else now + hint)
            return documents.status(job, now=now, hint=hint)

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
            path = self._signed_path(job.id, job.kind.file_name)
            return documents.result(job, url=f"{base_url}{path}")

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

    def _accept(self, kind: str, fields: dict[str, Any], key: str | None, now: float) -> Job:
        price = self.options.price_usd_micros
        model = fields.get("model", "sume/auto")
        plan = self._plans.popleft() if self._plans else {}
        job = Job(KINDS[kind], model, fields["prompt"], now, price, **plan)
        job.result_seconds = self.options.result_seconds
        job.webhook_url = fields["webhook_url"] if fields.get("mode") == "webhook" else ""
        self._jobs[job.id] = job
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


def job_not_found() -> ApiError:
    """The refusal for a job id that is unknown or expired."""
    return ApiError(404, "job_not_found", "There is no such job, or it has expired.")


def result_not_ready(status: int) -> ApiError:
    """The refusal for a result that is read too soon. `status` is 404 or 409."""
    message = "The result is not ready yet."
    return ApiError(status, "result_not_ready", message, retryable=True)
