"""Queues of due reads: the sorted set in Redis, and the table.

A queue gives each due render to one reader. The reader takes renders, reads their jobs, records
the answers and settles: then the queue knows when each is due next. A render that is never settled
is due again when its lease expires.
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

# Look again at least this often: another process may add an earlier read.
SET_IDLE_SECONDS = 0.05
TABLE_IDLE_SECONDS = 0.25
# After Redis was unreachable, use only the table for this long.
REST_SECONDS = 1.0
# Expire the lease before the sorted set offers the render again, or its next reader could not
# acquire one.
SOONER_SECONDS = 0.1

# The columns that a read and the steps after it use.
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
    """One render that only this reader may read now."""

    render: RenderJob
    taken_at: datetime | None = None
    """When it was taken from the table; None if it came from the sorted set."""
    lease_ends: float | None = None
    """Its score in the sorted set until it is settled; None if it came from the table."""
    token: str | None = None
    """Token of the lease that poll chains of messages respect as well."""


class Queue(Protocol):
    """Where readers get due renders. Times are Unix seconds."""

    next_due: float | None
    """When the next render is due, by the last `take`; None: no render waits."""
    idle_seconds: float
    """Look again at least this often: another process may add an earlier read."""

    def take(self, limit: int, resting: Collection[str] = ()) -> list[LeasedRender]:
        """Take up to `limit` due renders, if possible none of the workspaces in `resting`."""

    def settle(self, read: Sequence[tuple[LeasedRender, float | None]]) -> None:
        """Note when these recorded renders are due again: in this many seconds, or (None) never."""

    def let_go(self, held: Sequence[LeasedRender]) -> None:
        """Release these: another reader has recorded an answer, and continues."""

    def give_back(self, held: Sequence[LeasedRender], seconds: float) -> None:
        """Return these unread; they are due again in this many seconds."""


class TableQueue:
    """The table itself: for a site without Redis, and while Redis is unreachable."""

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
        """Do nothing: the recorded answer has set the next time on the row."""

    def let_go(self, held: Sequence[LeasedRender]) -> None:
        """Do nothing: the other reader has set the next time on the row."""

    def give_back(self, held: Sequence[LeasedRender], seconds: float) -> None:
        """Make these due at once: `seconds` is only the pause of this reader."""
        for moment in {leased.taken_at for leased in held if leased.taken_at}:
            pks = [leased.render.pk for leased in held if leased.taken_at == moment]
            transitions.give_back(pks, moment)


class SetQueue:
    """The sorted set; while Redis is unreachable, the table."""

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
                    # These cannot be read now: make them due again, as before.
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
        """Lease the renders that are due and that no poll chain of messages is reading."""
        rows = RenderJob.objects.only(*FIELDS).filter(pk__in=ids, status=Status.SUBMITTED)
        submitted = {row.pk: row for row in rows}
        now = timezone.now()
        read_since = now - timedelta(seconds=conf.grace_seconds)
        early: list[tuple[UUID, float, float | None]] = []
        ready: list[RenderJob] = []
        for row in submitted.values():
            due = row.next_poll_at or now
            if due > now:
                early.append((row.pk, ends, due.timestamp()))
            elif not (row.taken_at and row.taken_at > read_since):  # not taken from the table
                ready.append(row)
        life = max(0.0, ends - SOONER_SECONDS - time.time())
        tokens = self._leases.acquire_many([str(row.pk) for row in ready], life)
        for row in ready:
            # If a check was asked for, take the lease of a chain that only waits.
            name = str(row.pk)
            asked = row.asked_at and name not in tokens
            if asked and (token := self._leases.overtake(name, life)):
                tokens[name] = token
        if held := len(ready) - len(tokens):
            metrics.count("lease_losses", held, reason="held")
        self._polls.settle([*early, *((pk, ends, None) for pk in ids if pk not in submitted)])
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
        """Release only the leases: the set keeps these, and their next reader sees when to read."""
        tokens = {str(leased.render.pk): leased.token for leased in held if leased.token}
        try:
            self._leases.release_many(tokens)
        except REDIS_DOWN as error:
            logger.warning(
                "Redis unreachable (%s): leases run out by themselves.", type(error).__name__
            )

    def give_back(self, held: Sequence[LeasedRender], seconds: float) -> None:
        self._table.give_back(held, seconds)
        self.settle([(leased, seconds) for leased in held])
