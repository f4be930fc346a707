"""What the table says is to be done now, reads apart: for those whom no message tells."""

from collections.abc import Collection
from datetime import timedelta
from uuid import UUID

from django.utils import timezone

from renders import claims, gate, workspaces
from renders.conf import conf
from renders.models import RenderJob
from renders.states import Sort
from renders.steps import Step

# Whoever ended a render finishes it; so much later it is taken for left undone.
LEFT_SECONDS = 2.0
BATCH = 20


def find(
    *, starting: Collection[UUID] = (), finishes: int = BATCH, saves: int = BATCH
) -> list[Step]:
    """The steps that somebody left, or a web process made; each unfinished one for one caller.

    `starting`: renders being sent now, which set the lines of their workspaces going; the other
    lines are set going here. `finishes`, `saves`: how many can be begun.
    """
    now = timezone.now()
    renders = RenderJob.objects
    patience = timedelta(seconds=conf.grace_seconds)
    steps: list[Step] = []
    going = renders.filter(pk__in=list(starting)).values_list("workspace", flat=True)
    served = set(going) if starting else set()
    for workspace in workspaces.names():
        if workspace not in served and not claims.closed(workspace, now):
            steps += [Step("submit", pk) for pk in claims.line(workspace, now).pks(1)]
    unfinished = renders.unhandled_late(now, LEFT_SECONDS).finishable(workspaces.names())
    unfinished = unfinished.not_swept_since(now - patience)
    for pk in unfinished.order_by("next_poll_at").pks(min(BATCH, finishes)):
        if unfinished.filter(pk=pk).update(swept_at=now):
            steps.append(Step("finish", pk))
    if conf.SAVE_MEDIA and saves:
        read = [name for name in workspaces.names() if not gate.closed(name, Sort.READS, now)]
        late = renders.media_due(now, read).not_swept_since(now - patience)
        for pk in late.order_by("media_due_at").pks(min(BATCH, saves)):
            if late.filter(pk=pk).update(swept_at=now):
                steps.append(Step("media", pk))
    unasked = renders.uncanceled().not_asked_to_cancel_since(now - patience)
    # First those that may be asked at all: others' would take all places of the batch.
    free = [name for name in unasked.their_workspaces() if claims.cancels_left(name)]
    asking = unasked.filter(workspace__in=free).pks(BATCH) if free else []
    return [*steps, *(Step("cancel", pk) for pk in asking)]
