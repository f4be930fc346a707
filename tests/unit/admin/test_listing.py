"""The list of renders where there are many: what is counted, and the line of dates."""

import re
from datetime import UTC, datetime

import pytest

from renders.admin import jobs
from renders.models import RenderJob
from renders.services import create_render, create_renders

pytestmark = pytest.mark.django_db
LIST = "/admin/renders/renderjob/"


def page_of(client, query=""):
    response = client.get(LIST + query)
    assert response.status_code == 200
    return response.content.decode()


def made(*moments):
    for moment in moments:
        row = create_render("A boat")
        RenderJob.objects.filter(pk=row.pk).update(created_at=moment)


def dates(page):
    """The choices of the line of dates."""
    line = re.split("</nav>|</div>", page.partition('class="toplinks"')[2])[0]
    return [text.strip() for text in re.findall(r"<a [^>]*>([^<]*)</a>", line)]


def test_counting_ends_where_nobody_reads_on(admin_client, monkeypatch):
    monkeypatch.setattr(jobs, "MOST_COUNTED", 3)
    create_renders([{"prompt": "A boat"}] * 3)
    assert "3 render jobs" in page_of(admin_client)

    create_render("A fox")
    page = page_of(admin_client)
    assert "3+ render jobs" in page
    assert "Select all 3+ render jobs" in page or "All 3+ selected" in page
    assert page.count("A boat") and page.count("A fox")


def test_a_count_with_thousands_is_read_easily():
    assert str(jobs.AtLeast(10_000)) == "10,000+"


def test_the_line_of_dates_goes_from_years_to_days(admin_client):
    made(
        datetime(2024, 2, 29, 12, tzinfo=UTC),
        datetime(2024, 12, 31, 23, 59, tzinfo=UTC),
        datetime(2026, 1, 1, tzinfo=UTC),
        datetime(2026, 1, 31, 5, tzinfo=UTC),
    )

    assert dates(page_of(admin_client)) == ["2024", "2026"]
    assert dates(page_of(admin_client, "?created_at__year=2024"))[-2:] == [
        "February 2024",
        "December 2024",
    ]
    assert dates(page_of(admin_client, "?created_at__year=2026&created_at__month=1"))[-2:] == [
        "January 1",
        "January 31",
    ]


@pytest.mark.parametrize("query", ["?status=pending", "?q=boat", "?kind__exact=image"])
def test_where_a_filter_holds_there_is_no_line_of_dates(admin_client, query):
    made(datetime(2024, 2, 29, 12, tzinfo=UTC), datetime(2026, 1, 1, tzinfo=UTC))

    page = page_of(admin_client, query)
    assert "A boat" in page
    assert dates(page) == []
