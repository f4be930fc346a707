"""Pages of a list that grows at its top: each begins after a row, not after a number of rows.

So new renders move nothing from one page to the next, and the hundredth page costs as much as
the first.
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
    """Some rows, newest first, and the marks of what lies beside them; empty for nothing."""

    rows: list[Any]
    newer: str = ""
    older: str = ""


def mark(render: RenderJob) -> str:
    """Names a row's place in the list, and stays right if the row is deleted."""
    return f"{(render.created_at - EPOCH) // timedelta(microseconds=1)}.{render.pk.hex}"


def page_of(renders: RenderQuerySet, size: int, *, before: str = "", after: str = "") -> Page:
    """The page that begins after the row `before`, or ends before `after`; else the first."""
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
        newer_ones = renders.filter(Q(created_at__gt=moment) | Q(pk__gt=pk), created_at__gte=moment)
        rows = list(newer_ones.order_by("created_at", "pk")[: size + 1])
        if len(rows) > size:
            rows = rows[:size][::-1]
            return Page(rows, mark(rows[0]), mark(rows[-1]))
    rows = list(renders[: size + 1])
    return Page(rows[:size], older=mark(rows[size - 1]) if len(rows) > size else "")


def count_of(renders: RenderQuerySet) -> str:
    """How many there are; counting stops where nobody would read on."""
    number = renders.order_by()[: MOST_COUNTED + 1].count()
    return f"{MOST_COUNTED:,}+" if number > MOST_COUNTED else f"{number:,}"


def _place(text: str) -> tuple[datetime, UUID] | None:
    moment, _, pk = text.partition(".")
    try:
        return EPOCH + timedelta(microseconds=int(moment)), UUID(pk)
    except (ValueError, OverflowError):
        return None
