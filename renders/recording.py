"""Writes down what a read told, where nobody has read since, and says what follows.

One row at a time, or many in one statement where the database can.
"""

import logging
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

from django.utils import timezone

from renders import admission, claims
from renders.conf import conf
from renders.exceptions import SumeError
from renders.learning import Answer, Ends, Goes, learn
from renders.models import RenderJob
from renders.reading import Heard
from renders.steps import Step

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class Next:
    """What follows a read: the next one in `wait` seconds, None if this reader shall not go on."""

    wait: float | None = None
    steps: list[Step] = field(default_factory=list)


def record(render: RenderJob, answer: Answer) -> Next:
    """Write down one answer for the render as it was before the read."""
    now = timezone.now()
    learned = learn(render, answer, now)
    _complain(render, answer, learned)
    if isinstance(learned, Ends):
        return _end(render, learned, now)
    return _go_on(render, learned, now)


def record_many(answers: Sequence[tuple[RenderJob, Answer]]) -> list[Next]:
    """As `record`, for many; what follows is in the order of the answers."""
    now = timezone.now()
    learned = [learn(render, answer, now) for render, answer in answers]
    going = [
        _heard(render, told, now)
        for (render, _), told in zip(answers, learned, strict=True)
        if isinstance(told, Goes)
    ]
    won = RenderJob.objects.record_reads(going, now)
    found = []
    for (render, answer), told in zip(answers, learned, strict=True):
        _complain(render, answer, told)
        if isinstance(told, Ends):
            found.append(_end(render, told, now))
        elif render.pk in won:
            found.append(_after(render, told, told.wait))
        else:
            found.append(_go_on(render, told, now))
    return found


def _go_on(render: RenderJob, told: Goes, now: datetime) -> Next:
    wait = told.wait
    won = RenderJob.objects.record(_heard(render, told, now), now)
    if not won and told.answered:
        # Asked for since this read began, unless somebody else has read.
        wait = conf.MIN_POLL_SECONDS
        told = replace(told, wait=wait, answered=False)
        won = RenderJob.objects.record(_heard(render, told, now), now)
    return _after(render, told, wait) if won else Next()


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
        RenderJob.objects.log(render.pk, "sume status", told.sume_status)
    return Next(wait, cancel_if_asked(render))


def cancel_if_asked(render: RenderJob) -> list[Step]:
    """The step that asks Sume to cancel, where a person wants that and has no answer yet."""
    # Where no POST may be sent now, no message either: the next read looks again.
    unanswered = render.cancel_requested_at and not render.cancel_answered_at
    return [Step("cancel", render.pk)] if unanswered and claims.cancels_left() else []


def _end(render: RenderJob, told: Ends, now: datetime) -> Next:
    won = RenderJob.objects.end(
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
        return Next()
    logger.info("Render %s %s.", render.pk, told.status)
    # Its place at Sume is free for the next in line.
    admission.freed()
    return Next(None, [Step("finish", render.pk), *claims.next_in_line()])


def _complain(render: RenderJob, answer: Answer, told: Goes | Ends) -> None:
    if isinstance(answer, SumeError) and isinstance(told, Goes):
        logger.warning(
            "Reading render %s failed (%s); again in %.1f s.", render.pk, answer.code, told.wait
        )
