"""What happens to the media of an ended render: the result is read, each file stored, or lost.

None of it changes the status. Before the render is handled, `next_poll_at` says when the next try
is due; afterwards, `media_due_at` does.
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
    """Keep the result, once: another one would drop what was stored since."""
    return move(
        pk,
        TERMINAL,
        event,
        where=Q(handled_at__isnull=True, result__isnull=True),
        result={"artifacts": artifacts},
        cost_usd_micros=cost,
        failed_reads=0,  # the tries of receivers are counted from here
        next_poll_at=now,  # and those of media
    )


def begin_media(
    pk: UUID, known: datetime | None, due: datetime, artifacts: list[dict[str, Any]]
) -> bool:
    """Take the turn to store media: move the next step's time from `known` to `due`.

    Whoever notes what became of an artifact moves it too, so `artifacts` are those known.
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
    """Note what became of one artifact, until one try has stored it; the others stay.

    `links` are fresh URLs of all of them, where they were read.
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


# --- Handled without all of them -------------------------------------------------------


def plan_late_media(pk: UUID, due: datetime) -> bool:
    """Have a handled render's missing media tried again at `due`."""
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
    """Have the missing media, of the first `most`, tried again now; its waits start again.

    False where nothing is missing, or a try of the last `span` seconds is still under way.
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
    """Take the turn for a late try: as `begin_media`. `taken_at` is set while it lasts."""
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
    """Note what became of one artifact; the next try is at `due`, or there is none.

    A stored file is welcome from any try, as long as the artifact has none; anything else
    counts for the try that began last (`begun_at`).
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
    """All of it is there; call inside the transaction that runs the receivers."""
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
    """Note that a receiver failed; `known` is the time at which this was due."""
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
    """Change what is known of one artifact, and the links of all that are not stored."""
    artifacts[index].pop("begun", None)
    artifacts[index] |= facts
    for artifact, link in zip(artifacts, links, strict=False):
        if link and not artifact.get("file"):
            artifact["url"] = link
