"""Transitions of an ended render's media: the result is read, then each file is stored or lost.

None of them changes the status. The next try is due at `next_poll_at` before the render is
handled, and at `media_due_at` afterwards.
"""

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from django.db import transaction
from django.db.models import F, Q

from renders.models import RenderJob
from renders.models.querysets import MADE
from renders.states import TERMINAL
from renders.transitions.moves import ANY, database, move


def store_result(
    pk: UUID,
    now: datetime,
    artifacts: list[dict[str, Any]],
    cost: int | None,
    event: tuple[str, str] | None = None,
) -> bool:
    """Store the result, once: a second one would drop the files stored since the first."""
    return move(
        pk,
        TERMINAL,
        event,
        where=Q(handled_at__isnull=True, result__isnull=True),
        result={"artifacts": artifacts},
        cost_usd_micros=cost,
        failed_reads=0,  # from here on, failed receivers are counted
        next_poll_at=now,  # from here on, when the next try to store media is due
    )


def begin_media(
    pk: UUID, known: datetime | None, due: datetime, artifacts: list[dict[str, Any]]
) -> bool:
    """Take the turn to store media, by moving `next_poll_at` from `known` to `due`.

    Every update of an artifact moves that time too, so a winner's `artifacts` are current.
    """
    where = Q(handled_at__isnull=True, next_poll_at=known)
    changes = {"result": {"artifacts": artifacts}, "next_poll_at": due, "swept_at": None}
    return move(pk, TERMINAL, None, where=where, **changes)


def keep_artifact(
    pk: UUID,
    index: int,
    due: datetime,
    event: tuple[str, str] | None,
    *,
    links: Sequence[str] = (),
    **facts: Any,
) -> bool:
    """Record the outcome of a try to store one artifact; False if it is stored or handled already.

    `links` are fresh URLs of all artifacts, if the result was read again.
    """
    waiting = Q(pk=pk, status__in=TERMINAL, handled_at__isnull=True)
    with transaction.atomic(using=database()):
        render: Any = RenderJob.objects.select_for_update().filter(waiting).first()
        artifacts = render.artifacts if render else []
        if index >= len(artifacts) or artifacts[index].get("file"):
            return False
        _note(artifacts, index, links, facts)
        return move(
            pk,
            TERMINAL,
            event,
            where=waiting,
            result={"artifacts": artifacts},
            next_poll_at=due,
            swept_at=None,
        )


# --- Handled without all media -------------------------------------------------------


def plan_late_media(pk: UUID, due: datetime) -> bool:
    """Schedule another try for the missing media of a handled render at `due`."""
    return move(
        pk,
        TERMINAL,
        None,
        where=MADE,
        media_due_at=due,
        failed_reads=0,
        not_found_since=None,
        swept_at=None,
    )


def ask_media(pk: UUID, now: datetime, span: float, tries: int, most: int) -> bool:
    """Request a try now for media missing among the first `most` artifacts; back-off restarts.

    False if nothing is missing, or if a try that began in the last `span` seconds is still running.
    `tries` becomes the number of failures of each missing artifact.
    """
    idle = Q(taken_at__isnull=True) | Q(taken_at__lt=now - timedelta(seconds=span))
    with transaction.atomic(using=database()):
        render: Any = RenderJob.objects.select_for_update().filter(MADE, idle, pk=pk).first()
        artifacts = render.artifacts if render else []
        missing = [artifact for artifact in artifacts[:most] if not artifact.get("file")]
        for artifact in missing:
            artifact.pop("begun", None)
            artifact["failures"] = tries
        return bool(missing) and move(
            pk,
            TERMINAL,
            ("media asked for", ""),
            where=MADE,
            result={"artifacts": artifacts},
            media_due_at=now,
            failed_reads=0,
            not_found_since=None,
            taken_at=None,
            swept_at=None,
        )


def begin_late_media(
    pk: UUID,
    known: datetime | None,
    now: datetime,
    due: datetime,
    artifacts: list[dict[str, Any]],
) -> bool:
    """As `begin_media`, for a late try; `taken_at` is set while it runs."""
    return move(
        pk,
        TERMINAL,
        None,
        where=MADE & Q(media_due_at=known),
        result={"artifacts": artifacts},
        media_due_at=due,
        taken_at=now,
        swept_at=None,
    )


def end_late_try(
    pk: UUID,
    index: int,
    begun_at: datetime | None,
    due: datetime | None,
    event: tuple[str, str] | None,
    *,
    links: Sequence[str] = (),
    not_found_since: datetime | None = None,
    **facts: Any,
) -> bool:
    """Record the outcome of a late try for one artifact; the next try is at `due`, if any.

    A stored file is accepted from any try as long as the artifact has none. Any other outcome is
    accepted only from the try that began last (at `begun_at`).
    """
    turn = ANY if facts.get("file") else Q(taken_at=begun_at, media_due_at__isnull=False)
    with transaction.atomic(using=database()):
        render: Any = RenderJob.objects.select_for_update().filter(MADE & turn, pk=pk).first()
        artifacts = render.artifacts if render else []
        if index >= len(artifacts) or artifacts[index].get("file"):
            return False
        _note(artifacts, index, links, facts)
        return move(
            pk,
            TERMINAL,
            event,
            where=MADE & turn,
            result={"artifacts": artifacts},
            media_due_at=due,
            not_found_since=not_found_since,
            taken_at=None if render.taken_at == begun_at else render.taken_at,
            swept_at=None,
        )


def mark_media_stored(pk: UUID, known: datetime | None) -> bool:
    """Record that all media is stored; call it in the transaction that runs the receivers."""
    return move(
        pk,
        TERMINAL,
        ("media stored", ""),
        where=MADE & Q(media_due_at=known),
        media_due_at=None,
        failed_reads=0,
        taken_at=None,
    )


def postpone_media_stored(pk: UUID, known: datetime | None, due: datetime, message: str) -> bool:
    """Record that a receiver failed; `known` is the time at which this step was due."""
    return move(
        pk,
        TERMINAL,
        ("finish postponed", message),
        where=MADE & Q(media_due_at=known),
        media_due_at=due,
        failed_reads=F("failed_reads") + 1,
        swept_at=None,
    )


def _note(
    artifacts: list[dict[str, Any]], index: int, links: Sequence[str], facts: dict[str, Any]
) -> None:
    """Update one artifact, and the URLs of all artifacts that are not stored."""
    artifacts[index].pop("begun", None)
    artifacts[index] |= facts
    for artifact, link in zip(artifacts, links, strict=False):
        if link and not artifact.get("file"):
            artifact["url"] = link
