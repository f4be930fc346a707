"""The repair: finds what stopped moving, at every arrow, and says how to put it back."""

import logging
from datetime import datetime, timedelta
from uuid import UUID

from django.utils import timezone

from renders import transitions
from renders.conf import conf, workspaces
from renders.lifecycle import claims
from renders.lifecycle.steps import Step
from renders.limits import gate, over_budget, submit_deadline
from renders.models import RenderJob
from renders.models.querysets import RenderQuerySet
from renders.states import RequestType
from renders.telemetry import metrics

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
    queue is not made longer. However many wait to be sent, one message starts all of a workspace.
    """
    now = timezone.now()
    batch = conf.SWEEP_BATCH
    grace = conf.grace_seconds + SLACK_SECONDS
    before = now - timedelta(seconds=grace)
    # In no order: PostgreSQL might look through the newest of all for a few that waited long.
    renders = RenderJob.objects.order_by()

    reaped = [
        pk
        for pk in renders.stuck_submitting(now, conf.REAP_AFTER_SECONDS).pks(batch)
        if transitions.reap(pk, now, conf.REAP_AFTER_SECONDS)
    ]
    canceled = [
        pk
        for pk in renders.withdrawn().pks(batch)
        if transitions.cancel_unsent(pk, now, asked=True)
    ]
    for workspace in workspaces.names():
        if gate.try_new_key(workspace):
            transitions.recall(workspace)  # what was refused waits for the end of that pause
    given_up: list[UUID] = []
    unsent: list[UUID] = []
    for workspace in renders.waiting().their_workspaces():
        given_up += [
            pk
            for pk in _expired(renders, workspace, now).pks(batch)
            if transitions.give_up(pk, now)
        ]
        if not claims.closed(workspace, now):
            returned = over_budget.take_back(workspace, now)
            ours = renders.filter(pk__in=reaped, workspace=workspace) if reaped else renders.none()
            line = claims.line(workspace, now)
            unsent += line.waiting_since(before).pks(1) or ours.pks(1) or line.pks(min(1, returned))
    unpolled = _unpolled(renders, now, grace).not_swept_since(before).pks(batch)
    unfinished = (
        renders.unhandled_late(now, grace)
        .finishable(workspaces.names())
        .not_swept_since(before)
        .pks(batch)
    )
    # No message lives as long as these wait, so all of them are found here.
    unstored = _unstored(renders, now).not_swept_since(before).pks(batch)
    transitions.mark_swept([*unpolled, *unfinished, *unstored], now)

    found = {
        "taken from dead workers": reaped,
        "canceled": canceled,
        "given up": given_up,
        "to submit": unsent,
        "to poll": unpolled,
        "to finish": unfinished,
    }
    metrics.count("sweeps")
    for what, pks in found.items():
        if pks:
            metrics.count("repairs", len(pks), repair=REPAIRS[what])
    if any(found.values()):
        logger.warning(
            "Sweep puts back %s.",
            ", ".join(f"{len(pks)} {what}" for what, pks in found.items() if pks),
        )
    return [
        *(Step("submit", pk) for pk in unsent),
        *(Step("poll", pk) for pk in unpolled),
        *(Step("finish", pk) for pk in [*canceled, *given_up, *unfinished]),
        *(Step("media", pk) for pk in unstored),
    ]


def _unstored(renders: RenderQuerySet, now: datetime) -> RenderQuerySet:
    # The backlog of the scheduler `database` finds them first.
    if not conf.SAVE_MEDIA or conf.SCHEDULER == "database":
        return renders.none()
    return renders.media_due(now, _read_now(now))


def _read_now(now: datetime) -> list[str]:
    """The workspaces whose reads are not paused."""
    return [name for name in workspaces.names() if not gate.closed(name, RequestType.READS, now)]


def _unpolled(renders: RenderQuerySet, now: datetime, grace: float) -> RenderQuerySet:
    late = renders.late(now, grace)
    # The scheduler `database` reads what the table says is due; in a pause nobody reads.
    if conf.SCHEDULER == "database":
        return late.none()
    return late.filter(workspace__in=_read_now(now))


def _expired(renders: RenderQuerySet, workspace: str, now: datetime) -> RenderQuerySet:
    """What was not sent in time. Not what waits for the settings: nothing fails for them."""
    submit_deadline.note(workspace, now)
    theirs = renders.filter(workspace=workspace)
    if workspaces.missing(workspace):
        return theirs.none()
    return submit_deadline.expired(theirs, gate.row_of(workspace, RequestType.WRITES), now)
