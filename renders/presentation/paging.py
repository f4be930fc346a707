"""Keyset paging: each page begins after a row, not at an offset.

So new renders at the top do not move rows between pages, and every page costs the same.
"""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

from django.db.models import Q

from renders.models import RenderJob
from renders.models.querysets import RenderQuerySet

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
MOST_COUNTED = 1_000


@dataclass(frozen=True)
class Page:
    """Rows, newest first, and the marks of the next pages; empty if there is none."""

    rows: list[Any]
    newer: str = ""
    older: str = ""


def mark(render: RenderJob) -> str:
    """A row's position in the list; it stays valid if the row is deleted."""
    return f"{(render.created_at - EPOCH) // timedelta(microseconds=1)}.{render.pk.hex}"


def page_of(renders: RenderQuerySet, size: int, *, before: str = "", after: str = "") -> Page:
    """The rows older than the mark `before` or newer than the mark `after`; else the first page."""
    place = _place(before)
    if place:
        moment, pk = place
        older = Q(created_at__lt=moment) | Q(pk__lt=pk)
        rows = list(renders.filter(older, created_at__lte=moment)[: size + 1])
        newer = mark(rows[0]) if rows else before
        return Page(rows[:size], newer, mark(rows[size - 1]) if len(rows) > size else "")
    place = _place(after)
    if place:
        moment, pk = place
        above = renders.filter(Q(created_at__gt=moment) | Q(pk__gt=pk), created_at__gte=moment)
        rows = list(above.order_by("created_at", "pk")[: size + 1])
        if len(rows) > size:
            rows = rows[:size][::-1]
            return Page(rows, mark(rows[0]), mark(rows[-1]))
    rows = list(renders[: size + 1])
    return Page(rows[:size], older=mark(rows[size - 1]) if len(rows) > size else "")


def count_of(renders: RenderQuerySet) -> str:
    """The number of renders as text; counting stops at `MOST_COUNTED`."""
    number = renders.order_by()[: MOST_COUNTED + 1].count()
    return f"{MOST_COUNTED:,}+" if number > MOST_COUNTED else f"{number:,}"


def _place(text: str) -> tuple[datetime, UUID] | None:
    moment, _, pk = text.partition(".")
    try:
        return EPOCH + timedelta(microseconds=int(moment)), UUID(pk)
    except (ValueError, OverflowError):
        return None
