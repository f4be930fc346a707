"""A read at once: whom it is asked for, when it comes, and that a flood is one read."""

import uuid
from datetime import timedelta

import pytest
from django.utils import timezone

from renders import services, transitions
from renders.lifecycle import read_now
from renders.lifecycle.steps import Step
from renders.models import RenderJob
from renders.states import Status
from tests.rows import NOW, a_render, stored

pytestmark = pytest.mark.django_db
MOMENT, GRACE = 1.0, 45.0


@pytest.fixture(autouse=True)
def short_times(settings, monkeypatch):
    monkeypatch.setattr("renders.lifecycle.read_now.timezone.now", lambda: NOW)
    settings.RENDERS = {
        **settings.RENDERS,
        "MIN_POLL_SECONDS": MOMENT,
        "REQUEST_TIMEOUT_SECONDS": 30,
        "LEASE_MARGIN_SECONDS": 15,
    }


def at(seconds):
    return NOW + timedelta(seconds=seconds)


# next read due, last read, swept: when it is read now, and by a message after so many seconds
CASES = {
    "never read": ((90, None, None), (0, 0)),
    "read long ago": ((90, -5, None), (0, 0)),
    "read just now": ((90, -0.5, None), (MOMENT, MOMENT)),
    "read just now, due soon": ((0.4, -0.5, None), (0.4, None)),
    "due, its message is on its way": ((-0.5, -5, None), (-0.5, None)),
    "late": ((-10, -20, None), (-10, 0)),
    "late, put back by the sweep": ((-10, -20, -5), (-10, None)),
    "late, put back long ago": ((-100, -120, -50), (-100, 0)),
}


@pytest.mark.parametrize(("times", "expected"), CASES.values(), ids=CASES)
def test_a_read_is_brought_forward_but_never_comes_at_once_after_another(times, expected):
    due, last, swept = (None if seconds is None else at(seconds) for seconds in times)
    render = stored(Status.SUBMITTED, next_poll_at=due, last_polled_at=last, swept_at=swept)

    count, steps = read_now.ask([render.pk])

    render.refresh_from_db()
    next_due, after = expected
    assert count == 1
    assert render.asked_at == NOW
    assert render.next_poll_at == at(next_due)
    assert steps == ([] if after is None else [Step("poll", render.pk, after)])


def test_by_the_table_alone_who_asks_does_not_keep_readers_away(settings):
    """There a row that was swept lately is one that somebody reads just now."""
    settings.RENDERS = {**settings.RENDERS, "SCHEDULER": "database"}
    render = stored(Status.SUBMITTED, next_poll_at=at(-10), last_polled_at=at(-20))

    read_now.ask([render.pk])

    assert [row.pk for row in transitions.take_due(RenderJob.objects.all(), NOW, GRACE, 10)] == [
        render.pk
    ]


@pytest.mark.parametrize("status", [s for s in Status if s != Status.SUBMITTED])
def test_only_what_sume_holds_is_read(status):
    render = stored(status)
    before = RenderJob.objects.values().get()

    assert read_now.ask([render.pk, uuid.uuid4()]) == (0, [])
    assert RenderJob.objects.values().get() == before


def test_however_many_ask_a_message_or_two_go_out(monkeypatch):
    render = stored(Status.SUBMITTED, next_poll_at=at(90), last_polled_at=at(-0.5))
    steps = []
    moments = iter([at(tenth / 10) for tenth in range(10)])
    monkeypatch.setattr("renders.lifecycle.read_now.timezone.now", lambda: next(moments))
    for _ in range(10):
        steps += read_now.ask([render.pk])[1]

    assert steps == [Step("poll", render.pk, MOMENT), Step("poll", render.pk)]
    assert RenderJob.objects.get().next_poll_at == at(0.5)  # a moment after the last read


def test_thousands_are_asked_for_in_batches(followed, django_capture_on_commit_callbacks):
    RenderJob.objects.bulk_create(
        [a_render(Status.SUBMITTED, next_poll_at=at(90)) for _ in range(1_100)]
        + [a_render(Status.PENDING)]
    )
    pks = RenderJob.objects.values_list("pk", flat=True)

    with django_capture_on_commit_callbacks(execute=True) as commits:
        assert services.check_now(iter(pks)) == 1_100

    assert len(commits) == 3
    assert len({step.render_id for step in followed}) == len(followed) == 1_100


def test_nothing_to_ask_for_is_fine(followed):
    assert services.check_now([]) == 0
    assert followed == []


def test_a_row_that_was_asked_for_is_found_until_it_is_read():
    render = stored(Status.SUBMITTED, next_poll_at=at(90))
    read_now.ask([render.pk])
    assert RenderJob.objects.asked().get() == render

    transitions.end(render.pk, 0, timezone.now(), Status.COMPLETED, sume_status="completed")
    assert not RenderJob.objects.asked().exists()
    render.refresh_from_db()
    assert render.asked_at is None
