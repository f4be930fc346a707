"""The line of jobs: who waits, who is processed, and when each moves on. Knows no HTTP.

Nothing runs in the background. Whoever asks, first lets the line catch up with the clock, so
the same questions at the same times always get the same answers.
"""

import math
from collections import deque

from .jobs import CANCELED, COMPLETED, FAILED, PROCESSING, QUEUED, Job, JobError
from .options import Options


def planned_error(prompt: str) -> JobError | None:
    """The error that a prompt asks for: `FAIL ...`, or `FAIL:<public_reason> ...`."""
    if not prompt.startswith("FAIL"):
        return None
    reason = "generation_failed"
    if prompt.startswith("FAIL:"):
        reason = prompt[5:].split(maxsplit=1)[0][:100] if prompt[5:].strip() else reason
    message = "The stand-in was asked to fail: the prompt begins with FAIL."
    return JobError(code=reason, message=message, public_reason=reason)


class JobQueue:
    """First come, first served, at most `processing_limit` at once. Not thread-safe."""

    def __init__(self, options: Options) -> None:
        self._options = options
        self._waiting: deque[Job] = deque()
        self._processing: list[Job] = []
        self._slot_free_at = -math.inf

    @property
    def waiting(self) -> int:
        """How many jobs are queued."""
        return len(self._waiting)

    def join(self, job: Job) -> None:
        """Put a new job at the end."""
        job.events.append((QUEUED, job.accepted_at))
        self._waiting.append(job)

    def cancel(self, job: Job, now: float) -> None:
        """Take a queued job out."""
        self._waiting.remove(job)
        job.move(CANCELED, now)

    def catch_up(self, now: float) -> list[Job]:
        """Move everything that is due by `now`, in the order of time; return what ended."""
        ended: list[Job] = []
        while True:
            finishing = min(self._processing, key=self._finish_time, default=None)
            finish_at = math.inf if finishing is None else self._finish_time(finishing)
            start_at = self._next_start()
            if min(finish_at, start_at) > now:
                return ended
            if finishing is not None and finish_at <= start_at:
                self._finish(finishing, finish_at)
                ended.append(finishing)
            else:
                job = self._waiting.popleft()
                job.move(PROCESSING, start_at)
                self._processing.append(job)

    def remaining(self, job: Job, now: float) -> float:
        """Seconds until the job ends, as far as can be told now; 0 once it has."""
        if job.terminal:
            return 0.0
        if job.status == PROCESSING:
            return max(0.0, self._finish_time(job) - now)
        options = self._options
        rounds = self._waiting.index(job) // options.processing_limit
        wait = max(0.0, job.accepted_at + options.queued_seconds - now)
        if self._processing and len(self._processing) >= options.processing_limit:
            wait = max(wait, min(map(self._finish_time, self._processing)) - now)
        return wait + rounds * options.processing_seconds + self._processing_seconds(job)

    def next_place(self, now: float) -> float:
        """Seconds until a place in the queue can become free."""
        times = [self._next_start(), *map(self._finish_time, self._processing)]
        return max(0.0, min(times) - now)

    def _finish_time(self, job: Job) -> float:
        return (job.started_at or 0.0) + self._processing_seconds(job)

    def _processing_seconds(self, job: Job) -> float:
        planned = job.processing_seconds
        return self._options.processing_seconds if planned is None else planned

    def _next_start(self) -> float:
        if not self._waiting or len(self._processing) >= self._options.processing_limit:
            return math.inf
        ripe_at = self._waiting[0].accepted_at + self._options.queued_seconds
        return max(ripe_at, self._slot_free_at)

    def _finish(self, job: Job, at: float) -> None:
        if len(self._processing) >= self._options.processing_limit:
            self._slot_free_at = at
        self._processing.remove(job)
        job.error = job.planned_error or planned_error(job.prompt)
        job.move(FAILED if job.error else COMPLETED, at)
