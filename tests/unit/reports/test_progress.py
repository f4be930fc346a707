"""How far a render is, without a promise."""

from datetime import timedelta

import pytest
from django.core.cache import cache
from django.utils import timezone

from renders import transitions
from renders.reports.progress import progress_of, usual_span
from renders.services import cancel_render, create_render, pause_sending
from renders.states import Status

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def _empty_cache():
    cache.clear()


def made(took, kind="image", status=Status.COMPLETED):
    row = create_render("A boat", kind=kind)
    then = timezone.now() - timedelta(hours=1)
    transitions.claim(row.pk, then, "default")
    transitions.record_submitted(
        row.pk, then, job_id="j", sume_status="", hit=False, next_poll_at=then
    )
    if status != Status.SUBMITTED:
        end = then + timedelta(seconds=took)
        transitions.end(row.pk, 0, end, status, sume_status="")
    row.refresh_from_db()
    return row


def test_the_usual_time_is_the_median_of_the_same_kind(monkeypatch):
    for took in (30, 40, 500):
        made(took)
    made(7, kind="video")
    made(1, status=Status.FAILED)

    assert usual_span("image") == timedelta(seconds=40)


def test_from_too_few_nothing_is_usual():
    made(30)
    made(40)

    assert usual_span("image") is None
    assert progress_of(made(0, status=Status.SUBMITTED)).is_late is False


def test_the_usual_time_is_asked_for_once_a_minute(django_assert_num_queries):
    with django_assert_num_queries(1):
        usual_span("image")
        usual_span("image")


def test_longer_than_usual_is_late():
    for _ in range(3):
        made(30)
    progress = progress_of(made(0, status=Status.SUBMITTED))

    assert progress.is_late
    assert progress.usual == timedelta(seconds=30)


def test_the_place_in_the_line_goes_by_priority_and_age():
    create_render("Older")
    row = create_render("This")
    create_render("Younger")
    create_render("Urgent", priority=5)

    assert progress_of(row).before == 2


def test_the_place_in_the_line_follows_the_turns(django_user_model):
    ada, bob = (django_user_model.objects.create(username=name) for name in ("ada", "bob"))
    for _ in range(5):
        create_render("Many", user=ada)

    assert progress_of(create_render("One", user=bob)).before == 1


def test_what_has_ended_has_no_progress():
    row = create_render("A boat")
    cancel_render(row)

    assert progress_of(row) is None


def test_while_sending_is_paused_nothing_is_promised():
    row = create_render("A boat")
    assert progress_of(row).paused is False

    pause_sending("default")

    assert progress_of(row).paused is True
    assert progress_of(made(0, status=Status.SUBMITTED)).paused is False
