"""What an answer about a job's status means, and how it is written down.

An answer means one of two things: poll again later, or the job has ended. It is written down only
if no other reader has recorded one since this read began. `record` writes one row; `record_many`
writes many in one statement where the database can.
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

logger = logging.getLogger(__name__)

T = TypeVar("T")
# Sume's answer, or the error that came instead of one.
Answer = JobStatus | SumeError
# Connection errors: retrying row by row would not help.
DATABASE_AWAY = (OperationalError, InterfaceError)


@dataclass(frozen=True)
class KeepPolling:
    """The job still runs, or nothing is known: read it again in `wait` seconds."""

    wait: float
    sume_status: str
    failed_reads: int = 0
    not_found_since: datetime | None = None
    answered: bool = True
    """This read answers the requests to check now that were made before it began."""


@dataclass(frozen=True)
class Ended:
    """The job has ended; `cost` in millionths of a US dollar."""

    status: Status
    sume_status: str
    code: str = ""
    message: str = ""
    cost: int | None = None


@dataclass(frozen=True)
class Next:
    """What follows a read: the next one in `wait` seconds; None: this reader must not continue."""

    wait: float | None = None
    steps: list[Step] = field(default_factory=list)
    ended: bool = False
    """True if the job ended. False and no `wait`: another reader won and continues."""


def record(render: RenderJob, answer: Answer) -> Next:
    """Write down one answer for the render as it was before the read."""
    now = timezone.now()
    meaning = learn(render, answer, now)
    _count(answer, meaning)
    _log_failed_read(render, answer, meaning)
    if isinstance(meaning, KeepPolling):
        return _keep_polling(render, meaning, now)
    following = _end(render, meaning, now)
    if not following.ended:
        return following
    steps = [*following.steps, *claims.next_in_line(render.workspace)]
    return replace(following, steps=steps)


def record_many(
    answers: Sequence[tuple[RenderJob, Answer]], heard_at: Sequence[datetime] = ()
) -> list[Next | None]:
    """Write down many answers, as `record` does; what follows is in the order of the answers.

    The waits that Sume asks for begin at `heard_at`, or now. None for an answer that cannot be
    written down: it does not hold up the others. Raises what the database raises when it is away.
    """
    now = timezone.now()

    def learn_from(render: RenderJob, answer: Answer, at: datetime) -> KeepPolling | Ended:
        meaning = learn(render, answer, at)
        _count(answer, meaning)
        if isinstance(meaning, Ended):
            return meaning
        return replace(meaning, wait=max(0.0, meaning.wait - (now - at).total_seconds()))

    meanings = [
        _apart(render, learn_from, render, answer, at)
        for (render, answer), at in zip(answers, heard_at or [now] * len(answers), strict=True)
    ]
    learned = list(zip(answers, meanings, strict=True))
    updates = [
        _update_of(render, meaning, now)
        for (render, _), meaning in learned
        if isinstance(meaning, KeepPolling)
    ]
    won = _record_together(updates, now)

    def what_follows(render: RenderJob, answer: Answer, meaning: KeepPolling | Ended) -> Next:
        _log_failed_read(render, answer, meaning)
        if isinstance(meaning, Ended):
            return _end(render, meaning, now)
        if render.pk in won:
            return _after(render, meaning, meaning.wait)
        return _keep_polling(render, meaning, now)

    following = [
        None if meaning is None else _apart(render, what_follows, render, answer, meaning)
        for (render, answer), meaning in learned
    ]
    # One step for each workspace, however many slots are free now: each claim starts the next.
    started: set[str] = set()
    for (render, _), after in zip(reversed(answers), reversed(following), strict=True):
        if after and after.ended and render.workspace not in started:
            started.add(render.workspace)
            after.steps.extend(claims.next_in_line(render.workspace))
    return following


def learn(render: RenderJob, answer: Answer, now: datetime) -> KeepPolling | Ended:
    """What this answer means for the render as it was before the read. Writes nothing."""
    if isinstance(answer, SumeError):
        return _learn_from_error(render, answer, now)
    if answer.ending and (answer.ending != Status.COMPLETED or answer.result_ready):
        return _ended(answer.ending, answer)
    # Poll rarely while a webhook is due. Once it came, poll normally: it can precede the API's own
    # status.
    awaits_webhook = render.by_webhook and not (render.asked_at or answer.ending)
    account = workspaces.find(render.workspace) if awaits_webhook else None
    wait = clamp(
        answer.next_poll_after,
        default=conf.DEFAULT_POLL_SECONDS,
        shortest=max(_shortest_wait(render, now), account.webhook_poll_seconds if account else 0),
        longest=conf.MAX_POLL_SECONDS,
    )
    return KeepPolling(wait, answer.sume_status)


def cancel_if_asked(render: RenderJob) -> list[Step]:
    """The step that asks Sume to cancel, if a person asked for that and Sume has not answered."""
    # If no POST may be sent now, no message is sent either: the next read looks again.
    if not render.cancel_requested_at or render.cancel_answered_at:
        return []
    return [Step("cancel", render.pk)] if claims.cancels_left(render.workspace) else []


def _learn_from_error(render: RenderJob, error: SumeError, now: datetime) -> KeepPolling | Ended:
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
        # Sume refunds failed and canceled jobs, unless it says that it has captured the money.
        cost=answer.cost_usd_micros if completed or answer.captured else 0,
    )


def _shortest_wait(render: RenderJob, now: datetime) -> float:
    """Seconds; long for a job that Sume should have ended long ago."""
    overdue = conf.OVERDUE_HOURS * 3600
    if overdue and render.submitted_at and (now - render.submitted_at).total_seconds() > overdue:
        return conf.MAX_POLL_SECONDS
    return conf.MIN_POLL_SECONDS


def _record_together(updates: list[PollUpdate], now: datetime) -> set[UUID]:
    """Ids of the renders that were written in one statement; empty if one of them cannot be."""
    try:
        return transitions.record_reads(updates, now)
    except DATABASE_AWAY:
        raise
    except Exception:
        logger.exception("Writing down %d reads failed; each by itself now.", len(updates))
        return set()


def _apart(render: RenderJob, act: Callable[..., T], *args: Any) -> T | None:
    """What `act` returns; None, and a line in the log, if it fails for this render."""
    with log_context.about(render=render.pk, job=render.sume_job_id):
        try:
            return act(*args)
        except DATABASE_AWAY:
            raise
        except Exception:
            logger.exception("Writing down a read of render %s failed.", render.pk)
            return None


def _keep_polling(render: RenderJob, meaning: KeepPolling, now: datetime) -> Next:
    wait = meaning.wait
    won = transitions.record(_update_of(render, meaning, now), now)
    if not won and meaning.answered:
        # Either a check was asked for since this read began, or another reader has won.
        wait = conf.MIN_POLL_SECONDS
        meaning = replace(meaning, wait=wait, answered=False)
        won = transitions.record(_update_of(render, meaning, now), now)
    return _after(render, meaning, wait) if won else _lost()


def _end(render: RenderJob, meaning: Ended, now: datetime) -> Next:
    won = transitions.end(
        render.pk,
        render.poll_count,
        now,
        meaning.status,
        sume_status=meaning.sume_status,
        code=meaning.code,
        message=meaning.message,
        cost=meaning.cost,
    )
    if not won:
        return _lost()
    logger.info("Render %s %s.", render.pk, meaning.status)
    # Its slot at Sume is free for the next in line.
    capacity.freed(render.workspace)
    return Next(None, [Step("finish", render.pk)], ended=True)


def _lost() -> Next:
    """Another reader has recorded an answer meanwhile."""
    metrics.count("lease_losses", reason="fenced")
    return Next()


def _update_of(render: RenderJob, meaning: KeepPolling, now: datetime) -> PollUpdate:
    return PollUpdate(
        render.pk,
        render.poll_count,
        render.asked_at,
        now + timedelta(seconds=meaning.wait),
        meaning.sume_status,
        meaning.failed_reads,
        meaning.not_found_since,
        meaning.answered,
    )


def _after(render: RenderJob, meaning: KeepPolling, wait: float) -> Next:
    if meaning.sume_status != render.sume_status:
        transitions.log(render.pk, "sume status", meaning.sume_status)
    return Next(wait, cancel_if_asked(render))


def _count(answer: Answer, meaning: KeepPolling | Ended) -> None:
    if isinstance(answer, SumeError):
        metrics.count("reads", outcome=answer.outcome)
    else:
        metrics.count("reads", outcome="ended" if isinstance(meaning, Ended) else "waiting")


def _log_failed_read(render: RenderJob, answer: Answer, meaning: KeepPolling | Ended) -> None:
    if isinstance(answer, SumeError) and isinstance(meaning, KeepPolling):
        with log_context.about(sume_request=answer.request_id):
            logger.warning(
                "Reading render %s failed (%s); again in %.1f s.",
                render.pk,
                answer.code,
                meaning.wait,
            )
