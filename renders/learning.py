"""What a read of a job's status means: wait and read again, or the end. Decides, writes nothing."""

from dataclasses import dataclass
from datetime import datetime

from renders import workspaces
from renders.conf import conf
from renders.exceptions import NotFound, SumeError
from renders.models import RenderJob
from renders.pacing import back_off, clamp
from renders.replies import JobStatus
from renders.states import Status

# What Sume, or nobody, answered.
Answer = JobStatus | SumeError


@dataclass(frozen=True)
class Goes:
    """The job still runs, or nothing is known: read it again in `wait` seconds."""

    wait: float
    sume_status: str
    failed_reads: int = 0
    not_found_since: datetime | None = None
    answered: bool = True
    """Whoever asked for a read at once before it has had it."""


@dataclass(frozen=True)
class Ends:
    """The job has ended; `cost` in millionths of a US dollar."""

    status: Status
    sume_status: str
    code: str = ""
    message: str = ""
    cost: int | None = None


def learn(render: RenderJob, answer: Answer, now: datetime) -> Goes | Ends:
    """What this answer means for the render as it was before the read."""
    if isinstance(answer, SumeError):
        return _failed(render, answer, now)
    if answer.ending and (answer.ending != Status.COMPLETED or answer.result_ready):
        return _ended(answer.ending, answer)
    # Rarely where an event will tell. If one has told, it is here before the reads know it.
    awaits = render.by_webhook and not (render.asked_at or answer.ending)
    account = workspaces.find(render.workspace) if awaits else None
    wait = clamp(
        answer.next_poll_after,
        default=conf.DEFAULT_POLL_SECONDS,
        shortest=max(_shortest_wait(render, now), account.webhook_poll_seconds if account else 0),
        longest=conf.MAX_POLL_SECONDS,
    )
    return Goes(wait, answer.sume_status)


def _failed(render: RenderJob, error: SumeError, now: datetime) -> Goes | Ends:
    missing = isinstance(error, NotFound)
    # Other failures in between prove nothing: only a successful read resets the grace.
    since = render.not_found_since or (now if missing else None)
    if missing and since and (now - since).total_seconds() > conf.NOT_FOUND_GRACE_SECONDS:
        return Ends(
            Status.FAILED,
            render.sume_status,
            code="job_not_found",
            message="Sume no longer knows this job. Look into your Sume account before you retry: "
            "a retry is a new job with a new bill.",
        )
    failures = render.failed_reads + 1
    wait = back_off(failures, base=conf.DEFAULT_POLL_SECONDS, longest=conf.MAX_POLL_SECONDS)
    wait = max(wait, error.retry_after or 0)
    wait = clamp(
        wait, default=wait, shortest=_shortest_wait(render, now), longest=conf.MAX_POLL_SECONDS
    )
    return Goes(wait, render.sume_status, failures, since, answered=False)


def _ended(ending: Status, answer: JobStatus) -> Ends:
    completed = ending == Status.COMPLETED
    return Ends(
        ending,
        answer.sume_status,
        code="" if completed else answer.fault.code,
        message="" if completed else answer.fault.message,
        # Sume refunds what failed or was canceled, unless it says that it has taken the money.
        cost=answer.cost_usd_micros if completed or answer.captured else 0,
    )


def _shortest_wait(render: RenderJob, now: datetime) -> float:
    """Seconds; long for a job that Sume should have ended long ago."""
    overdue = conf.OVERDUE_HOURS * 3600
    if overdue and render.submitted_at and (now - render.submitted_at).total_seconds() > overdue:
        return conf.MAX_POLL_SECONDS
    return conf.MIN_POLL_SECONDS
