"""Keeps the sorted set true to the database, whichever scheduler runs: part of each sweep."""

import logging
import time
from collections.abc import Callable
from typing import Any
from uuid import UUID

from django.utils import timezone

from renders.conf import conf, workspaces
from renders.coordination.due_set import SortedSet
from renders.lifecycle.steps import Step
from renders.limits import gate
from renders.models import RenderJob
from renders.states import RequestType, Status
from renders.telemetry import metrics

logger = logging.getLogger(__name__)

# What is lost from the set without a trace (a failover to an old copy) comes back after so long.
WHOLE_SECONDS = 600.0
CHUNK = 1000
# One sweep hands so many over to messages: those that are due first.
MOST_DRAINED = 5000


def keep(polls: SortedSet) -> None:
    """Put back what the set has lost, drop what has ended."""
    now = time.time()
    # Emptied, or more is missing than the sweep puts back by itself.
    submitted = RenderJob.objects.filter(status=Status.SUBMITTED)
    if not polls.is_whole() or len(polls) + conf.SWEEP_BATCH < submitted.count():
        restored = _restore(polls)
        polls.note_whole(WHOLE_SECONDS)
        if restored:
            metrics.count("repairs", restored, repair="restored")
            logger.warning("Sweep puts %d renders back into the sorted set.", restored)
    late = polls.due_by(now - conf.grace_seconds, conf.SWEEP_BATCH)
    if not late:
        return
    rows = RenderJob.objects.filter(pk__in=late, status=Status.SUBMITTED)
    running = dict(rows.values_list("pk", "workspace"))
    polls.remove(pk for pk in late if pk not in running)
    moment = timezone.now()
    open_ones = {
        name for name in workspaces.names() if not gate.closed(name, RequestType.READS, moment)
    }
    running = {pk: workspace for pk, workspace in running.items() if workspace in open_ones}
    if running:
        logger.warning(
            "%d reads are late by more than %g s. Does `pollrenders` or a worker of the queue "
            "renders.poll run?",
            len(running),
            conf.grace_seconds,
        )


def drain(polls: SortedSet, follow: Callable[[list[Step]], object]) -> None:
    """The set is not used any more: `follow` has messages carry on what is due soon."""
    now = time.time()
    due = polls.due_by(now + 2 * conf.SWEEP_SECONDS, MOST_DRAINED)
    if not due:
        return
    logger.warning("Sweep hands %d renders of the sorted set over to messages.", len(due))
    follow([Step("poll", pk, max(0.0, at - now)) for pk, at in due.items()])
    polls.remove(due)


def _restore(polls: SortedSet) -> int:
    submitted = RenderJob.objects.filter(status=Status.SUBMITTED).order_by("next_poll_at")
    rows: Any = submitted.values_list("pk", "next_poll_at")
    restored = 0
    chunk: dict[UUID, float] = {}
    for pk, due in rows.iterator(chunk_size=CHUNK):
        chunk[pk] = due.timestamp()
        if len(chunk) == CHUNK:
            restored += polls.add_missing(chunk)
            chunk = {}
    return restored + polls.add_missing(chunk)
