"""What a workspace has spent in a month, and what closes it."""

from datetime import UTC, datetime, timedelta

import pytest

from renders.conf import workspaces
from renders.limits import spending
from renders.limits.spending import Funds
from renders.models import RenderJob
from renders.reports import standing
from renders.states import Status
from tests.rows import stored

pytestmark = pytest.mark.django_db

NOW = datetime(2026, 3, 20, 12, 30, tzinfo=UTC)
PRICES = {"image:sume/auto": 0.09, "video:sume/auto": 1.2}


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
        ended(80_000, at=at)
    ended(85_000, at=datetime(2026, 2, 28, 23, 59, 59, tzinfo=UTC))
    ended(85_000, workspace="default")
    ended(0, status=Status.FAILED)  # refunded
    ended(None)  # Sume named no cost yet: the usual price

    assert spending.spent(acme(), NOW) == 330_000


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


@pytest.mark.parametrize(("cost", "closed"), [(910_000, False), (910_001, True)])
def test_where_not_even_the_cheapest_fits_nothing_is_sent_until_the_next_month(acme, cost, closed):
    ended(cost)

    why = spending.closed(acme(), NOW)
    assert bool(why) is closed is bool(Funds(acme(), NOW).closed())
    if why:
        assert (why.code, why.until) == ("budget_spent", datetime(2026, 4, 1, tzinfo=UTC))
        assert "$0.910001 of $1.00" in str(why)
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
    monkeypatch.setattr("renders.limits.spending.time.monotonic", lambda: clock[0])
    limits = acme()
    assert spending.closed(limits, NOW) is None
    ended(1_000_000)

    assert spending.closed(limits, NOW) is None
    assert Funds(limits, NOW).closed()
    clock[0] += spending.LOOK_SECONDS
    assert spending.closed(limits, NOW)


def test_what_ended_long_ago_is_added_up_again_within_seconds(acme, monkeypatch):
    clock = [100.0]
    monkeypatch.setattr("renders.limits.spending.time.monotonic", lambda: clock[0])
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


def test_people_never_read_of_less_than_nothing(acme, django_user_model):
    ada = django_user_model.objects.create(username="ada")
    ended(1_500_000, created_by=ada)
    limits = acme(USER_BUDGET_USD=0.35)

    assert Funds(limits, NOW).left == -500_000
    assert spending.left_of(ada.pk, limits, NOW) == -1_150_000
    assert (spending.about_left(limits, NOW), spending.about_left_of(ada.pk, limits, NOW)) == (0, 0)
    assert spending.about_left(workspaces.get("default"), NOW) is None
    assert spending.about_left_of(None, limits, NOW) is None


# --- What fits ------------------------------------------------------------------------------


def test_a_render_fits_if_its_price_is_left(acme):
    ended(910_000, kind="video")
    funds = Funds(acme(), NOW)

    assert funds.misfit(None, "image", "sume/auto") == ""
    why = funds.misfit(None, "video", "sume/auto")
    assert "costs up to $1.20" in why and "$0.09 of the month's budget is left" in why


def test_what_costs_more_than_its_price_counts_with_the_dearest_cost(acme):
    ended(250_000, at=datetime(2026, 2, 3, tzinfo=UTC))
    ended(800_000)
    stored(Status.SUBMITTED, workspace="acme")

    assert spending.spent(acme(), NOW) == 800_000 + 800_000
    assert "costs up to $0.80" in Funds(acme(), NOW).misfit(None, "image", "sume/auto")


def test_without_a_price_nothing_fits(acme):
    assert "No price is set for image:other" in Funds(acme(), NOW).misfit(None, "image", "other")
    assert Funds(acme(BUDGET_USD=0), NOW).misfit(None, "image", "other") == ""


def test_each_user_has_a_budget_beside_the_workspace_s(acme, django_user_model):
    ada, bob = (django_user_model.objects.create(username=name) for name in ("ada", "bob"))
    ended(300_000, created_by=ada, kind="video")
    ended(70_000, at=datetime(2026, 2, 3, tzinfo=UTC), created_by=bob)
    stored(Status.SUBMITTED, workspace="acme", created_by=bob)
    stored(Status.SUBMITTED, workspace="default", created_by=bob)
    funds = Funds(acme(USER_BUDGET_USD=0.35), NOW)

    assert spending.left_of(ada.pk, acme(USER_BUDGET_USD=0.35), NOW) == 50_000
    assert "$0.05 of its user's budget is left" in funds.misfit(ada.pk, "image", "sume/auto")
    assert funds.misfit(bob.pk, "image", "sume/auto") == ""
    assert funds.misfit(None, "image", "sume/auto") == ""  # a program's


def test_as_many_fit_as_their_prices_do(acme, django_user_model):
    ada = django_user_model.objects.create(username="ada")
    funds = Funds(acme(USER_BUDGET_USD=0.3), NOW)

    assert funds.reserve(ada.pk, "image", "sume/auto", 100) == 3
    assert funds.reserve(ada.pk, "image", "sume/auto", 100) == 0
    assert funds.reserve(None, "image", "sume/auto", 100) == 8  # $0.73 is left
    assert funds.reserve(None, "image", "other", 100) == 0
    assert Funds(acme(BUDGET_USD=0), NOW).reserve(None, "image", "other", 100) == 100


@pytest.mark.parametrize(
    ("micros", "words"), [(90_000, "$0.09"), (1_234_500_000, "$1,234.50"), (1, "$0.000001")]
)
def test_sums_are_shown_as_they_are(micros, words):
    assert spending.usd(micros) == words
