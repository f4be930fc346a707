"""What a scrape finds in the database."""

import threading
import time
from datetime import timedelta
from unittest import mock

import pytest
from django.core.cache import cache
from django.db import DatabaseError, connections
from django.utils import timezone

from renders.models import Gate, RenderEvent, RenderJob
from renders.reports import figures as report_figures
from renders.states import SENDING

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def nothing_known():
    cache.delete(report_figures.CACHE_KEY)
    yield
    cache.delete(report_figures.CACHE_KEY)


def ago(seconds):
    return timezone.now() - timedelta(seconds=seconds)


def make(status="pending", kind="image", **fields):
    job = {"sume_job_id": "job_1", "submitted_at": ago(60)}
    needed = {
        "submitting": {"claimed_at": ago(3)},
        "submitted": {**job, "next_poll_at": ago(0)},
        "completed": {**job, "finished_at": ago(9)},
        "failed": {"finished_at": ago(9)},
    }
    return RenderJob.objects.create(
        prompt="boat", kind=kind, status=status, **{**needed.get(status, {}), **fields}
    )


def test_an_empty_table_tells_of_nothing():
    found = report_figures.standing()

    assert (found.jobs, found.ages, found.failing_reads) == ({}, {}, {})
    assert found.ended == {"completed": 0, "failed": 0, "canceled": 0}
    figures = found.accounts["default"][1]
    assert (figures.in_flight, figures.overdue, figures.writes) == (0, 0, 0)
    assert figures.capacity is None


def test_renders_are_counted_by_where_they_stand():
    make(created_at=ago(100))
    make(created_at=ago(50), kind="video")
    make(held_at=ago(5))
    make(turn=None, error_code="over_budget", created_at=ago(300))
    make("submitting", claimed_at=ago(7))
    make("submitted", next_poll_at=ago(20))
    make("submitted", next_poll_at=timezone.now() + timedelta(seconds=30), failed_reads=3)
    make("submitted", submitted_at=ago(7 * 3600), next_poll_at=ago(0))
    make("completed", finished_at=ago(40))
    make("completed", handled_at=ago(1))
    make("failed", handled_at=ago(1))

    found = report_figures.standing()

    assert found.jobs == {
        ("default", "pending", "image"): 1,
        ("default", "pending", "video"): 1,
        ("default", "over_budget", "image"): 1,
        ("default", "held", "image"): 1,
        ("default", "submitting", "image"): 1,
        ("default", "submitted", "image"): 3,
        ("default", "unhandled", "image"): 1,
    }
    assert found.ages["default", "pending"] == pytest.approx(100, abs=2)
    assert found.ages["default", "submitting"] == pytest.approx(7, abs=2)
    assert found.ages["default", "submitted"] == pytest.approx(20, abs=2)
    assert found.ages["default", "unhandled"] == pytest.approx(40, abs=2)
    figures = found.accounts["default"][1]
    assert (figures.overdue, found.failing_reads) == (1, {"default": 1})
    assert found.ended == {"completed": 2, "failed": 1, "canceled": 0}
    assert (figures.in_flight, figures.waiting, figures.over_budget) == (3, 2, 1)


def test_renders_whose_media_wait_for_a_late_try_are_counted(settings):
    late = {"handled_at": ago(5), "media_due_at": ago(-900)}
    make("completed", **late)
    make("completed", kind="video", **late)
    make("completed", **late, erased_at=ago(1))
    make("completed", handled_at=ago(5))

    assert report_figures.standing().media_waiting == {"default": 2}
    settings.RENDERS = {"SAVE_MEDIA": False}
    assert report_figures.standing().media_waiting == {}


def test_without_a_limit_nothing_is_overdue(settings):
    settings.RENDERS = {**settings.RENDERS, "OVERDUE_HOURS": "0"}
    make("submitted", submitted_at=ago(10**6))

    assert report_figures.standing().accounts["default"][1].overdue == 0


def test_a_read_that_is_due_later_is_not_late():
    make("submitted", next_poll_at=timezone.now() + timedelta(seconds=30))

    assert report_figures.standing().ages["default", "submitted"] == 0


def test_the_gates_and_the_minute_are_told():
    render = make()
    Gate.objects.create(key="writes", paused_until=ago(-30), code="paused", capacity=4)
    RenderEvent.objects.create(render=render, what=SENDING, at=ago(10))
    RenderEvent.objects.create(render=render, what=SENDING, at=ago(100))

    found = report_figures.standing()

    gates, figures = found.accounts["default"]
    assert {gate.sort: gate.closed for gate in gates} == {"writes": True, "reads": False}
    assert (figures.writes, figures.capacity) == (1, 4)


def test_workspaces_are_told_apart(settings):
    settings.RENDERS = {**settings.RENDERS, "WORKSPACES": {"acme": {"API_KEY": "k"}}}
    make(workspace="acme", created_at=ago(100))
    make(created_at=ago(50))
    Gate.objects.create(key="acme:writes", paused_until=ago(-30), code="paused")

    found = report_figures.standing()

    assert found.jobs == {("default", "pending", "image"): 1, ("acme", "pending", "image"): 1}
    assert found.ages["acme", "pending"] == pytest.approx(100, abs=2)
    assert {name: gates[0].closed for name, (gates, _) in found.accounts.items()} == {
        "default": False,
        "acme": True,
    }


def test_what_has_ended_is_counted_once_in_a_while():
    make("completed")
    assert report_figures.standing().ended["completed"] == 1
    make("completed")
    assert report_figures.standing().ended["completed"] == 1


def test_where_counting_takes_too_long_it_is_left_out_for_a_while():
    with mock.patch("renders.reports.figures._count_ended", side_effect=DatabaseError) as count:
        assert report_figures.standing().ended is None
        assert report_figures.standing().ended is None

    assert count.call_count == 1


def test_a_cache_that_is_away_takes_away_no_more_than_that():
    make()
    with mock.patch("renders.reports.figures.cache.get", side_effect=ConnectionError):
        found = report_figures.standing()

    assert found.ended is None and found.jobs == {("default", "pending", "image"): 1}


def test_no_statement_of_a_scrape_takes_long():
    from django.db import connection

    if connection.vendor != "postgresql":
        pytest.skip("Only PostgreSQL can be told so.")
    with pytest.raises(DatabaseError), report_figures._at_most(0.05), connection.cursor() as cursor:
        cursor.execute("SELECT pg_sleep(5)")
    with connection.cursor() as cursor:
        cursor.execute("SELECT current_setting('statement_timeout')")
        assert cursor.fetchone() == ("0",)


# --- In time ------------------------------------------------------------------------------


def test_an_answer_in_time_is_given():
    assert report_figures.within(5, lambda: "figures") == "figures"


def test_what_the_database_raises_is_raised():
    with pytest.raises(DatabaseError, match="gone"):
        report_figures.within(5, mock.Mock(side_effect=DatabaseError("gone")))
    assert report_figures.within(5, lambda: "figures") == "figures"


def test_a_server_that_is_gone_without_a_word_does_not_end_scrapes_for_ever(monkeypatch):
    monkeypatch.setattr(type(connections["default"]), "vendor", "postgresql")

    options = report_figures.within(5, lambda: connections["default"].settings_dict["OPTIONS"])

    assert options["tcp_user_timeout"] <= 10_000 and options["connect_timeout"] <= 5


def test_without_a_thread_to_spare_this_scrape_fails_and_the_next_does_not():
    none = mock.patch("threading.Thread.start", side_effect=RuntimeError("can't start new thread"))
    with none, pytest.raises(DatabaseError, match="No thread"):
        report_figures.within(5, lambda: "figures")

    assert report_figures.within(0.5, lambda: "figures") == "figures"


def test_a_database_that_says_nothing_is_not_waited_for():
    answers = threading.Event()
    for _ in range(2):  # the second finds the first one waiting
        began = time.monotonic()
        with pytest.raises(DatabaseError, match="in time"):
            report_figures.within(0.05, lambda: answers.wait(10))
        assert time.monotonic() - began < 5
    answers.set()

    assert report_figures.within(5, lambda: "figures") == "figures"
