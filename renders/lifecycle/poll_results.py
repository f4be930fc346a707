"""What a read of a job's status means: wait and read again, or the end. Decides, writes nothing.

Writes down what a read told, where nobody has read since, and says what follows.

One row at a time, or many in one statement where the database can.
"""

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any, TypeVar
from uuid import UUID

from django.db import InterfaceError, OperationalError
from django.utils import timezone

from renders import transitions
from renders.conf import conf, workspaces
from renders.exceptions import NotFound, SumeError
from renders.lifecycle import claims
from renders.lifecycle.steps import Step
from renders.limits import capacity
from renders.models import RenderJob
from renders.states import Status
from renders.sume.replies import JobStatus
from renders.sume.timing import back_off, clamp
from renders.telemetry import log_context, metrics
from renders.transitions import PollUpdate

# What Sume, or nobody, answered.
Answer = JobStatus | SumeError


@dataclass(frozen=True)
class KeepPolling:
    """The job still runs, or nothing is known: read it again in `wait` seconds."""

    wait: float
    sume_status: str
    failed_reads: int = 0
    not_found_since: datetime | None = None
    answered: bool = True
    """Whoever asked for a read at once before it has had it."""


@dataclass(frozen=True)
class Ended:
    """The job has ended; `cost` in millionths of a US dollar."""

    status: Status
    sume_status: str
    code: str = ""
    message: str = ""
    cost: int | None = None


def learn(render: RenderJob, answer: Answer, now: datetime) -> KeepPolling | Ended:
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
    return KeepPolling(wait, answer.sume_status)


def _failed(render: RenderJob, error: SumeError, now: datetime) -> KeepPolling | Ended:
    missing = isinstance(error, NotFound)
    # Other failures in between prove nothing: only a successful read resets the grace.
    since = render.not_found_since or (now if missing else None)
    if missing and since and (now - since).total_seconds() > conf.NOT_FOUND_GRACE_SECONDS:
        return Ended(
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
    return KeepPolling(wait, render.sume_status, failures, since, answered=False)


def _ended(ending: Status, answer: JobStatus) -> Ended:
    completed = ending == Status.COMPLETED
    return Ended(
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


logger = logging.getLogger(__name__)
T = TypeVar("T")
# Then no row can be written, whatever is in it.
DATABASE_AWAY = (OperationalError, InterfaceError)


@dataclass(frozen=True)
class Next:
    """What follows a read: the next one in `wait` seconds, None if this reader shall not go on."""

    wait: float | None = None
    steps: list[Step] = field(default_factory=list)
    ended: bool = False
    """Nobody shall go on; without a wait and an end, somebody else has read, and goes on."""


def record(render: RenderJob, answer: Answer) -> Next:
    """Write down one answer for the render as it was before the read."""
    now = timezone.now()
    learned = learn(render, answer, now)
    _count(answer, learned)
    _complain(render, answer, learned)
    if isinstance(learned, Ended):
        told = _end(render, learned, now)
        return (
            replace(told, steps=[*told.steps, *claims.next_in_line(render.workspace)])
            if told.ended
            else told
        )
    return _go_on(render, learned, now)


def record_many(
    answers: Sequence[tuple[RenderJob, Answer]], heard_at: Sequence[datetime] = ()
) -> list[Next | None]:
    """As `record`, for many; what follows is in the order of the answers.

    The waits that Sume asks for begin at `heard_at`, or now. None for one that cannot be written
    down: it does not hold up the others. Raises what the database raises when it is away.
    """
    now = timezone.now()

    def learn_from(render: RenderJob, answer: Answer, at: datetime) -> KeepPolling | Ended:
        told = learn(render, answer, at)
        _count(answer, told)
        if isinstance(told, Ended):
            return told
        return replace(told, wait=max(0.0, told.wait - (now - at).total_seconds()))

    learned = [
        _apart(render, learn_from, render, answer, at)
        for (render, answer), at in zip(answers, heard_at or [now] * len(answers), strict=True)
    ]
    told_of = list(zip(answers, learned, strict=True))
    won = _record_going(
        [
            _heard(render, told, now)
            for (render, _), told in told_of
            if isinstance(told, KeepPolling)
        ],
        now,
    )

    def what_follows(render: RenderJob, answer: Answer, told: KeepPolling | Ended) -> Next:
        _complain(render, answer, told)
        if isinstance(told, Ended):
            return _end(render, told, now)
        if render.pk in won:
            return _after(render, told, told.wait)
        return _go_on(render, told, now)

    following = [
        None if told is None else _apart(render, what_follows, render, answer, told)
        for (render, answer), told in told_of
    ]
    # However many places are free now: each claim starts the next of its workspace.
    begun: set[str] = set()
    for (render, _), one in zip(reversed(answers), reversed(following), strict=True):
        if one and one.ended and render.workspace not in begun:
            begun.add(render.workspace)
            one.steps.extend(claims.next_in_line(render.workspace))
    return following


def _record_going(going: list[PollUpdate], now: datetime) -> set[UUID]:
    """Those that were written down together; none, where one of them cannot be."""
    try:
        return transitions.record_reads(going, now)
    except DATABASE_AWAY:
        raise
    except Exception:
        logger.exception("Writing down %d reads failed; each by itself now.", len(going))
        return set()


def _apart(render: RenderJob, act: Callable[..., T], *args: Any) -> T | None:
    """What `act` returns; None, and a line in the log, where it fails for this render."""
    with log_context.about(render=render.pk, job=render.sume_job_id):
        try:
            return act(*args)
        except DATABASE_AWAY:
            raise
        except Exception:
            logger.exception("Writing down a read of render %s failed.", render.pk)
            return None


def _go_on(render: RenderJob, told: KeepPolling, now: datetime) -> Next:
    wait = told.wait
    won = transitions.record(_heard(render, told, now), now)
    if not won and told.answered:
        # Asked for since this read began, unless somebody else has read.
        wait = conf.MIN_POLL_SECONDS
        told = replace(told, wait=wait, answered=False)
        won = transitions.record(_heard(render, told, now), now)
    return _after(render, told, wait) if won else _lost()


def _lost() -> Next:
    """Somebody else has read meanwhile."""
    metrics.count("lease_losses", reason="fenced")
    return Next()


def _heard(render: RenderJob, told: KeepPolling, now: datetime) -> PollUpdate:
    return PollUpdate(
        render.pk,
        render.poll_count,
        render.asked_at,
        now + timedelta(seconds=told.wait),
        told.sume_status,
        told.failed_reads,
        told.not_found_since,
        told.answered,
    )


def _after(render: RenderJob, told: KeepPolling, wait: float) -> Next:
    if told.sume_status != render.sume_status:
        transitions.log(render.pk, "sume status", told.sume_status)
    return Next(wait, cancel_if_asked(render))


def cancel_if_asked(render: RenderJob) -> list[Step]:
    """The step that asks Sume to cancel, where a person wants that and has no answer yet."""
    # Where no POST may be sent now, no message either: the next read looks again.
    if not render.cancel_requested_at or render.cancel_answered_at:
        return []
    return [Step("cancel", render.pk)] if claims.cancels_left(render.workspace) else []


def _end(render: RenderJob, told: Ended, now: datetime) -> Next:
    won = transitions.end(
        render.pk,
        render.poll_count,
        now,
        told.status,
        sume_status=told.sume_status,
        code=told.code,
        message=told.message,
        cost=told.cost,
    )
    if not won:
        return _lost()
    logger.info("Render %s %s.", render.pk, told.status)
    # Its place at Sume is free for the next in line.
    capacity.freed(render.workspace)
    return Next(None, [Step("finish", render.pk)], ended=True)


def _count(answer: Answer, told: KeepPolling | Ended) -> None:
    if isinstance(answer, SumeError):
        metrics.count("reads", outcome=answer.outcome)
    else:
        metrics.count("reads", outcome="ended" if isinstance(told, Ended) else "waiting")


def _complain(render: RenderJob, answer: Answer, told: KeepPolling | Ended) -> None:
    if isinstance(answer, SumeError) and isinstance(told, KeepPolling):
        with log_context.about(sume_request=answer.request_id):
            logger.warning(
                "Reading render %s failed (%s); again in %.1f s.", render.pk, answer.code, told.wait
            )
