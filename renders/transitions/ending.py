"""Transitions that end a render, on request or by Sume's word, and those after its end.

They also hold and release pending renders. Like every transition, each is one conditional UPDATE
and returns whether this caller won.
"""

from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from django.db.models import Q, Value
from django.db.models.functions import Coalesce

from renders.models import RenderJob
from renders.models.querysets import HELD, HOLDABLE, WITHDRAWN
from renders.states import TERMINAL, Status
from renders.transitions.moves import at_end, move, move_many, move_to_end

CANCELED = (Status.CANCELED, "Canceled before it was sent to Sume; nothing was billed.")
UNSENT = Q(outcome_unknown_at__isnull=True)
# Candidates to look at, since other workers may take the first ones at the same time.
CHOICE = 10


def end(
    pk: UUID,
    sequence: int,
    now: datetime,
    status: str,
    *,
    sume_status: str,
    code: str = "",
    message: str = "",
    cost: int | None = None,
) -> bool:
    """submitted → completed, failed or canceled, as Sume reported.

    `sequence` is the `poll_count` before the read that learned of the end.
    """
    return move_to_end(
        pk,
        [Status.SUBMITTED],
        now,
        status,
        where=Q(poll_count=sequence),
        code=code,
        message=message,
        sume_status=sume_status,
        cost_usd_micros=cost,
        poll_count=sequence + 1,
        last_polled_at=now,
        taken_at=None,
        asked_at=None,
    )


def cancel_unsent(pk: UUID, now: datetime, *, asked: bool = False) -> bool:
    """pending → canceled, if Sume certainly holds no job for it.

    With `asked`, only if cancellation was requested before.
    """
    where = WITHDRAWN if asked else UNSENT
    return move(pk, [Status.PENDING], CANCELED, where=where, **_canceled(now))


def cancel_unsent_many(pks: Iterable[UUID], now: datetime, *, asked: bool = False) -> list[UUID]:
    """As `cancel_unsent`, for many; returns the ids that this caller won."""
    where = WITHDRAWN if asked else UNSENT
    return move_many(pks, [Status.PENDING], CANCELED, where=where, **_canceled(now))


def request_cancel(pk: UUID, now: datetime) -> bool:
    """Record that a person wants the render canceled; Sume decides."""
    return move(
        pk,
        [Status.PENDING, Status.SUBMITTING, Status.SUBMITTED],
        ("cancel requested", ""),
        where=Q(cancel_requested_at__isnull=True),
        cancel_requested_at=now,
    )


def request_cancel_many(pks: Iterable[UUID], now: datetime) -> list[UUID]:
    """As `request_cancel`, for many; returns the ids that this caller won."""
    return move_many(
        pks,
        [Status.PENDING, Status.SUBMITTING, Status.SUBMITTED],
        ("cancel requested", ""),
        where=Q(cancel_requested_at__isnull=True),
        cancel_requested_at=now,
    )


def hold_many(pks: Iterable[UUID], now: datetime) -> list[UUID]:
    """Hold pending renders, so that they are not sent until released.

    Renders that Sume may hold are left out: resending with the same key settles the outcome now,
    and Sume may forget the key later.
    """
    return move_many(
        pks,
        [Status.PENDING],
        ("held", ""),
        where=HOLDABLE,
        held_at=now,
    )


def unhold_many(pks: Iterable[UUID], now: datetime) -> list[UUID]:
    """Release held renders: they are sent in their turn, with a new submit deadline."""
    return move_many(
        pks,
        [Status.PENDING],
        ("released", ""),
        where=HELD,
        held_at=None,
        released_at=now,
    )


def record_cancel_answer(pk: UUID, now: datetime, answer: str) -> bool:
    """Record Sume's answer to the cancel request."""
    return move(
        pk,
        [Status.SUBMITTED],
        ("cancel answered", answer),
        where=Q(cancel_answered_at__isnull=True),
        cancel_answered_at=now,
    )


def store(pk: UUID, **found: Any) -> bool:
    """Store a result, cost or error of an ended render, as long as it is not handled."""
    return move(pk, TERMINAL, None, where=Q(handled_at__isnull=True), **found)


def postpone_finish(pk: UUID, failures: int, next_try_at: datetime, message: str) -> bool:
    """Record that finishing failed; `failures` is the count before this try."""
    return move(
        pk,
        TERMINAL,
        ("finish postponed", message),
        where=Q(handled_at__isnull=True, failed_reads=failures),
        failed_reads=failures + 1,
        next_poll_at=next_try_at,
        swept_at=None,
    )


def mark_handled(pk: UUID, now: datetime) -> bool:
    """Mark result and signals as done; call it in the transaction that runs the receivers."""
    return move(
        pk,
        TERMINAL,
        ("handled", ""),
        where=Q(handled_at__isnull=True),
        handled_at=now,
        next_poll_at=None,
    )


def take_unfinished(now: datetime, patience: float) -> UUID | None:
    """The id of one unfinished render that ended without Sume, given to this caller alone.

    None if there is none. Another caller gets it again after `patience` seconds.
    """
    free = RenderJob.objects.unfinished_unsent(now).not_swept_since(
        now - timedelta(seconds=patience)
    )
    for pk in free.order_by("next_poll_at").pks(CHOICE):
        if free.filter(pk=pk).update(swept_at=now):
            return pk
    return None


def mark_swept(pks: Iterable[UUID], now: datetime) -> int:
    """Record that the sweep has put these renders back to work; returns how many."""
    return RenderJob.objects.filter(pk__in=list(pks)).update(swept_at=now)


def _canceled(now: datetime) -> dict[str, Any]:
    """The columns of a render that is canceled before it is sent; they keep an earlier request."""
    status, message = CANCELED
    return {
        **at_end(now, status, code="canceled_before_submit", message=message),
        "cost_usd_micros": 0,
        "cancel_requested_at": Coalesce("cancel_requested_at", Value(now)),
    }
