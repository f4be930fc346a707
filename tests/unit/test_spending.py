"""What a workspace has spent in a month, and what closes it."""

from datetime import UTC, datetime, timedelta

import pytest

from renders import spending, standing, workspaces
from renders.models import RenderJob
from renders.states import Status
from tests.unit.test_querysets import stored

pytestmark = pytest.mark.django_db

NOW = datetime(2026, 3, 20, 12, 30, tzinfo=UTC)
PRICES = {"image": 0.09, "video": 1.2}


@pytest.fixture(autouse=True)
def acme(settings):
    spending.forget()

    def tell(**told):
        settings.RENDERS = {
            **settings.RENDERS,
            "WORKSPACES": {"acme": {"BUDGET_USD": 1, "PRICES": PRICES, **told}},
        }
        return workspaces.get("acme")

    yield tell
    spending.forget()


def ended(cost, *, at=NOW, status=Status.COMPLETED, workspace="acme", **fields):
    return stored(status, cost_usd_micros=cost, finished_at=at, workspace=workspace, **fields)


def test_what_ended_this_month_counts_with_its_cost_and_nothing_of_others(acme):
    for at in (NOW, NOW - timedelta(hours=3), datetime(2026, 3, 1, tzinfo=UTC)):
        ended(100_000, at=at)
    ended(500_000, at=datetime(2026, 2, 28, 23, 59, 59, tzinfo=UTC))
    ended(500_000, workspace="default")
    ended(0, status=Status.FAILED)  # refunded
    ended(None)  # Sume named no cost yet: the usual price

    assert spending.spent(acme(), NOW) == 390_000


def test_what_sume_may_have_made_counts_though_it_failed_here(acme):
    ended(None, status=Status.FAILED, error_code="submit_outcome_unknown")
    ended(None, status=Status.FAILED, at=NOW - timedelta(days=3), error_code="job_not_found")
    ended(None, status=Status.FAILED, at=datetime(2026, 2, 28, tzinfo=UTC))
    ended(0, status=Status.CANCELED)

    assert spending.spent(acme(), NOW) == 180_000


def test_what_is_under_way_counts_with_its_price(acme):
    stored(Status.SUBMITTING, workspace="acme", kind="video")
    stored(Status.SUBMITTED, workspace="acme")
    stored(Status.PENDING, workspace="acme", outcome_unknown_at=NOW)
    stored(Status.PENDING, workspace="acme")
    stored(Status.SUBMITTED)

    assert spending.spent(acme(), NOW) == 1_200_000 + 2 * 90_000
    spending.forget()
    assert spending.spent(acme(PRICES={"video": 1}), NOW) == 1_000_000


@pytest.mark.parametrize(("cost", "closed"), [(999_999, False), (1_000_000, True)])
def test_a_spent_budget_closes_until_the_next_month(acme, cost, closed):
    ended(cost)

    why = spending.closed(acme(), NOW, exact=True)
    assert bool(why) is closed
    if why:
        assert (why.code, why.until) == ("budget_spent", datetime(2026, 4, 1, tzinfo=UTC))
        assert "$1.00 of $1.00" in str(why)
        assert spending.closed(acme(), datetime(2026, 4, 1, tzinfo=UTC)) is None


@pytest.mark.parametrize("month", [11, 12])
def test_a_month_ends_in_a_year_as_well(acme, month):
    at = datetime(2026, month, 30, 23, tzinfo=UTC)
    ended(2_000_000, at=at)

    why = spending.closed(acme(), at)
    assert why.until == datetime(2026 + (month == 12), month % 12 + 1, 1, tzinfo=UTC)


def test_without_a_budget_nothing_is_even_asked(acme, django_assert_num_queries):
    ended(10**12)
    with django_assert_num_queries(0):
        assert spending.closed(acme(BUDGET_USD=0), NOW) is None


def test_a_quick_look_is_kept_for_a_moment_and_an_exact_one_sees_all(acme, monkeypatch):
    clock = [100.0]
    monkeypatch.setattr("renders.spending.time.monotonic", lambda: clock[0])
    limits = acme()
    assert spending.closed(limits, NOW) is None
    ended(1_000_000)

    assert spending.closed(limits, NOW) is None
    assert spending.closed(limits, NOW, exact=True)
    assert spending.closed(limits, NOW)  # which the others see then, too
    RenderJob.objects.update(cost_usd_micros=1)
    clock[0] += spending.LOOK_SECONDS
    assert spending.closed(limits, NOW) is None


def test_what_ended_long_ago_is_added_up_again_within_seconds(acme, monkeypatch):
    clock = [100.0]
    monkeypatch.setattr("renders.spending.time.monotonic", lambda: clock[0])
    row = ended(1_000, at=NOW - timedelta(days=3))
    assert spending.spent(acme(), NOW) == 1_000

    RenderJob.objects.filter(pk=row.pk).update(cost_usd_micros=2_000)
    clock[0] += spending.EARLIER_SECONDS
    assert spending.spent(acme(), NOW) == 2_000


def test_people_read_that_the_budget_is_spent(acme):
    acme()
    ended(1_000_000, at=datetime.now(UTC))
    writes, reads = standing.gates("acme")

    assert (writes.closed, writes.code, reads.closed) == (True, "budget_spent", False)
    assert standing.why_paused("acme") and not standing.why_paused("default")
    figures = standing.figures("acme")
    assert (figures.spent, figures.budget) == (1_000_000, 1_000_000)
    assert standing.figures("default").spent is None
