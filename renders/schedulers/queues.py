"""Renders whose read is due, each for one reader: from the sorted set, or from the table.

A reader takes some, reads them, writes down what they told, and settles: then the queue knows
when each is due next. What is never settled is due again when the lease is over.
"""

import logging
import time
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Protocol
from uuid import UUID

from django.db import DatabaseError, InterfaceError
from django.utils import timezone

from renders import transitions
from renders.conf import conf
from renders.coordination.connections import REDIS_DOWN
from renders.coordination.due_set import SortedSet
from renders.coordination.leases import Leases
from renders.models import RenderJob
from renders.states import Status
from renders.telemetry import metrics

logger = logging.getLogger(__name__)

# Others may add what is due earlier: so long that stays unseen.
SET_IDLE_SECONDS = 0.05
TABLE_IDLE_SECONDS = 0.25
# Redis was away: so long the table is asked at once.
REST_SECONDS = 1.0
# A lease is over sooner than the set gives its render to the next reader, who needs one.
SOONER_SECONDS = 0.1

# All that a read and what follows it need of a row.
FIELDS = (
    "workspace",
    "status",
    "sume_job_id",
    "sume_status",
    "by_webhook",
    "asked_at",
    "submitted_at",
    "next_poll_at",
    "taken_at",
    "poll_count",
    "failed_reads",
    "not_found_since",
    "cancel_requested_at",
    "cancel_answered_at",
)


@dataclass(frozen=True)
class LeasedRender:
    """One render that this reader may read now, and nobody else."""

    render: RenderJob
    taken_at: datetime | None = None
    """When it was taken from the table."""
    lease_ends: float | None = None
    """Where it stands in the sorted set meanwhile."""
    token: str | None = None
    """Of the lease that chains of messages know, too."""


class Queue(Protocol):
    """Where readers find what is due. Times are Unix seconds."""

    next_due: float | None
    """When to look again, as the last `take` told; None: nothing waits."""
    idle_seconds: float
    """Others may add what is due earlier: look again after this time at the latest."""

    def take(self, limit: int, resting: Collection[str] = ()) -> list[LeasedRender]:
        """Up to `limit` that are due; as far as it can tell, none of these workspaces."""

    def settle(self, read: Sequence[tuple[LeasedRender, float | None]]) -> None:
        """These are written down: each is due again in so many seconds, or (None) never."""

    def let_go(self, held: Sequence[LeasedRender]) -> None:
        """Somebody else has read these, and goes on with them."""

    def give_back(self, held: Sequence[LeasedRender], seconds: float) -> None:
        """These were not read; they are due again in so many seconds."""


class TableQueue:
    """The table itself: for a site without Redis, and where Redis is away."""

    idle_seconds = TABLE_IDLE_SECONDS

    def __init__(self) -> None:
        self.next_due: float | None = None

    def take(self, limit: int, resting: Collection[str] = ()) -> list[LeasedRender]:
        now = timezone.now()
        awake = RenderJob.objects.exclude(workspace__in=list(resting))
        rows = transitions.take_due(awake.only(*FIELDS), now, conf.grace_seconds, limit)
        if len(rows) < limit:
            later = awake.filter(status=Status.SUBMITTED, next_poll_at__gt=now)
            first = later.order_by("next_poll_at").values_list("next_poll_at", flat=True).first()
            self.next_due = first.timestamp() if first else None
        else:
            self.next_due = now.timestamp()
        return [LeasedRender(row, taken_at=now) for row in rows]

    def settle(self, read: Sequence[tuple[LeasedRender, float | None]]) -> None:
        """What was written down is on the row."""

    def let_go(self, held: Sequence[LeasedRender]) -> None:
        """Whoever has read them has noted it on the row."""

    def give_back(self, held: Sequence[LeasedRender], seconds: float) -> None:
        """Others may have them at once; the time is for the reader's own rest."""
        for moment in {one.taken_at for one in held if one.taken_at}:
            pks = [one.render.pk for one in held if one.taken_at == moment]
            transitions.give_back(pks, moment)


class SetQueue:
    """The sorted set; while Redis is away, the table."""

    def __init__(self, polls: SortedSet, leases: Leases) -> None:
        self.next_due: float | None = None
        self.idle_seconds = SET_IDLE_SECONDS
        self._polls = polls
        self._leases = leases
        self._table = TableQueue()
        self._back_at = 0.0

    def take(self, limit: int, resting: Collection[str] = ()) -> list[LeasedRender]:
        if time.monotonic() >= self._back_at:
            try:
                now = time.time()
                taken = self._polls.take(now, limit, conf.grace_seconds)
                self.next_due, self.idle_seconds = taken.next_due, SET_IDLE_SECONDS
                try:
                    return self._lease(taken.ids, taken.lease_ends) if taken.ids else []
                except (DatabaseError, InterfaceError):
                    # Taken in vain: due as before.
                    self._polls.settle((pk, taken.lease_ends, now) for pk in taken.ids)
                    raise
            except REDIS_DOWN as error:
                logger.warning(
                    "Redis unreachable (%s): the database says what is due.", type(error).__name__
                )
                metrics.count("lease_losses", reason="unreachable")
                self._back_at = time.monotonic() + REST_SECONDS
        held = self._table.take(limit, resting)
        self.next_due, self.idle_seconds = self._table.next_due, self._table.idle_seconds
        return held

    def _lease(self, ids: Sequence[UUID], ends: float) -> list[LeasedRender]:
        """Those that are to be read now and that no chain of messages reads."""
        rows = RenderJob.objects.only(*FIELDS).filter(pk__in=ids, status=Status.SUBMITTED)
        found = {row.pk: row for row in rows}
        now = timezone.now()
        read_since = now - timedelta(seconds=conf.grace_seconds)
        early: list[tuple[UUID, float, float | None]] = []
        ready: list[RenderJob] = []
        for row in found.values():
            due = row.next_poll_at or now
            if due > now:
                early.append((row.pk, ends, due.timestamp()))
            elif not (row.taken_at and row.taken_at > read_since):  # else from the table
                ready.append(row)
        life = max(0.0, ends - SOONER_SECONDS - time.time())
        tokens = self._leases.acquire_many([str(row.pk) for row in ready], life)
        for row in ready:
            # A chain that waits for its time is overtaken where a read at once was asked for.
            name = str(row.pk)
            asked = row.asked_at and name not in tokens
            if asked and (token := self._leases.overtake(name, life)):
                tokens[name] = token
        if held := len(ready) - len(tokens):
            metrics.count("lease_losses", held, reason="held")
        self._polls.settle([*early, *((pk, ends, None) for pk in ids if pk not in found)])
        return [
            LeasedRender(row, lease_ends=ends, token=tokens[str(row.pk)])
            for row in ready
            if str(row.pk) in tokens
        ]

    def settle(self, read: Sequence[tuple[LeasedRender, float | None]]) -> None:
        now = time.time()
        try:
            self._polls.settle(
                (
                    held.render.pk,
                    held.lease_ends or 0.0,
                    None if seconds is None else now + seconds,
                )
                for held, seconds in read
            )
        except REDIS_DOWN as error:
            logger.warning(
                "Redis unreachable (%s): the sweep puts back what the set does not know.",
                type(error).__name__,
            )
            return
        self.let_go([held for held, _ in read])

    def let_go(self, held: Sequence[LeasedRender]) -> None:
        """In the set they stay: whoever takes them next sees when they are due."""
        tokens = {str(one.render.pk): one.token for one in held if one.token}
        try:
            self._leases.release_many(tokens)
        except REDIS_DOWN as error:
            logger.warning(
                "Redis unreachable (%s): leases run out by themselves.", type(error).__name__
            )

    def give_back(self, held: Sequence[LeasedRender], seconds: float) -> None:
        self._table.give_back(held, seconds)
        self.settle([(one, seconds) for one in held])
