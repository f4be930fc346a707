"""What was spent: exact, by whom and what and when."""

from datetime import UTC, datetime

import pytest
from django.utils import timezone

from renders.reports import costs
from renders.reports.costs import NOBODY, ended, lines, running, total
from renders.states import Kind, Status
from tests.rows import stored

pytestmark = pytest.mark.django_db


def cost(micros, day=1, status=Status.COMPLETED, hour=12, month=1, **fields):
    at = datetime(2026, month, day, hour, tzinfo=UTC)
    return stored(status, finished_at=at, cost_usd_micros=micros, **fields)


def table(by, **span):
    return {line.group: line.cost for line in lines(ended(**span), by)}


def test_by_user_and_kind_in_order(ann):
    cost(1, created_by=ann), cost(2, created_by=ann, kind=Kind.VIDEO)
    cost(4), cost(8, created_by=ann)

    assert list(table(["user", "kind"]).items()) == [
        ((NOBODY, "image"), 4),
        (("ann", "image"), 9),
        (("ann", "video"), 2),
    ]
    assert table(["model"]) == {("sume/auto",): 15}


def test_days_and_months_are_those_of_the_time_zone():
    cost(1, day=31, hour=14), cost(2, day=31, hour=16), cost(4, month=2, day=2)

    assert table(["month"]) == {("2026-01",): 3, ("2026-02",): 4}
    with timezone.override("Asia/Tokyo"):
        assert table(["month"]) == {("2026-01",): 1, ("2026-02",): 6}
        assert table(["day"]) == {("2026-01-31",): 1, ("2026-02-01",): 2, ("2026-02-02",): 4}


def test_a_span_begins_with_its_first_moment_and_ends_before_its_last():
    cost(1, day=1), cost(2, day=2), cost(4, day=3)
    since, until = (datetime(2026, 1, day, 12, tzinfo=UTC) for day in (2, 3))

    assert table(["month"], since=since, until=until) == {("2026-01",): 2}


def test_what_was_refunded_and_what_is_not_known_is_counted():
    cost(5), cost(None), cost(0, status=Status.FAILED), cost(0, status=Status.CANCELED)
    cost(None, status=Status.FAILED, error_code="submit_outcome_unknown")

    [line] = lines(ended(), ["month"])

    assert (line.renders, line.completed, line.failed, line.canceled) == (5, 2, 2, 1)
    assert (line.unknown, line.cost) == (2, 5)


def test_sums_are_exact_beyond_what_a_float_holds():
    cost(2**53), cost(1), cost(1, kind=Kind.VIDEO)

    found = lines(ended(), ["kind"])

    assert [line.cost for line in found] == [2**53 + 1, 1]
    assert total(found).cost == 2**53 + 2


def test_nothing_is_nothing():
    assert lines(ended(), ["user", "day"]) == []
    assert total([]).cost == 0


def test_a_group_is_one_statement(ann, django_assert_num_queries):
    cost(1, created_by=ann)

    with django_assert_num_queries(1):
        lines(ended(), list(costs.GROUPS))


def test_what_is_at_sume_or_may_be_is_counted_apart():
    stored(Status.SUBMITTED), stored(Status.SUBMITTING), stored(Status.PENDING)
    stored(Status.PENDING, outcome_unknown_at=timezone.now())

    assert running() == 3
    assert lines(ended(), ["month"]) == []
