"""Past renders, times and costs by hour and day, in the current time zone."""

import math
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta

from django.db.models import Count, Sum
from django.db.models.functions import TruncDate, TruncHour
from django.utils import timezone

from renders.models.querysets import RenderQuerySet
from renders.states import TERMINAL, Status

HOUR = timedelta(hours=1)
CHUNK = 5_000


@dataclass(frozen=True)
class Hour:
    """The renders that ended in one hour. Times are in seconds; None if none completed."""

    start: datetime
    """Wall-clock time, without a zone: when clocks are put back, two hours become one."""
    ended: dict[str, int]
    waited: tuple[float, float] | None
    """From its creation until Sume accepted it: median and 95th percentile."""
    took: tuple[float, float] | None
    """From then to its end: median and 95th percentile."""


def hours(renders: RenderQuerySet, number: int, now: datetime) -> list[Hour]:
    """The last `number` hours including this one, also hours in which no render ended."""
    this = timezone.localtime(now).replace(minute=0, second=0, microsecond=0)
    since = now - (timezone.localtime(now) - this) - (number - 1) * HOUR
    ended = renders.filter(finished_at__gte=since, finished_at__lte=now).order_by()

    counts: dict[datetime, dict[str, int]] = defaultdict(lambda: dict.fromkeys(TERMINAL, 0))
    by_hour = ended.annotate(hour=TruncHour("finished_at")).values("hour", "status")
    for row in by_hour.annotate(number=Count("*")):
        counts[_wall_clock(row["hour"])][row["status"]] += row["number"]

    # Not every database can aggregate percentiles.
    waits: dict[datetime, list[float]] = defaultdict(list)
    times: dict[datetime, list[float]] = defaultdict(list)
    completed = ended.filter(status=Status.COMPLETED)
    moments = completed.values_list("created_at", "submitted_at", "finished_at")
    for created, submitted, finished in moments.iterator(chunk_size=CHUNK):
        hour = _wall_clock(timezone.localtime(finished))
        waits[hour].append((submitted - created).total_seconds())
        times[hour].append((finished - submitted).total_seconds())

    starts = (timezone.localtime(since + number_of * HOUR) for number_of in range(number))
    return [
        Hour(start, dict(counts[start]), _typical(waits.get(start)), _typical(times.get(start)))
        for start in dict.fromkeys(map(_wall_clock, starts))
    ]


def costs(renders: RenderQuerySet, days: int, now: datetime) -> list[tuple[date, int]]:
    """Cost of each of the last `days`, in millionths of a dollar, by the day a render ended."""
    today = timezone.localdate(now)
    wanted = [today - timedelta(days=ago) for ago in range(days - 1, -1, -1)]
    since = timezone.make_aware(datetime.combine(wanted[0], datetime.min.time()))
    billed = renders.filter(finished_at__gte=since, finished_at__lte=now, cost_usd_micros__gt=0)
    by_day = billed.order_by().annotate(day=TruncDate("finished_at")).values("day")
    sums = {row["day"]: row["cost"] for row in by_day.annotate(cost=Sum("cost_usd_micros"))}
    return [(day, int(sums.get(day, 0))) for day in wanted]


def percentile(values: Sequence[float], percent: int) -> float:
    """The nearest-rank percentile of sorted values: `percent` of them do not exceed it."""
    return values[max(0, math.ceil(len(values) * percent / 100) - 1)]


def _typical(values: Iterable[float] | None) -> tuple[float, float] | None:
    if not values:
        return None
    ordered = sorted(values)
    return percentile(ordered, 50), percentile(ordered, 95)


def _wall_clock(moment: datetime) -> datetime:
    return moment.replace(minute=0, second=0, microsecond=0, tzinfo=None, fold=0)
