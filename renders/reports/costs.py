"""Costs by user, workspace, kind, model and date: exact sums of what Sume bills."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from typing import Any

from django.contrib.auth import get_user_model
from django.db.models import Count, F, Q, Sum
from django.db.models.functions import TruncDate, TruncMonth
from django.utils import timezone

from renders.models import RenderJob
from renders.models.querysets import RenderQuerySet
from renders.states import TERMINAL

NOBODY = "(nobody)"
GROUPS = ("user", "workspace", "kind", "model", "day", "month")
COUNTS = ("renders", "completed", "failed", "canceled", "unknown")


@dataclass(frozen=True)
class CostLine:
    """The sums of one group. `cost` is in millionths of a US dollar, where it is known."""

    group: tuple[str, ...]
    renders: int
    completed: int
    failed: int
    canceled: int
    unknown: int
    """Renders without a cost from Sume, or with an unknown outcome."""
    cost: int


def ended(since: datetime | None = None, until: datetime | None = None) -> RenderQuerySet:
    """Renders that ended from `since` on and before `until`: a render is billed when it ends."""
    renders = RenderJob.objects.filter(status__in=TERMINAL)
    if since:
        renders = renders.filter(finished_at__gte=since)
    return renders.filter(finished_at__lt=until) if until else renders


def lines(renders: RenderQuerySet, by: Sequence[str]) -> list[CostLine]:
    """One line for each group, sorted by group; days and months are in the current time zone.

    Failed and canceled renders cost what Sume has not refunded.
    """
    groups: dict[str, Any] = {
        "user": F(f"created_by__{get_user_model().USERNAME_FIELD}"),
        "workspace": F("workspace"),
        "kind": F("kind"),
        "model": F("model"),
        "day": TruncDate("finished_at"),
        "month": TruncMonth("finished_at"),
    }
    names = {f"group_{name}": groups[name] for name in by}
    counted = renders.order_by().annotate(**names).values(*names)
    figures = {
        "renders": Count("pk"),
        **{state.value: Count("pk", filter=Q(status=state)) for state in TERMINAL},
        "unknown": Count("pk", filter=Q(cost_usd_micros=None)),
        "cost": Sum("cost_usd_micros"),
    }
    named = {f"sum_{name}": figure for name, figure in figures.items()}
    rows = counted.annotate(**named) if by else [renders.order_by().aggregate(**named)]
    made = [
        CostLine(
            tuple(_shown(name, row[f"group_{name}"]) for name in by),
            **{name: int(row[f"sum_{name}"] or 0) for name in figures},
        )
        for row in rows
    ]
    return sorted(made, key=lambda line: line.group)


def total(found: Iterable[CostLine]) -> CostLine:
    """The sum of these lines."""
    found = list(found)
    sums = {name: sum(getattr(line, name) for line in found) for name in (*COUNTS, "cost")}
    return CostLine((), **sums)


def running() -> int:
    """Number of renders that Sume holds, or may hold: their cost is known when they end."""
    return RenderJob.objects.in_flight().count() + RenderJob.objects.unsure().count()


def _shown(name: str, value: Any) -> str:
    if name == "month" and isinstance(value, datetime):
        return f"{timezone.localtime(value):%Y-%m}"
    if isinstance(value, date):
        return value.isoformat()
    return NOBODY if value is None else str(value)
