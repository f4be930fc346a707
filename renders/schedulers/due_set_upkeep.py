"""Keeps the sorted set in line with the database: part of each sweep, for every scheduler."""

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

# The whole set is restored this often, in case entries were lost (a failover to an old copy).
WHOLE_SECONDS = 600.0
CHUNK = 1000
# Most polls that one sweep moves to messages: those that are due first.
MOST_DRAINED = 5000


def keep(polls: SortedSet) -> None:
    """Add missing renders to the set, remove ended ones, and warn about late reads."""
    now = time.time()
    # Restore if the set is incomplete, or misses more than one sweep puts back.
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
    readable = {
        name for name in workspaces.names() if not gate.closed(name, RequestType.READS, moment)
    }
    running = {pk: workspace for pk, workspace in running.items() if workspace in readable}
    if running:
        logger.warning(
            "%d reads are late by more than %g s. Does `pollrenders` or a worker of the queue "
            "renders.poll run?",
            len(running),
            conf.grace_seconds,
        )


def drain(polls: SortedSet, follow: Callable[[list[Step]], object]) -> None:
    """Move polls that are due soon to messages, by `follow`: the set is no longer used."""
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
