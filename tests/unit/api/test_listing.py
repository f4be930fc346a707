"""The list: pages that stay put while renders are added, and what narrows it."""

from datetime import UTC, datetime, timedelta, timezone
from urllib.parse import urlencode

import pytest

from renders.models import RenderJob
from renders.services import create_render, create_renders
from tests.unit.api.support import URL, failed, problem, submitted

pytestmark = pytest.mark.django_db
NOON = datetime(2026, 1, 31, 12, tzinfo=UTC)


def ids(response):
    assert response.status_code == 200, response.content
    return [row["id"] for row in response.json()["renders"]]


def narrowed(caller, **query):
    return ids(caller.get("?" + urlencode(query)))


def walk(caller, response):
    """The ids of this page and of all that follow it."""
    found = []
    while True:
        found.append(ids(response))
        following = response.json()["next"]
        if following is None:
            assert "Link" not in response.headers
            return found
        assert response.headers["Link"] == f'<{following}>; rel="next"'
        response = caller.get(following)


def make(user, number, at=NOON):
    rows = create_renders([{"prompt": f"Boat {index}"} for index in range(number)], user=user)
    for index, row in enumerate(rows):
        # Pairs share a time.
        moment = at + timedelta(seconds=index // 2)
        RenderJob.objects.filter(pk=row.pk).update(created_at=moment)
    ordered = RenderJob.objects.filter(created_by=user).order_by("-created_at", "-id")
    return [str(pk) for pk in ordered.values_list("pk", flat=True)]


def test_pages_hold_every_render_once_and_in_order(ann, bob):
    make(bob.user, 3)
    expected = make(ann.user, 7)

    for limit in (1, 2, 3, 7, 50):
        pages = walk(ann, ann.get(f"?limit={limit}"))
        assert [pk for page in pages for pk in page] == expected
        assert all(len(page) == limit for page in pages[:-1])
        assert pages[-1]


def test_renders_added_between_two_pages_move_nothing(ann):
    expected = make(ann.user, 6)
    first = ann.get("?limit=2")
    create_render("Newer", user=ann.user)
    following = ann.get(first.json()["next"])
    make(ann.user, 2, at=NOON + timedelta(hours=1))

    seen = ids(first) + ids(following) + walk(ann, ann.get(following.json()["next"]))[0]
    assert seen == expected


def test_the_next_page_keeps_to_the_query(ann):
    make(ann.user, 4)
    failed(ann.user)
    pages = walk(ann, ann.get("?limit=3&status=pending,submitting&q=Boat"))

    assert [len(page) for page in pages] == [3, 1]


def test_a_cursor_opens_no_render_of_others(ann, bob):
    make(bob.user, 4)
    cursor = bob.get("?limit=1").json()["next"]

    assert ids(ann.get(cursor)) == []


@pytest.mark.parametrize("cursor", ["", "x", "WyJhIl0:1:x", "a" * 5000, "\x00"])
def test_what_is_no_cursor_is_refused(ann, cursor):
    errors = problem(ann.get("?" + urlencode({"cursor": cursor})), 422)["errors"]

    assert [error["field"] for error in errors] == ["cursor"]


def test_a_cursor_that_was_changed_is_refused(ann):
    make(ann.user, 3)
    following = ann.get("?limit=1").json()["next"]

    problem(ann.get(following[:-1] + ("A" if following[-1] != "A" else "B")), 422)


def test_the_list_is_narrowed_by_what_a_render_is(ann):
    pending = create_render("A Boat", user=ann.user, reference="order-1")
    clip = create_render("A clip of 100%", user=ann.user, kind="video")
    refused, sent = failed(ann.user, "A fox"), submitted(ann.user)
    by = {row.pk: str(row.pk) for row in (pending, clip, refused, sent)}

    assert narrowed(ann, status="failed") == [by[refused.pk]]
    assert narrowed(ann, status="failed,submitted") == [by[sent.pk], by[refused.pk]]
    assert narrowed(ann, kind="video") == [by[clip.pk]]
    assert len(narrowed(ann, kind="video,image")) == 4
    assert narrowed(ann, reference="order-1") == [by[pending.pk]]
    assert narrowed(ann, reference="order") == []
    assert narrowed(ann, q="FOX") == [by[refused.pk]]
    assert narrowed(ann, q="%") == [by[clip.pk]]
    assert narrowed(ann, q="boat", status="pending") == [by[pending.pk]]


def test_the_list_is_narrowed_by_time(ann):
    old, new = make(ann.user, 4)[::-1][1:3]
    at = {row["id"]: row["created_at"] for row in ann.get().json()["renders"]}

    assert old not in narrowed(ann, created_after=at[old])
    assert new in narrowed(ann, created_after=at[old])
    assert old in narrowed(ann, created_before=at[new])
    assert new not in narrowed(ann, created_before=at[new])
    east = datetime.fromisoformat(at[new]).astimezone(timezone(timedelta(hours=5, minutes=30)))
    assert narrowed(ann, created_before=east.isoformat()) == narrowed(ann, created_before=at[new])


@pytest.mark.parametrize(
    "value",
    [
        "",
        "2026-01-31",
        "2026-01-31T12:00:00",
        "2026-01-31 12:00:00Z",
        "2026-01-31T12:00:00 00:00",  # what becomes of a + that is not escaped
        "2026-02-31T12:00:00Z",
        "2026-W05-6T12:00:00Z",
        "0001-01-01T00:00:00+01:00",
        "9999-12-31T23:59:59-01:00",
        "now",
    ],
)
def test_a_time_of_another_form_is_refused(ann, value):
    for name in ("created_after", "created_before"):
        errors = problem(ann.get("?" + urlencode({name: value})), 422)["errors"]
        assert [error["field"] for error in errors] == [name]


@pytest.mark.parametrize("value", ["2026-01-31t12:00:00z", "2026-01-31T12:00:00.123456789-00:00"])
def test_a_time_may_be_written_in_every_form_of_the_rule(ann, value):
    assert narrowed(ann, created_after=value) == []


@pytest.mark.parametrize(
    ("query", "fields"),
    [
        ("colour=red", ["colour"]),
        ("page=2&limit=x", ["page", "limit"]),
        ("status=pending&status=failed", ["status"]),
        ("status=pending,", ["status"]),
        ("kind=", ["kind"]),
        ("q=", ["q"]),
        ("q=%00", ["q"]),
        ("reference=" + "x" * 201, ["reference"]),
    ],
)
def test_a_query_that_means_nothing_is_refused(ann, query, fields):
    errors = problem(ann.get(f"?{query}"), 422)["errors"]

    assert [error["field"] for error in errors] == fields


def test_staff_who_may_view_renders_see_all(ann, sam):
    make(ann.user, 2)

    assert len(ids(sam.get())) == 2


def test_head_tells_the_same_without_a_body(ann):
    make(ann.user, 2)
    response = ann.call("HEAD", "?limit=1")

    assert response.status_code == 200
    assert response.content == b""
    assert URL in response.headers["Link"]
