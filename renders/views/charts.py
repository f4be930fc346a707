"""Charts and tables of past renders: a user's own, or all for staff who may see them."""

from datetime import datetime
from typing import Any

from django.core.cache import cache
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils import timezone
from django.views.decorators.http import require_safe

from renders.conf import workspaces
from renders.models import RenderJob
from renders.models.querysets import sees_all
from renders.presentation import svg_charts
from renders.reports import history, standing
from renders.states import TERMINAL, Status
from renders.templatetags.render_facts import usd
from renders.views.policy import for_people

SPANS = {24: "24 hours", 72: "3 days", 168: "7 days"}
COST_DAYS = 30
CACHE_SECONDS = 60

Row = tuple[datetime, tuple[float, float] | None]


@for_people
@require_safe
def charts(request: HttpRequest) -> HttpResponse:
    """The page. `?hours=` is one of `SPANS`; `?workspace=` is for users who see all renders."""
    asked = request.GET.get("hours", "")
    hours = int(asked) if asked in map(str, SPANS) else min(SPANS)
    everybody = sees_all(request.user)
    audience = "all" if everybody else request.user.pk
    names = standing.all_workspaces() if everybody and workspaces.several() else []
    account = request.GET.get("workspace", "")
    account = account if account in names else ""
    key = f"renders:charts:{audience}:{account}:{hours}:{timezone.get_current_timezone_name()}"
    figures = cache.get(key)
    if figures is None:
        renders = RenderJob.objects.visible_to(request.user)
        renders = renders.filter(workspace=account) if account else renders
        figures = _figures(hours, renders)
        cache.set(key, figures, CACHE_SECONDS)
    context = {"spans": SPANS, "hours": hours, "everybody": everybody, **figures}
    context |= {"accounts": names, "account": account}
    return render(request, "renders/charts.html", context)


def _figures(number: int, renders: Any) -> dict[str, Any]:
    now = timezone.now()
    hours = history.hours(renders, number, now)
    costs = history.costs(renders, COST_DAYS, now)
    labels = [_label(hour.start, number) for hour in hours]
    spent = [{"cost": float(cost)} for _, cost in costs]
    return {
        "at": now,
        "rows": hours,
        "costs": costs,
        "totals": [
            (status, Status(status).label, sum(hour.ended[status] for hour in hours))
            for status in TERMINAL
        ],
        "spent": sum(cost for _, cost in costs),
        "counts_chart": svg_charts.bars(
            labels,
            [{status: float(hour.ended[status]) for status in TERMINAL} for hour in hours],
            lambda value: f"{value:,.0f}" if value == int(value) else "",
        ),
        "times": [
            _times("took", "Time at Sume", labels, [(hour.start, hour.took) for hour in hours]),
            _times(
                "waited", "Wait for Sume", labels, [(hour.start, hour.waited) for hour in hours]
            ),
        ],
        "cost_chart": svg_charts.bars(
            [f"{day:%b} {day.day}" for day, _ in costs], spent, lambda value: usd(round(value))
        ),
    }


def _label(start: datetime, number: int) -> str:
    return f"{start:%H:%M}" if number <= 24 else f"{start:%a %H:%M}"


def _times(name: str, title: str, labels: list[str], rows: list[Row]) -> dict[str, Any]:
    series = {
        sort: [typical[place] if typical else None for _, typical in rows]
        for place, sort in enumerate(("median", "slow"))
    }
    chart = svg_charts.lines(labels, series, _short)
    return {"name": name, "title": title, "rows": rows, "chart": chart}


def _short(seconds: float) -> str:
    """A duration in one unit, for an axis."""
    for size, unit in ((3_600, "h"), (60, "min")):
        if seconds >= 2 * size:
            return f"{seconds / size:.3g} {unit}"
    return f"{seconds:g} s"
