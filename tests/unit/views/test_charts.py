"""The charts show a person's own figures, drawn and as tables."""

import pytest

from renders.states import Status
from tests.unit.views.support import ended

pytestmark = pytest.mark.django_db
CHARTS = "/renders/charts/"


def test_nothing_ended_yet_says_so(page):
    html = page.get(CHARTS).text

    assert html.count("Nothing in this time") == 4
    assert 'role="img"' not in html


def test_they_are_drawn_named_and_told_in_a_table(page, ann):
    ended(ann, cost=40_000)
    ended(ann, Status.FAILED)
    html = page.get(CHARTS).text

    assert html.count('role="img"') == 4 == html.count("<desc")
    assert html.count("As a table") == 4
    assert 'fill="url(#fill-completed)"' in html and 'fill="url(#fill-failed)"' in html
    for words in ("Completed: 1", "Failed: 1", "Canceled: 0", "$0.04 in all", "Your renders"):
        assert words in html
    assert 'class="line median" d="M' in html


def test_others_renders_count_for_staff_alone(client, page, ann, bob, staff):
    ended(bob)
    assert "Completed: 0" in page.get(CHARTS).text

    client.force_login(staff)
    html = client.get(CHARTS).text
    assert "Completed: 1" in html and "Everybody's renders" in html


@pytest.mark.parametrize(
    ("asked", "rows"), [("", 24), ("72", 72), ("168", 168), ("9", 24), ("x", 24)]
)
def test_the_span_is_one_of_three(page, ann, asked, rows):
    ended(ann)
    response = page.get(CHARTS, {"hours": asked})

    assert len(response.context["rows"]) == rows
    assert f'href="?hours={rows}" aria-current="true"' in response.text


def test_within_a_minute_nothing_is_counted_again(page, ann, django_assert_num_queries):
    ended(ann)
    page.get(CHARTS)
    with django_assert_num_queries(2):  # session and user
        page.get(CHARTS)
