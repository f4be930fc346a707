"""What people and programs read of the budgets: what is left, never less than nothing."""

from datetime import UTC, datetime

import pytest
from django.contrib.auth.models import AnonymousUser, Permission

from renders.conf import workspaces
from renders.limits import spending
from renders.models import UserWorkspace
from renders.services import allowances
from renders.services.allowances import Allowance
from renders.states import Status
from tests.rows import stored

pytestmark = pytest.mark.django_db

NOW = datetime(2026, 3, 20, 12, 30, tzinfo=UTC)


@pytest.fixture(autouse=True)
def nothing_kept():
    spending.forget()
    yield
    spending.forget()


@pytest.fixture
def limits(settings):
    def limits(**told):
        settings.RENDERS = {**settings.RENDERS, **told}

    return limits


def spent(micros, user=None, workspace="default"):
    fields = {"finished_at": NOW, "workspace": workspace, "created_by": user}
    return stored(Status.COMPLETED, cost_usd_micros=micros, **fields)


def words(user, workspace="", *, sees_all=False):
    return allowances.in_words(user, workspace, NOW, sees_all=sees_all)


def test_each_budget_has_its_own_rest_and_none_where_there_is_none(limits, ada, django_user_model):
    limits(WORKSPACES={"acme": {"BUDGET_USD": 10}, "beta": {"USER_BUDGET_USD": 0.5}})
    bob = django_user_model.objects.create_user("bob")
    for name in ("acme", "beta"):
        spent(300_000, ada, name)
        spent(200_000, bob, name)

    def of(name):
        return allowances.of(ada, workspaces.get(name), NOW)

    assert of("acme") == Allowance("acme", 10_000_000, 9_500_000, None, None)
    assert of("beta") == Allowance("beta", None, None, 500_000, 200_000)
    assert of("default") == Allowance("default", None, None, None, None)


def test_nothing_is_left_where_more_was_spent_than_the_budget(limits, ada):
    limits(BUDGET_USD=1, USER_BUDGET_USD=0.5)
    spent(1_500_000, ada)

    told = allowances.of(ada, workspaces.get("default"), NOW)
    assert (told.left, told.user_left) == (0, 0)


def test_a_sum_is_not_added_up_again_for_each_look(limits, ada, django_assert_num_queries):
    limits(BUDGET_USD=1, USER_BUDGET_USD=0.5)
    default = workspaces.get("default")
    allowances.of(ada, default, NOW)

    with django_assert_num_queries(0):
        allowances.of(ada, default, NOW)


def test_a_person_is_told_of_own_workspace_alone(limits, ada):
    limits(WORKSPACES={"acme": {}, "beta": {}})
    UserWorkspace.objects.create(user=ada, workspace="acme")

    assert [one.workspace for one in allowances.every(ada, NOW)] == ["acme"]


def test_who_may_choose_is_told_of_all_with_the_own_one_first(limits, ada, django_user_model):
    limits(WORKSPACES={"acme": {}, "beta": {}})
    UserWorkspace.objects.create(user=ada, workspace="beta")
    ada.user_permissions.add(Permission.objects.get(codename="choose_workspace"))
    ada = django_user_model.objects.get(pk=ada.pk)

    assert [one.workspace for one in allowances.every(ada, NOW)] == ["beta", "default", "acme"]


def test_whose_workspace_is_gone_is_told_of_none(limits, ada):
    limits(BUDGET_USD=1, WORKSPACES={"acme": {}})
    UserWorkspace.objects.create(user=ada, workspace="gone")

    assert (allowances.every(ada, NOW), words(ada)) == ([], [])


def test_without_a_budget_nobody_reads_or_asks_anything(ada, django_assert_num_queries):
    with django_assert_num_queries(0):
        assert words(ada, sees_all=True) == []


def test_a_person_reads_what_is_left_of_the_own_budget(limits, ada):
    limits(USER_BUDGET_USD=0.5)
    spent(360_000, ada)

    assert words(ada) == [("$0.14 of your $0.50 is left this month.", False)]


def test_the_shared_budget_is_named_where_less_is_left_of_it(limits, ada):
    limits(BUDGET_USD=10, USER_BUDGET_USD=5)
    spent(4_000_000)
    assert words(ada) == [("$5.00 of your $5.00 is left this month.", False)]
    spending.forget()
    spent(1_500_000)

    assert [said for said, _ in words(ada)] == [
        "$5.00 of your $5.00 is left this month.",
        "$4.50 of the shared $10.00 is left this month.",
    ]


def test_who_sees_all_reads_of_the_shared_budget_too(limits, ada):
    limits(BUDGET_USD=10, USER_BUDGET_USD=0.5)

    assert [said for said, _ in words(ada, sees_all=True)] == [
        "$0.50 of your $0.50 is left this month.",
        "$10.00 of the shared $10.00 is left this month.",
    ]


def test_where_there_are_several_the_workspace_is_named(limits, ada):
    limits(WORKSPACES={"acme": {"BUDGET_USD": 10}})

    assert words(ada, "acme") == [("$10.00 of acme's $10.00 is left this month.", False)]
    assert words(ada) == words(ada, "gone") == []


def test_little_is_pointed_out_and_what_follows_is_said_once(limits, ada):
    limits(BUDGET_USD=10, USER_BUDGET_USD=0.5)
    spent(9_000_000, ada)

    first, second = words(ada, sees_all=True)
    assert first == ("$0.00 of your $0.50 is left this month.", True)
    assert second == (
        "$1.00 of the shared $10.00 is left this month. "
        "Renders that do not fit wait until next month.",
        True,
    )


@pytest.mark.parametrize(("left", "low"), [(201, False), (200, True), (0, True)])
def test_a_budget_is_low_once_80_percent_is_spent(left, low):
    assert spending.is_low(left, 1000) is low


def test_a_program_without_a_user_has_no_budget_of_its_own(limits):
    limits(USER_BUDGET_USD=0.5)

    assert allowances.of(AnonymousUser(), workspaces.get("default"), NOW).user_left is None


def test_the_month_is_that_of_utc():
    assert allowances.month(datetime.fromisoformat("2026-04-01T01:00:00+02:00")) == "2026-03"
