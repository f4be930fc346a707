"""What the table says is to be done now, reads apart: for those whom no message tells."""

from datetime import timedelta

from django.utils import timezone

from renders import claims, gate
from renders.conf import conf
from renders.models import RenderJob
from renders.states import Sort
from renders.steps import Step

# Whoever ended a render finishes it; so much later it is taken for left undone.
LEFT_SECONDS = 2.0
BATCH = 20


def find(*, submits: bool, finishes: int = BATCH) -> list[Step]:
    """The steps that somebody left, or a web process made; each unfinished one for one caller.

    `submits`: whether the line is to be set going. `finishes`: how many can be begun.
    """
    now = timezone.now()
    renders = RenderJob.objects
    patience = timedelta(seconds=conf.grace_seconds)
    steps: list[Step] = []
    if submits and not gate.closed(Sort.WRITES, now):
        steps += [Step("submit", pk) for pk in claims.line(now).pks(1)]
    unfinished = renders.unhandled_late(now, LEFT_SECONDS).not_swept_since(now - patience)
    for pk in unfinished.order_by("next_poll_at").pks(min(BATCH, finishes)):
        if unfinished.filter(pk=pk).update(swept_at=now):
            steps.append(Step("finish", pk))
    unasked = renders.uncanceled().not_asked_to_cancel_since(now - patience).pks(BATCH)
    if unasked and claims.cancels_left():
        steps += [Step("cancel", pk) for pk in unasked]
    return steps
