"""The summary above the admin's list: counts, costs, and whether the gates are open."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.core.cache import cache
from django.db.models import Count, Q, Sum
from django.urls import reverse
from django.utils import timezone

from renders.conf.workspaces import DEFAULT
from renders.models import RenderJob
from renders.models.querysets import RenderQuerySet, sees_all
from renders.reports import attention, standing
from renders.reports.standing import GateStanding
from renders.states import IN_FLIGHT, Status

CACHE_SECONDS = 300


@dataclass(frozen=True)
class Figure:
    """One number, with a link to the renders behind it."""

    label: str
    value: str
    url: str
    alarm: bool = False


def starts() -> dict[str, datetime]:
    """When today and this month began, in the site's time zone."""
    today = timezone.localtime().replace(hour=0, minute=0, second=0, microsecond=0)
    return {"today": today, "month": today.replace(day=1)}


def figures(user: Any) -> list[Figure]:
    """The figures of the renders that this person may see."""
    renders = RenderJob.objects.visible_to(user)
    since = starts()
    moving = renders.filter(finished_at__isnull=True).aggregate(
        pending=Count("status", filter=Q(status=Status.PENDING)),
        in_flight=Count("status", filter=Q(status__in=IN_FLIGHT)),
    )
    ended = renders.filter(finished_at__gte=since["today"]).aggregate(
        done=Count("status", filter=Q(status=Status.COMPLETED)),
        failed=Count("status", filter=Q(status=Status.FAILED)),
        cost=Sum("cost_usd_micros"),
    )
    today = ended["cost"] or 0
    month = today + _before_today(renders, since, "all" if sees_all(user) else user.pk)
    troubled = attention.needing(renders).count()
    return [
        _figure("Pending", moving["pending"], "status=pending"),
        _figure("In flight", moving["in_flight"], "status=in_flight"),
        _figure("Done today", ended["done"], "status=completed&ended=today"),
        _figure("Failed today", ended["failed"], "status=failed&ended=today", alarming=True),
        _figure("Needs attention", troubled, "standing=any", alarming=True),
        _figure("Cost today", _dollars(today), "ended=today"),
        _figure("Cost this month", _dollars(month), "ended=month"),
    ]


def gate_in_words() -> tuple[str, bool]:
    """Whether renders are sent and read now, in words; True if no gate is closed or probing."""
    states = {name: _in_words(gates) for name, gates in standing.all_gates().items()}
    if len(states) == 1:
        return states[DEFAULT]
    troubled = [
        f"{name}: {words.lower()}" for name, (words, is_well) in states.items() if not is_well
    ]
    return ("; ".join(troubled), False) if troubled else ("Open", True)


def _figure(label: str, value: int | str, query: str, *, alarming: bool = False) -> Figure:
    url = f"{reverse('admin:renders_renderjob_changelist')}?{query}"
    shown = f"{value:,}" if isinstance(value, int) else value
    return Figure(label, shown, url, alarm=alarming and bool(value))


def _before_today(renders: RenderQuerySet, since: dict[str, datetime], scope: Any) -> int:
    """This month's cost before today, in millionths. Cached: many rows that hardly change."""
    key = f"renders:spent:{scope}:{since['today'].isoformat()}"
    spent: int | None = cache.get(key)
    if spent is None:
        earlier = renders.filter(finished_at__gte=since["month"], finished_at__lt=since["today"])
        spent = int(earlier.aggregate(cost=Sum("cost_usd_micros"))["cost"] or 0)
        cache.set(key, spent, CACHE_SECONDS)
    return spent


def _dollars(micros: int) -> str:
    return f"${micros / 1_000_000:,.2f}"


def _in_words(gates: list[GateStanding]) -> tuple[str, bool]:
    if closed := [gate.sort.label.lower() for gate in gates if gate.closed]:
        return f"Paused: {' and '.join(closed)}", False
    if any(gate.trying for gate in gates):
        return "Trying one at a time", False
    return "Open", True
