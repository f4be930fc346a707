"""The building blocks of transitions: one conditional UPDATE, and its line in the timeline."""

from collections.abc import Iterable
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db import connections, router, transaction
from django.db.models import Q

from renders.models import RenderEvent, RenderJob
from renders.models.querysets import note_of

ANY = Q()


def database() -> str:
    """The alias of the database that holds the renders."""
    return router.db_for_write(RenderJob)


def move(
    pk: UUID,
    states: Iterable[str],
    event: tuple[str, str] | None,
    *,
    where: Q = ANY,
    **changes: Any,
) -> bool:
    """One conditional UPDATE and its line in the timeline, in one transaction; True if it won."""
    with transaction.atomic(using=database()):
        won = bool(RenderJob.objects.filter(where, pk=pk, status__in=states).update(**changes))
        if won and event:
            log(pk, *event)
    return won


def move_many(
    pks: Iterable[UUID],
    states: Iterable[str],
    event: tuple[str, str],
    *,
    where: Q,
    **changes: Any,
) -> list[UUID]:
    """As `move`, for many at once; returns the ids that this caller won.

    It never waits for one row while it holds others, so two callers cannot deadlock: a locked row
    is skipped and then moved on its own. Inside the caller's own transaction, which may hold other
    rows, a locked row is skipped for good.
    """
    what, detail = event
    rows = RenderJob.objects.filter(where, pk__in=list(pks), status__in=list(states))
    skips = connections[database()].features.has_select_for_update_skip_locked
    holds_others = connections[database()].in_atomic_block
    with transaction.atomic(using=database()):
        won = list(
            rows.select_for_update(no_key=skips, skip_locked=skips).values_list("pk", flat=True)
        )
        RenderJob.objects.filter(pk__in=won).update(**changes)
        RenderEvent.objects.using(database()).bulk_create(
            [RenderEvent(render_id=pk, what=what, detail=detail[:500]) for pk in won]
        )
    if holds_others or not skips:
        return won
    skipped = set(rows.values_list("pk", flat=True)).difference(won)
    one_by_one = [pk for pk in skipped if move(pk, states, event, where=where, **changes)]
    return [*won, *one_by_one]


def move_to_end(
    pk: UUID,
    states: Iterable[str],
    now: datetime,
    status: str,
    *,
    where: Q,
    code: str,
    message: str,
    **changes: Any,
) -> bool:
    """Move a row to the terminal `status`; True if this caller won."""
    end = at_end(now, status, code=code, message=message)
    return move(pk, states, (status, message), where=where, **end, **changes)


def at_end(now: datetime, status: str, *, code: str, message: str) -> dict[str, Any]:
    """The columns to set when a render ends, for any terminal status."""
    return {
        "status": status,
        "finished_at": now,
        "next_poll_at": now,
        "failed_reads": 0,
        "swept_at": None,
        "held_at": None,
        "error_code": code[:100],
        "error_message": message,
    }


def log_post(pk: UUID, what: str, workspace: str) -> None:
    """Add the line of one POST, which counts against the workspace's quota per minute."""
    log(pk, what, note_of(workspace))


def log(pk: UUID, what: str, detail: str = "") -> None:
    """Add a line to the render's timeline."""
    RenderEvent.objects.using(database()).create(render_id=pk, what=what, detail=detail[:500])
