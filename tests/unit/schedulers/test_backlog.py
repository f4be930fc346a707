"""What a runner finds in the table: left undone, or made by a web process."""

from datetime import timedelta

import pytest
from django.utils import timezone

from renders import transitions
from renders.lifecycle.steps import Step
from renders.models import Gate
from renders.schedulers import runner
from renders.states import CANCELING, RequestType, Status
from tests.rows import stored

pytestmark = pytest.mark.django_db
GRACE = 2.5  # of the tests' settings


@pytest.fixture(autouse=True)
def no_redis_at_all(settings):
    settings.RENDERS = {**settings.RENDERS, "SCHEDULER": "database"}


def ago(seconds):
    return timezone.now() - timedelta(seconds=seconds)


def found(*starting):
    return runner.find(starting=starting)


def test_an_empty_table_holds_nothing_to_do():
    assert found() == []


def test_the_line_is_set_going_by_its_first():
    stored()
    first = stored(priority=1)

    assert found() == [Step("submit", first.pk)]
    assert found(first.pk) == []


@pytest.mark.parametrize(
    "fields",
    [{"held_at": timezone.now()}, {"not_before": timezone.now() + timedelta(hours=1)}],
    ids=["held", "not yet"],
)
def test_what_may_not_be_sent_now_waits(fields):
    stored(**fields)

    assert found() == []


def test_behind_a_closed_gate_nothing_is_sent():
    stored()
    Gate.objects.create(key=RequestType.WRITES, paused_until=ago(-60))

    assert found() == []


def test_what_ended_and_was_left_is_finished_by_one():
    left = stored(Status.COMPLETED, next_poll_at=ago(runner.LEFT_SECONDS + 1))
    stored(Status.COMPLETED, next_poll_at=ago(runner.LEFT_SECONDS - 1))  # who ended it is at it
    stored(Status.COMPLETED, next_poll_at=None, handled_at=timezone.now())

    assert found() == [Step("finish", left.pk)]
    assert found() == []


def test_who_began_to_finish_and_died_is_followed_by_another():
    left = stored(Status.COMPLETED, next_poll_at=ago(60), swept_at=ago(GRACE + 1))
    stored(Status.COMPLETED, next_poll_at=ago(60), swept_at=ago(GRACE - 1))

    assert found() == [Step("finish", left.pk)]


def test_the_longest_left_come_first_and_so_many_at_once(monkeypatch):
    monkeypatch.setattr(runner, "BATCH", 2)
    renders = [stored(Status.COMPLETED, next_poll_at=ago(age)) for age in (10, 30, 20)]

    assert [step.render_id for step in found()] == [renders[1].pk, renders[2].pk]
    assert [step.render_id for step in found()] == [renders[0].pk]


def test_a_cancel_that_nobody_asked_sume_for_is_asked_for():
    wanted = stored(Status.SUBMITTED, cancel_requested_at=timezone.now())
    stored(Status.SUBMITTED, cancel_requested_at=ago(9), cancel_answered_at=ago(1))
    stored(Status.SUBMITTED)
    stored(Status.COMPLETED, next_poll_at=None, cancel_requested_at=ago(9))

    assert found() == [Step("cancel", wanted.pk)]


def test_a_cancel_that_somebody_asked_for_lately_waits_for_its_answer():
    wanted = stored(Status.SUBMITTED, cancel_requested_at=timezone.now())
    transitions.log(wanted.pk, CANCELING)
    assert found() == []

    wanted.events.update(at=ago(GRACE + 1))
    assert found() == [Step("cancel", wanted.pk)]


def test_a_cancel_is_given_to_one_process_only():
    wanted = stored(Status.SUBMITTED, cancel_requested_at=timezone.now())

    assert found() == [Step("cancel", wanted.pk)]
    assert found() == []


def test_no_cancel_is_begun_where_no_post_is_left(settings):
    settings.RENDERS = {**settings.RENDERS, "WRITES_PER_MINUTE": 1}
    stored(Status.SUBMITTED, cancel_requested_at=timezone.now())
    transitions.log(stored(Status.COMPLETED, next_poll_at=None).pk, "sending")

    assert found() == []


def test_cancels_that_cannot_be_asked_for_hold_up_no_other_workspace():
    wanted = stored(Status.SUBMITTED, cancel_requested_at=ago(9), created_at=ago(99))
    for _ in range(runner.BATCH):  # of a workspace that was taken out of the settings
        stored(Status.SUBMITTED, cancel_requested_at=ago(9), workspace="gone")

    assert found() == [Step("cancel", wanted.pk)]


def test_reads_are_none_of_its_business():
    stored(Status.SUBMITTED, next_poll_at=ago(3600))

    assert found() == []
