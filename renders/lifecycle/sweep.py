"""The periodic repair: finds renders that stopped at any step, and returns what resumes them."""

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
# Leases expire this many seconds before the sweep looks, to allow for clock differences.
SLACK_SECONDS = 1.0
# The metric label of each repair in the log.
REPAIRS = {
    "taken from dead workers": "reaped",
    "canceled": "canceled",
    "given up": "given_up",
    "to submit": "submit",
    "to poll": "poll",
    "to finish": "finish",
}


def sweep() -> list[Step]:
    """Return the steps for stopped renders: reaped, unsent, unpolled and unfinished ones.

    A render is put back at most once in the time that a healthy step may take, so that a long
    queue does not grow. One message starts all waiting renders of a workspace.
    """
    now = timezone.now()
    batch = conf.SWEEP_BATCH
    grace = conf.grace_seconds + SLACK_SECONDS
    before = now - timedelta(seconds=grace)
    # Unordered: for an order, PostgreSQL might scan all rows by age to find the few old ones.
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
            transitions.recall(workspace)  # refused renders had to wait for the end of that pause
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
            own = renders.filter(pk__in=reaped, workspace=workspace) if reaped else renders.none()
            line = claims.line(workspace, now)
            unsent += line.waiting_since(before).pks(1) or own.pks(1) or line.pks(min(1, returned))
    unpolled = _unpolled(renders, now, grace).not_swept_since(before).pks(batch)
    unfinished = (
        renders.unhandled_late(now, grace)
        .finishable(workspaces.names())
        .not_swept_since(before)
        .pks(batch)
    )
    # These wait longer than any message lives, so the sweep finds them all.
    unstored = _unstored(renders, now).not_swept_since(before).pks(batch)
    transitions.mark_swept([*unpolled, *unfinished, *unstored], now)

    repairs = {
        "taken from dead workers": reaped,
        "canceled": canceled,
        "given up": given_up,
        "to submit": unsent,
        "to poll": unpolled,
        "to finish": unfinished,
    }
    metrics.count("sweeps")
    for what, pks in repairs.items():
        if pks:
            metrics.count("repairs", len(pks), repair=REPAIRS[what])
    if any(repairs.values()):
        logger.warning(
            "Sweep puts back %s.",
            ", ".join(f"{len(pks)} {what}" for what, pks in repairs.items() if pks),
        )
    return [
        *(Step("submit", pk) for pk in unsent),
        *(Step("poll", pk) for pk in unpolled),
        *(Step("finish", pk) for pk in [*canceled, *given_up, *unfinished]),
        *(Step("media", pk) for pk in unstored),
    ]


def _unstored(renders: RenderQuerySet, now: datetime) -> RenderQuerySet:
    # With the scheduler `database`, `schedulers.runner.find` finds them first.
    if not conf.SAVE_MEDIA or conf.SCHEDULER == "database":
        return renders.none()
    return renders.media_due(now, _readable(now))


def _readable(now: datetime) -> list[str]:
    """The workspaces in which reads are not paused."""
    return [name for name in workspaces.names() if not gate.closed(name, RequestType.READS, now)]


def _unpolled(renders: RenderQuerySet, now: datetime, grace: float) -> RenderQuerySet:
    late = renders.late(now, grace)
    # The scheduler `database` finds due reads in the table. During a pause, no job is read.
    if conf.SCHEDULER == "database":
        return late.none()
    return late.filter(workspace__in=_readable(now))


def _expired(renders: RenderQuerySet, workspace: str, now: datetime) -> RenderQuerySet:
    """Renders that were not sent in time; none if the workspace is missing from the settings."""
    submit_deadline.note(workspace, now)
    waiting = renders.filter(workspace=workspace)
    if workspaces.missing(workspace):
        return waiting.none()
    return submit_deadline.expired(waiting, gate.row_of(workspace, RequestType.WRITES), now)
