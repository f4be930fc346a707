"""Figures by hour and day are those of a plain count, in the current time zone."""

import random
from datetime import UTC, date, datetime, timedelta

import pytest
from django.utils import timezone

from renders import transitions
from renders.models import RenderJob
from renders.reports.history import costs, hours, percentile
from renders.services import create_render
from renders.states import Status

pytestmark = pytest.mark.django_db
NOW = datetime(2026, 3, 10, 12, 30, tzinfo=UTC)


def ended(finished, status=Status.COMPLETED, *, waited=5, took=40, cost=0):
    row = create_render("A boat")
    submitted = finished - timedelta(seconds=took)
    transitions.claim(row.pk, submitted, "default")
    transitions.record_submitted(
        row.pk, submitted, job_id="j", sume_status="", hit=False, next_poll_at=submitted
    )
    transitions.end(row.pk, 0, finished, status, sume_status="", cost=cost)
    RenderJob.objects.filter(pk=row.pk).update(created_at=submitted - timedelta(seconds=waited))


def test_hours_in_which_nothing_ended_are_there():
    found = hours(RenderJob.objects.all(), 24, NOW)

    starts = [str(hour.start) for hour in found]
    assert starts[:2] == ["2026-03-09 13:00:00", "2026-03-09 14:00:00"]
    assert starts[-1] == "2026-03-10 12:00:00"
    assert len(found) == 24
    assert all(set(hour.ended.values()) == {0} and hour.took is None for hour in found)


def test_each_outcome_counts_in_the_hour_in_which_it_ended():
    ended(NOW)
    ended(NOW.replace(minute=0), Status.FAILED)
    ended(NOW - timedelta(hours=1), Status.CANCELED)
    ended(NOW - timedelta(hours=24))  # too old
    *_, before, last = hours(RenderJob.objects.all(), 24, NOW)

    assert last.ended == {"completed": 1, "failed": 1, "canceled": 0}
    assert before.ended == {"completed": 0, "failed": 0, "canceled": 1}
    assert (last.waited, last.took, before.took) == ((5, 5), (40, 40), None)


def test_median_and_95_percent_are_those_of_a_plain_computation():
    chance = random.Random(7)
    times = [chance.randint(1, 900) for _ in range(30)]
    for took in times:
        ended(NOW, took=took)
    [*_, last] = hours(RenderJob.objects.all(), 1, NOW)

    # The smallest value that at least so many of all do not exceed.
    plain = [
        min(v for v in times if sum(t <= v for t in times) * 100 >= percent * len(times))
        for percent in (50, 95)
    ]
    assert list(last.took) == plain


@pytest.mark.parametrize(
    ("values", "percent", "rank"),
    [([1], 50, 1), ([1], 95, 1), ([1, 2], 50, 1), ([1, 2, 3], 50, 2), (range(1, 21), 95, 19)],
)
def test_percentiles_are_by_nearest_rank(values, percent, rank):
    assert percentile(list(values), percent) == rank


@pytest.mark.parametrize(
    ("zone", "hour"), [("Asia/Kolkata", 18), ("America/New_York", 8), ("Asia/Kathmandu", 18)]
)
def test_hours_are_those_of_the_wall_clock(zone, hour):
    ended(NOW)
    with timezone.override(zone):
        found = hours(RenderJob.objects.all(), 24, NOW)

    assert len(found) == 24
    assert str(found[-1].start) == f"2026-03-10 {hour:02}:00:00"
    assert found[-1].ended["completed"] == 1


def test_the_hour_that_comes_twice_is_one_and_the_one_left_out_is_none():
    with timezone.override("Europe/Berlin"):
        autumn = datetime(2026, 10, 25, 2, 30, tzinfo=UTC)  # 3:30; at 3 it was 2 again
        ended(autumn - timedelta(hours=1))
        ended(autumn - timedelta(hours=2))
        found = hours(RenderJob.objects.all(), 4, autumn)
        assert [(hour.start.hour, hour.ended["completed"]) for hour in found] == [
            (1, 0),
            (2, 2),
            (3, 0),
        ]
        spring = datetime(2026, 3, 29, 1, 30, tzinfo=UTC)
        assert [h.start.hour for h in hours(RenderJob.objects.all(), 3, spring)] == [0, 1, 3]


def test_cost_is_summed_by_day():
    ended(NOW, cost=40_000)
    ended(NOW, cost=2)
    ended(NOW - timedelta(days=2), cost=7)
    ended(NOW - timedelta(days=3), cost=9)

    assert costs(RenderJob.objects.all(), 3, NOW) == [
        (date(2026, 3, 8), 7),
        (date(2026, 3, 9), 0),
        (date(2026, 3, 10), 40_002),
    ]
