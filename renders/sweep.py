"""The repair: finds what stopped moving, at every arrow, and says how to put it back."""

import logging
from datetime import datetime, timedelta
from uuid import UUID

from django.utils import timezone

from renders import claims, counting, gate
from renders.conf import conf
from renders.models import RenderJob
from renders.queries import RenderQueries
from renders.states import Sort
from renders.steps import Step

logger = logging.getLogger(__name__)
# The lease runs out this many seconds before the sweep looks, by whichever clock.
SLACK_SECONDS = 1.0
# How what the log tells is counted.
REPAIRS = {
    "taken from dead workers": "reaped",
    "canceled": "canceled",
    "given up": "given_up",
    "to submit": "submit",
    "to poll": "poll",
    "to finish": "finish",
}


def sweep() -> list[Step]:
    """Return the steps for what stopped: reaped, unsent, unpolled and unfinished renders.

    A render is put back at most once in the time that a healthy step may take, so that a long
    queue is not made longer. However many wait to be sent, one message starts them all.
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
    canceled = [
        pk for pk in renders.withdrawn().pks(batch) if renders.cancel_unsent(pk, now, asked=True)
    ]
    given_up = [pk for pk in _expired(now).pks(batch) if renders.give_up(pk, now)]
    unsent = [] if gate.closed(Sort.WRITES, now) else _waiting(now, before) or reaped[:1]
    unpolled = _unpolled(now, grace).not_swept_since(before).pks(batch)
    unfinished = renders.unhandled_late(now, grace).not_swept_since(before).pks(batch)
    renders.mark_swept([*unpolled, *unfinished], now)

    found = {
        "taken from dead workers": reaped,
        "canceled": canceled,
        "given up": given_up,
        "to submit": unsent,
        "to poll": unpolled,
        "to finish": unfinished,
    }
    counting.count("sweeps")
    for what, pks in found.items():
        if pks:
            counting.count("repairs", len(pks), repair=REPAIRS[what])
    if any(found.values()):
        logger.warning(
            "Sweep puts back %s.",
            ", ".join(f"{len(pks)} {what}" for what, pks in found.items() if pks),
        )
    return [
        *(Step("submit", pk) for pk in unsent),
        *(Step("poll", pk) for pk in unpolled),
        *(Step("finish", pk) for pk in [*canceled, *given_up, *unfinished]),
    ]


def _waiting(now: datetime, before: datetime) -> list[UUID]:
    return claims.line(now).waiting_since(before).pks(1)


def _unpolled(now: datetime, grace: float) -> RenderQueries:
    late = RenderJob.objects.late(now, grace)
    # The scheduler `database` reads what the table says is due; in a pause nobody reads.
    spared = conf.SCHEDULER == "database" or gate.closed(Sort.READS, now)
    return late.none() if spared else late


def _expired(now: datetime) -> RenderQueries:
    hours = conf.SUBMIT_DEADLINE_HOURS
    expired = RenderJob.objects.expired(now - timedelta(hours=hours))
    return expired if hours else expired.none()
