"""The summary above the list: its numbers, what they lead to, and who sees it."""

import re
from datetime import UTC, datetime, timedelta
from urllib.parse import parse_qsl, urlsplit

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from renders import transitions
from renders.exceptions import Paused
from renders.limits import gate
from renders.models import Gate, RenderJob
from renders.reports import summary
from renders.services import create_render
from renders.states import RequestType, Status

pytestmark = pytest.mark.django_db
LIST = "/admin/renders/renderjob/"


def shown(client, page=LIST):
    """The summary's numbers and addresses, by label."""
    rows = re.findall(
        r'<dt>(.*?)</dt><dd>(?:<a href="(.*?)">)?(.*?)<', client.get(page).content.decode()
    )
    return {label: (value, url.replace("&amp;", "&")) for label, url, value in rows}


def numbers(client):
    return {label: value for label, (value, _) in shown(client).items()}


def test_it_counts_and_adds_up(admin_client, sent, ended):
    create_render("A boat")
    transitions.claim(create_render("A fox").pk, timezone.now(), "default")
    sent()
    RenderJob.objects.filter(pk=sent().pk).update(failed_reads=3)
    ended(cost=1_234_567)
    ended(cost=None)
    ended(Status.FAILED, cost=0)
    ended(Status.CANCELED, cost=0)

    assert numbers(admin_client) == {
        "Pending": "1",
        "In flight": "3",
        "Done today": "2",
        "Failed today": "1",
        "Needs attention": "1",
        "Cost today": "$1.23",
        "Cost this month": "$1.23",
        "Gate": "Open",
    }
    assert shown(admin_client)["Gate"][1] == "/admin/renders/gate/"


def test_without_any_render_all_is_zero(admin_client):
    figures = numbers(admin_client)

    assert set(figures.values()) == {"0", "$0.00", "Open"}
    assert 'class="alarm"' not in admin_client.get(LIST).content.decode()


def test_each_number_leads_to_its_renders(admin_user, listed, sent, ended):
    create_render("pending")
    sent("in flight")
    ended(prompt="done")
    ended(Status.FAILED, prompt="failed")
    ended(at=timezone.now() - timedelta(days=40), prompt="done long ago")
    RenderJob.objects.filter(pk=sent("unread").pk).update(failed_reads=3)

    assert {
        figure.label: listed(dict(parse_qsl(urlsplit(figure.url).query)))
        for figure in summary.figures(admin_user)
    } == {
        "Pending": {"pending"},
        "In flight": {"in flight", "unread"},
        "Done today": {"done"},
        "Failed today": {"failed"},
        "Needs attention": {"unread"},
        "Cost today": {"done", "failed"},
        "Cost this month": {"done", "failed"},
    }


@pytest.mark.parametrize(
    ("zone", "today", "month"),
    [
        ("UTC", datetime(2026, 3, 1, tzinfo=UTC), datetime(2026, 3, 1, tzinfo=UTC)),
        (
            "America/Los_Angeles",  # still the day before, in the month before
            datetime(2026, 2, 28, 8, tzinfo=UTC),
            datetime(2026, 2, 1, 8, tzinfo=UTC),
        ),
        (
            "Pacific/Kiritimati",  # fourteen hours ahead
            datetime(2026, 2, 28, 10, tzinfo=UTC),
            datetime(2026, 2, 28, 10, tzinfo=UTC),
        ),
    ],
)
def test_the_day_and_the_month_begin_where_the_site_is(
    admin_user, ended, settings, monkeypatch, zone, today, month
):
    settings.TIME_ZONE = zone
    monkeypatch.setattr(timezone, "now", lambda: datetime(2026, 3, 1, 7, 59, tzinfo=UTC))
    second = timedelta(seconds=1)
    for at in {today, today - second, month, month - second}:
        ended(at=at, cost=1_000_000)

    assert (summary.starts()["today"], summary.starts()["month"]) == (today, month)
    figures = {figure.label: figure.value for figure in summary.figures(admin_user)}
    assert figures["Done today"] == "1"
    assert figures["Cost today"] == "$1.00"
    assert figures["Cost this month"] == ("$1.00" if today == month else "$3.00")


def test_a_month_begins_at_midnight_though_the_clocks_change_within(settings, monkeypatch):
    settings.TIME_ZONE = "Europe/Berlin"
    monkeypatch.setattr(timezone, "now", lambda: datetime(2026, 3, 31, 12, tzinfo=UTC))

    assert summary.starts()["month"] == datetime(2026, 2, 28, 23, tzinfo=UTC)


def test_a_closed_gate_shows(settings):
    settings.RENDERS = {"PAUSE_SECONDS": 600}
    assert summary.gate_in_words() == ("Open", True)

    refused = Paused("Refused.", code="unauthorized", status=401)
    gate.pause("default", RequestType.WRITES, refused)
    assert summary.gate_in_words() == ("Paused: writes", False)

    gate.pause("default", RequestType.READS, refused)
    assert summary.gate_in_words() == ("Paused: writes and reads", False)

    Gate.objects.update(paused_until=timezone.now())
    assert summary.gate_in_words() == ("Trying one at a time", False)


@pytest.mark.parametrize("page", [LIST, "/admin/", "/admin/renders/renderjob/?q=x"])
def test_it_stands_above_the_list_and_on_the_index(admin_client, page):
    assert "Needs attention" in shown(admin_client, page)


@pytest.mark.parametrize("permission", ["add_renderjob", "cancel_renderjob", "view_gate"])
def test_who_may_not_view_renders_sees_no_number(client, log_in, permission):
    create_render("A boat", user=log_in(permission))

    assert "renders-summary" not in client.get("/admin/").content.decode()


def test_who_may_not_see_the_gate_gets_no_link_to_it(client, log_in):
    log_in("view_renderjob")

    assert shown(client)["Gate"] == ("Open", "")


def test_it_takes_few_queries(admin_user, ended, django_assert_num_queries):
    for _ in range(3):
        ended()
    for queries in (5, 4):  # what the month cost until today is kept for a while
        with django_assert_num_queries(queries):
            summary.figures(admin_user)
            summary.gate_in_words()


def test_its_numbers_are_read_from_indexes(admin_user, sent, ended):
    if connection.vendor != "postgresql":
        pytest.skip("Plans are PostgreSQL's.")
    long_ago = timezone.now() - timedelta(days=90)
    rows = [
        RenderJob(
            prompt="A boat",
            status=Status.COMPLETED,
            sume_job_id="job-1",
            submitted_at=long_ago,
            finished_at=long_ago,
            handled_at=long_ago,
        )
        for _ in range(3_000)
    ]
    RenderJob.objects.bulk_create(rows)
    sent()
    ended()
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE renders_renderjob")
        with CaptureQueriesContext(connection) as queries:
            summary.figures(admin_user)
        plans = []
        for query in queries.captured_queries:
            cursor.execute(f"EXPLAIN {query['sql']}")
            plans.append("\n".join(line for (line,) in cursor.fetchall()))

    assert len(plans) == 4
    for plan in plans:
        assert "renders_ended" in plan and "Seq Scan on renders_renderjob" not in plan


def test_what_the_month_cost_before_today_counts(admin_user, ended, monkeypatch):
    now = timezone.now()
    starts = {"today": now - timedelta(hours=1), "month": now - timedelta(days=3)}
    monkeypatch.setattr(summary, "starts", lambda: starts)
    for age, cost in ((0, 1_000_000), (2, 200_000), (80, 40_000)):
        row = ended(cost=cost)
        RenderJob.objects.filter(pk=row.pk).update(finished_at=now - timedelta(hours=age))

    costs = {figure.label: figure.value for figure in summary.figures(admin_user)}
    assert (costs["Cost today"], costs["Cost this month"]) == ("$1.00", "$1.20")
