"""Writes down what a read told, where nobody has read since, and says what follows.

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

from renders import admission, claims, counting, log_context, transitions
from renders.conf import conf
from renders.exceptions import SumeError
from renders.learning import Answer, Ends, Goes, learn
from renders.models import RenderJob
from renders.steps import Step
from renders.transitions import Heard

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
    if isinstance(learned, Ends):
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

    def learn_from(render: RenderJob, answer: Answer, at: datetime) -> Goes | Ends:
        told = learn(render, answer, at)
        _count(answer, told)
        if isinstance(told, Ends):
            return told
        return replace(told, wait=max(0.0, told.wait - (now - at).total_seconds()))

    learned = [
        _apart(render, learn_from, render, answer, at)
        for (render, answer), at in zip(answers, heard_at or [now] * len(answers), strict=True)
    ]
    told_of = list(zip(answers, learned, strict=True))
    won = _record_going(
        [_heard(render, told, now) for (render, _), told in told_of if isinstance(told, Goes)], now
    )

    def what_follows(render: RenderJob, answer: Answer, told: Goes | Ends) -> Next:
        _complain(render, answer, told)
        if isinstance(told, Ends):
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


def _record_going(going: list[Heard], now: datetime) -> set[UUID]:
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


def _go_on(render: RenderJob, told: Goes, now: datetime) -> Next:
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
    counting.count("lease_losses", reason="fenced")
    return Next()


def _heard(render: RenderJob, told: Goes, now: datetime) -> Heard:
    return Heard(
        render.pk,
        render.poll_count,
        render.asked_at,
        now + timedelta(seconds=told.wait),
        told.sume_status,
        told.failed_reads,
        told.not_found_since,
        told.answered,
    )


def _after(render: RenderJob, told: Goes, wait: float) -> Next:
    if told.sume_status != render.sume_status:
        transitions.log(render.pk, "sume status", told.sume_status)
    return Next(wait, cancel_if_asked(render))


def cancel_if_asked(render: RenderJob) -> list[Step]:
    """The step that asks Sume to cancel, where a person wants that and has no answer yet."""
    # Where no POST may be sent now, no message either: the next read looks again.
    if not render.cancel_requested_at or render.cancel_answered_at:
        return []
    return [Step("cancel", render.pk)] if claims.cancels_left(render.workspace) else []


def _end(render: RenderJob, told: Ends, now: datetime) -> Next:
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
    admission.freed(render.workspace)
    return Next(None, [Step("finish", render.pk)], ended=True)


def _count(answer: Answer, told: Goes | Ends) -> None:
    if isinstance(answer, SumeError):
        counting.count("reads", outcome=answer.outcome)
    else:
        counting.count("reads", outcome="ended" if isinstance(told, Ends) else "waiting")


def _complain(render: RenderJob, answer: Answer, told: Goes | Ends) -> None:
    if isinstance(answer, SumeError) and isinstance(told, Goes):
        with log_context.about(sume_request=answer.request_id):
            logger.warning(
                "Reading render %s failed (%s); again in %.1f s.", render.pk, answer.code, told.wait
            )
