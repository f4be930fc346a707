"""Transitions: every change of a render's state.

Those on the way to Sume are in `sending`, those of reads after which the job goes on in `reading`,
those of media in `media_moves`.

A transition is one conditional UPDATE on the state it starts from; it returns whether this
caller won, and only the winner does what follows. No other module writes `status`.
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
# Of so many, one is free if others choose at the same time.
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
    """submitted → completed, failed or canceled, as Sume says."""
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
    """pending → canceled, where Sume certainly holds no job for it.

    `asked` is for a render whose cancel was requested before; it loses without one.
    """
    where = WITHDRAWN if asked else UNSENT
    return move(pk, [Status.PENDING], CANCELED, where=where, **_canceled(now))


def cancel_unsent_many(pks: Iterable[UUID], now: datetime, *, asked: bool = False) -> list[UUID]:
    """As `cancel_unsent`, for many."""
    where = WITHDRAWN if asked else UNSENT
    return move_many(pks, [Status.PENDING], CANCELED, where=where, **_canceled(now))


def _canceled(now: datetime) -> dict[str, Any]:
    status, message = CANCELED
    return {
        **at_end(now, status, code="canceled_before_submit", message=message),
        "cost_usd_micros": 0,
        "cancel_requested_at": Coalesce("cancel_requested_at", Value(now)),
    }


def request_cancel(pk: UUID, now: datetime) -> bool:
    """Note that a person wants it canceled; Sume decides."""
    return move(
        pk,
        [Status.PENDING, Status.SUBMITTING, Status.SUBMITTED],
        ("cancel requested", ""),
        where=Q(cancel_requested_at__isnull=True),
        cancel_requested_at=now,
    )


def request_cancel_many(pks: Iterable[UUID], now: datetime) -> list[UUID]:
    """As `request_cancel`, for many."""
    return move_many(
        pks,
        [Status.PENDING, Status.SUBMITTING, Status.SUBMITTED],
        ("cancel requested", ""),
        where=Q(cancel_requested_at__isnull=True),
        cancel_requested_at=now,
    )


def hold_many(pks: Iterable[UUID], now: datetime) -> list[UUID]:
    """Keep these pending ones from being sent until they are released.

    Not where Sume may hold the job: the same key soon tells, and is worth nothing later.
    """
    return move_many(
        pks,
        [Status.PENDING],
        ("held", ""),
        where=HOLDABLE,
        held_at=now,
    )


def unhold_many(pks: Iterable[UUID], now: datetime) -> list[UUID]:
    """Let held ones be sent in their turn, with all the time that a new one has."""
    return move_many(
        pks,
        [Status.PENDING],
        ("released", ""),
        where=HELD,
        held_at=None,
        released_at=now,
    )


def record_cancel_answer(pk: UUID, now: datetime, answer: str) -> bool:
    """Note what Sume said to the request to cancel."""
    return move(
        pk,
        [Status.SUBMITTED],
        ("cancel answered", answer),
        where=Q(cancel_answered_at__isnull=True),
        cancel_answered_at=now,
    )


def store(pk: UUID, **found: Any) -> bool:
    """Keep what was found about an ended render (result, cost, error), until it is handled."""
    return move(pk, TERMINAL, None, where=Q(handled_at__isnull=True), **found)


def postpone_finish(pk: UUID, failures: int, next_try_at: datetime, message: str) -> bool:
    """Note that finishing failed; `failures` is the count known, as with a read."""
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
    """Result and signals are done; call inside the transaction that runs the receivers."""
    return move(
        pk,
        TERMINAL,
        ("handled", ""),
        where=Q(handled_at__isnull=True),
        handled_at=now,
        next_poll_at=None,
    )


def take_unfinished(now: datetime, patience: float) -> UUID | None:
    """One that ended without Sume and that nobody has begun to finish; each goes to one."""
    free = RenderJob.objects.unfinished_unsent(now).not_swept_since(
        now - timedelta(seconds=patience)
    )
    for pk in free.order_by("next_poll_at").pks(CHOICE):
        if free.filter(pk=pk).update(swept_at=now):
            return pk
    return None


def mark_swept(pks: Iterable[UUID], now: datetime) -> int:
    """Note that the sweep has put these back to work."""
    return RenderJob.objects.filter(pk__in=list(pks)).update(swept_at=now)
