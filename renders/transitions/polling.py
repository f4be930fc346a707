"""Transitions while Sume holds the job: a render is taken for a read, read, and read again.

None of them changes the status; `renders.transitions.ending` records the end.
"""

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from django.db import connections, transaction
from django.db.models import Q

from renders.models import RenderJob
from renders.models.querysets import RenderQuerySet
from renders.states import Status
from renders.transitions.moves import ANY, database


@dataclass(frozen=True)
class PollUpdate:
    """The outcome of a read after which the job still runs, and the row that it started from."""

    pk: UUID
    sequence: int
    """The `poll_count` before the read."""
    asked_at: datetime | None
    """The row's value before the read: a later request is not served by this read."""
    next_poll_at: datetime
    sume_status: str
    failed_reads: int
    not_found_since: datetime | None
    answered: bool


def record_read(
    pk: UUID,
    sequence: int,
    now: datetime,
    *,
    next_poll_at: datetime,
    where: Q = ANY,
    **learned: Any,
) -> bool:
    """Record a read after which the job still runs; `sequence` is the `poll_count` before it.

    `learned` holds the other columns to set: `sume_status`, `failed_reads`, `not_found_since`.
    """
    row = RenderJob.objects.filter(where, pk=pk, status=Status.SUBMITTED, poll_count=sequence)
    return bool(
        row.update(
            poll_count=sequence + 1,
            last_polled_at=now,
            next_poll_at=next_poll_at,
            taken_at=None,
            swept_at=None,
            **learned,
        )
    )


def record(one: PollUpdate, now: datetime) -> bool:
    """As `record_read`; also False if another read was requested after this one began."""
    asked: dict[str, Any] = {}
    if one.answered:
        asked = {"where": Q(asked_at=one.asked_at), "asked_at": None}
    return record_read(
        one.pk,
        one.sequence,
        now,
        next_poll_at=one.next_poll_at,
        sume_status=one.sume_status,
        failed_reads=one.failed_reads,
        not_found_since=one.not_found_since,
        **asked,
    )


def record_reads(heard: Collection[PollUpdate], now: datetime) -> set[UUID]:
    """As `record`, for many at once; returns the ids that this caller won.

    On PostgreSQL it is one statement, which never waits for one row while it holds others. A row
    that is locked now, or for which another read was requested meanwhile, is not won.
    """
    if connections[database()].vendor != "postgresql":
        with transaction.atomic(using=database()):
            return {one.pk for one in heard if record(one, now)}
    table = RenderJob._meta.db_table
    columns = zip(
        *(
            (
                one.pk,
                one.sequence,
                one.asked_at,
                one.next_poll_at,
                one.sume_status,
                one.failed_reads,
                one.not_found_since,
                one.answered,
            )
            for one in heard
        ),
        strict=True,
    )
    values = [list(column) for column in columns]
    if not values:
        return set()
    with connections[database()].cursor() as cursor:
        cursor.execute(
            f"WITH heard AS MATERIALIZED (SELECT * FROM unnest(%s::uuid[], %s::int[], "  # noqa: S608 (no value in it)
            "%s::timestamptz[], %s::timestamptz[], %s::text[], %s::int[], "
            "%s::timestamptz[], %s::bool[]) AS heard("
            "id, sequence, asked_at, due, word, failures, missing, answered)), "
            f"free AS MATERIALIZED (SELECT {table}.id FROM {table} "
            f"JOIN heard ON {table}.id = heard.id WHERE status = %s "
            f"AND poll_count = sequence FOR NO KEY UPDATE OF {table} SKIP LOCKED) "
            f"UPDATE {table} SET poll_count = sequence + 1, last_polled_at = %s, "
            "next_poll_at = due, taken_at = NULL, swept_at = NULL, sume_status = word, "
            "failed_reads = failures, not_found_since = missing, "
            f"asked_at = CASE WHEN answered THEN NULL ELSE {table}.asked_at END "
            f"FROM heard JOIN free ON heard.id = free.id WHERE {table}.id = heard.id "
            f"AND status = %s AND poll_count = sequence AND "
            f"(NOT answered OR {table}.asked_at IS NOT DISTINCT FROM heard.asked_at) "
            f"RETURNING {table}.id",
            [*values, Status.SUBMITTED, now, Status.SUBMITTED],
        )
        return {pk for (pk,) in cursor.fetchall()}


def ask(pks: Iterable[UUID], now: datetime) -> int:
    """Request a read now; a read that has already begun does not serve it. Returns how many."""
    return RenderJob.objects.filter(pk__in=list(pks), status=Status.SUBMITTED).update(asked_at=now)


def bring_forward(pks: Iterable[UUID], due: datetime) -> int:
    """Move the next reads to `due` if they are later; returns how many."""
    later = RenderJob.objects.filter(
        pk__in=list(pks), status=Status.SUBMITTED, next_poll_at__gt=due
    )
    return later.update(next_poll_at=due, swept_at=None)


def postpone_read(pk: UUID, sequence: int, known: datetime, due: datetime) -> bool:
    """Move the next read from `known` to `due` without a read."""
    row = RenderJob.objects.filter(
        pk=pk, status=Status.SUBMITTED, poll_count=sequence, next_poll_at=known
    )
    return bool(row.update(next_poll_at=due, swept_at=None))


def take_due(
    renders: RenderQuerySet, now: datetime, patience: float, limit: int
) -> list[RenderJob]:
    """Up to `limit` of these renders whose read is due, each given to one caller.

    Other callers don't get them until they are read or `patience` seconds have passed.
    """
    span = timedelta(seconds=patience)
    # A time further ahead was written by a clock that has been put back since.
    left = Q(taken_at__lt=now - span) | Q(taken_at__gt=now + span)
    free = renders.filter(
        Q(taken_at__isnull=True) | left, status=Status.SUBMITTED, next_poll_at__lte=now
    )
    free = free.order_by("next_poll_at")
    if not connections[database()].features.has_select_for_update_skip_locked:
        pks = [pk for pk in free.pks(limit) if free.filter(pk=pk).update(taken_at=now)]
        return list(renders.filter(pk__in=pks))
    with transaction.atomic(using=database()):
        rows = list(free.select_for_update(no_key=True, skip_locked=True)[:limit])
        RenderJob.objects.filter(pk__in=[row.pk for row in rows]).update(taken_at=now)
    return rows


def give_back(pks: Collection[UUID], taken_at: datetime) -> int:
    """Let others read renders that were taken but not read; returns how many."""
    return RenderJob.objects.filter(pk__in=pks, taken_at=taken_at).update(taken_at=None)
