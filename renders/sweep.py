"""The repair: finds what stopped moving, at every arrow, and says how to put it back."""

import logging
from datetime import timedelta

from django.utils import timezone

from renders import gate
from renders.conf import conf
from renders.models import RenderJob
from renders.steps import Step

logger = logging.getLogger(__name__)
# The lease runs out this many seconds before the sweep looks, by whichever clock.
SLACK_SECONDS = 1.0


def sweep() -> list[Step]:
    """Return the steps for what stopped: reaped, unsent, unpolled and unfinished renders.

    A render is put back at most once in the time that a healthy step may take, so that a long
    queue is not made longer.
    """
    now = timezone.now()
    batch = conf.SWEEP_BATCH
    grace = conf.grace_seconds + SLACK_SECONDS
    before = now - timedelta(seconds=grace)
    renders = RenderJob.objects

    reaped = [
        pk
        for pk in renders.stuck_submitting(now, conf.REAP_AFTER_SECONDS).pks(batch)
        if renders.reap(pk, now, conf.REAP_AFTER_SECONDS)
    ]
    unsent = [] if gate.closed_for() else renders.due(now).stopped_since(before).pks(batch)
    unpolled = renders.overdue(now, grace).not_swept_since(before).pks(batch)
    patience = conf.finish_seconds + SLACK_SECONDS
    unfinished = renders.unhandled_overdue(now, patience).not_swept_since(before).pks(batch)
    renders.mark_swept([*unsent, *unpolled, *unfinished], now)

    found = {
        "taken from dead workers": reaped,
        "to submit": unsent,
        "to poll": unpolled,
        "to finish": unfinished,
    }
    if any(found.values()):
        logger.warning(
            "Sweep puts back %s.",
            ", ".join(f"{len(pks)} {what}" for what, pks in found.items() if pks),
        )
    return [
        *(Step("submit", pk) for pk in [*reaped, *unsent]),
        *(Step("poll", pk) for pk in unpolled),
        *(Step("finish", pk) for pk in unfinished),
    ]
