"""`/api/renders/budget/`: what is left this month, and why a render waits."""

import pytest
from django.contrib.auth.models import Permission

from renders import transitions
from renders.api.document import document
from renders.limits import spending
from renders.models import RenderJob, UserWorkspace
from renders.services import create_render
from tests.unit.api.support import Caller, completed, problem

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("followed")]
EXAMPLE = document()["components"]["schemas"]["Budget"]["example"]


@pytest.fixture(autouse=True)
def nothing_kept():
    spending.forget()
    yield
    spending.forget()


def told(caller):
    response = caller.get("budget/")
    assert response.status_code == 200
    assert "no-store" in response.headers["Cache-Control"]
    return response.json()["workspaces"]


def test_a_program_reads_what_is_left_for_its_user(ann, bob, settings):
    settings.RENDERS = {**settings.RENDERS, "BUDGET_USD": 1, "USER_BUDGET_USD": 0.1}
    settings.RENDERS["PRICES"] = "image:sume/auto=0.09"
    completed(ann.user, {"type": "image"})  # costs $0.04

    assert told(ann) == [
        {
            "workspace": "default",
            "budget_usd_micros": 1_000_000,
            "left_usd_micros": 960_000,
            "user_budget_usd_micros": 100_000,
            "user_left_usd_micros": 60_000,
        }
    ]
    [his] = told(bob)
    assert (his["left_usd_micros"], his["user_left_usd_micros"]) == (960_000, 100_000)


def test_without_budgets_all_is_null(ann):
    [row] = told(ann)

    assert row.pop("workspace") == "default"
    assert set(row.values()) == {None}


def test_a_reply_has_the_fields_of_the_document(ann):
    body = ann.get("budget/").json()

    assert body.keys() == EXAMPLE.keys()
    assert body["workspaces"][0].keys() == EXAMPLE["workspaces"][0].keys()


def test_others_workspaces_are_not_told(ann, sam, settings):
    settings.RENDERS = {**settings.RENDERS, "WORKSPACES": {"acme": {"BUDGET_USD": 5}, "beta": {}}}
    UserWorkspace.objects.create(user=ann.user, workspace="acme")

    assert [row["workspace"] for row in told(ann)] == ["acme"]
    sam.user.user_permissions.add(Permission.objects.get(codename="choose_workspace"))
    assert [row["workspace"] for row in told(Caller(sam.user))] == ["default", "acme", "beta"]


def test_strangers_and_other_methods_are_refused(ann, client):
    problem(client.get("/api/renders/budget/"), 401)
    problem(ann.post("budget/"), 405)


def test_a_pending_render_says_why_it_waits(ann):
    row = create_render("A boat", user=ann.user)
    assert ann.get(f"{row.pk}/").json()["waiting_reason"] is None

    transitions.put_aside([row.pk], "It costs up to $1.20, but $0.30 is left.")

    shown = ann.get(f"{row.pk}/").json()
    assert (shown["status"], shown["error"]) == ("pending", None)
    assert shown["waiting_reason"] == {
        "code": "over_budget",
        "message": "It costs up to $1.20, but $0.30 is left.",
    }
    RenderJob.objects.filter(pk=row.pk).update(turn=1)
    assert ann.get(f"{row.pk}/").json()["waiting_reason"] is None
