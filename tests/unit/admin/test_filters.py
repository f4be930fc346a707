"""The list's filters: each finds what its name says, and nothing odd breaks them."""

from datetime import UTC, datetime, timedelta

import pytest
from django.utils import timezone

from renders import transitions
from renders.admin import filters
from renders.models import RenderJob
from renders.reports.attention import Reason
from renders.services import create_render
from renders.states import Kind, Status

pytestmark = pytest.mark.django_db
LIST = "/admin/renders/renderjob/"


@pytest.fixture
def found(listed):
    return lambda **query: listed(query)


def test_each_status_finds_its_own(found, sent, ended):
    create_render("pending")
    transitions.claim(create_render("submitting").pk, timezone.now(), "default")
    sent("submitted")
    for status in (Status.COMPLETED, Status.FAILED, Status.CANCELED):
        ended(status, prompt=str(status))

    for status in Status:
        assert found(status=status) == {status}
        assert found(status__exact=status) == {status}
    assert found(status="in_flight") == {"submitting", "submitted"}
    RenderJob.objects.filter(prompt="pending").update(held_at=timezone.now())
    assert found(status="held") == found(status=Status.PENDING) == {"pending"}


def test_those_that_wait_for_the_budget_are_found_and_held_ones_are_not(found):
    rows = [create_render(prompt) for prompt in ("aside", "held", "in line")]
    transitions.put_aside([row.pk for row in rows[:2]], "Too dear.")
    RenderJob.objects.filter(prompt="held").update(held_at=timezone.now())

    assert found(status="over_budget") == {"aside"}
    assert found(standing="any") == set()


def test_each_kind_finds_its_own(found):
    for kind in Kind:
        speaks = kind in {Kind.AVATAR, Kind.AVATAR_VIDEO}
        create_render(kind, kind=kind, params={"avatar_handle": "mara"} if speaks else {})

    for kind in Kind:
        assert found(kind__exact=kind) == {kind}


def test_attention_finds_by_reason_or_for_any(found, sent):
    create_render("fine")
    overdue, unread = sent("overdue"), sent("unread")
    long_ago = timezone.now() - timedelta(hours=9)
    RenderJob.objects.filter(pk=overdue.pk).update(submitted_at=long_ago)
    RenderJob.objects.filter(pk=unread.pk).update(failed_reads=5)

    assert found(standing="any") == {"overdue", "unread"}
    assert found(standing=Reason.OVERDUE) == {"overdue"}
    assert found(standing=Reason.UNREAD) == {"unread"}


def test_the_day_and_the_month_begin_in_the_sites_time_zone(found, ended, settings, monkeypatch):
    settings.TIME_ZONE = "Asia/Tokyo"  # nine hours ahead
    monkeypatch.setattr(timezone, "now", lambda: datetime(2026, 7, 1, 20, 0, tzinfo=UTC))
    for prompt, at in {
        "June": datetime(2026, 6, 30, 14, 59, tzinfo=UTC),
        "July": datetime(2026, 6, 30, 15, 0, tzinfo=UTC),
        "yesterday": datetime(2026, 7, 1, 14, 59, tzinfo=UTC),
        "today": datetime(2026, 7, 1, 15, 0, tzinfo=UTC),
    }.items():
        ended(at=at, prompt=prompt)

    assert found(ended="today") == {"today"}
    assert found(ended="month") == {"today", "yesterday", "July"}
    assert len(found()) == 4


def test_who_offers_those_with_renders_and_whoever_is_chosen(
    found, rf, django_user_model, monkeypatch
):
    monkeypatch.setattr(filters, "MOST_USERS", 2)
    users = {
        name: django_user_model.objects.create_user(name) for name in ("ann", "bob", "cat", "dan")
    }
    for name in ("ann", "bob", "cat"):
        create_render(name, user=users[name])
    create_render("nobody")

    def offered(**query):
        who = filters.UserFilter(
            rf.get(LIST), {k: [str(v)] for k, v in query.items()}, RenderJob, None
        )
        return [str(name) for _, name in who.lookup_choices]

    assert offered() == ["Nobody (a program)", "bob", "cat"]
    assert offered(who=users["ann"].pk) == ["Nobody (a program)", "ann", "bob", "cat"]
    assert found(who=users["ann"].pk) == {"ann"}
    assert found(who=users["dan"].pk) == set()
    assert found(who="nobody") == {"nobody"}


@pytest.mark.parametrize(
    "query",
    [
        "status=x",
        "standing=x",
        "ended=x",
        "who=1000",
        "kind__exact=x",
        "created_at__year=2026&created_at__month=11",
    ],
)
def test_an_odd_filter_is_answered(admin_client, query):
    create_render("A boat")

    assert admin_client.get(f"{LIST}?{query}").status_code == 200


@pytest.mark.parametrize(
    "query",
    ["who=x", "who=%00", "status=%00", "kind__exact=%00", f"who={10**20}", "created_at__gte=x"],
)
def test_a_filter_that_cannot_be_read_leads_back_to_the_list(admin_client, query):
    response = admin_client.get(f"{LIST}?{query}")

    assert (response.status_code, response.headers["Location"]) == (302, f"{LIST}?e=1")
