"""The sorted set is kept true to the table, and emptied where it is not used any more."""

import logging
import time
import uuid
from datetime import timedelta

import pytest
from django.utils import timezone

from renders.lifecycle.steps import Step
from renders.models import Gate
from renders.schedulers import due_set_upkeep
from renders.states import RequestType, Status
from tests.rows import stored
from tests.unit.fakes import FakeSet

pytestmark = pytest.mark.django_db
GRACE = 2.5  # of the tests' settings
LATE = (
    "{} reads are late by more than 2.5 s. Does `pollrenders` or a worker of the queue "
    "renders.poll run?"
)


def submitted(seconds):
    due = timezone.now() + timedelta(seconds=seconds)
    return stored(Status.SUBMITTED, next_poll_at=due)


def told(caplog):
    return [
        record.getMessage()
        for record in caplog.records
        if record.name == "renders.schedulers.due_set_upkeep"
    ]


# --- Kept true ----------------------------------------------------------------------------


def test_an_emptied_set_gets_back_all_that_sume_holds(monkeypatch, caplog):
    monkeypatch.setattr(due_set_upkeep, "CHUNK", 2)
    renders = [submitted(seconds) for seconds in (5, -1, 60, 0, 7)]
    for status in set(Status) - {Status.SUBMITTED}:
        stored(status)
    polls = FakeSet()
    polls.whole = False

    due_set_upkeep.keep(polls)

    assert polls.due == {render.pk: render.next_poll_at.timestamp() for render in renders}
    assert polls.whole
    assert told(caplog) == ["Sweep puts 5 renders back into the sorted set."]


def test_what_is_in_the_set_keeps_its_time(caplog):
    render = submitted(5)
    polls = FakeSet({render.pk: 1e12})
    polls.whole = False

    due_set_upkeep.keep(polls)

    assert polls.due == {render.pk: 1e12}
    assert told(caplog) == []


def test_a_whole_set_is_counted_and_not_compared_again(django_assert_num_queries):
    submitted(5)

    with django_assert_num_queries(1):
        due_set_upkeep.keep(polls := FakeSet())

    assert polls.due == {}


def test_where_more_is_missing_than_a_sweep_puts_back_a_whole_set_is_compared(settings):
    settings.RENDERS = {**settings.RENDERS, "SWEEP_BATCH": 2}
    renders = [submitted(5) for _ in range(3)]

    due_set_upkeep.keep(polls := FakeSet())

    assert polls.due.keys() == {render.pk for render in renders}


def test_what_ended_is_dropped_when_it_is_late_and_what_runs_stays(caplog):
    ended, running = stored(Status.COMPLETED), submitted(-60)
    late = time.time() - GRACE - 1
    in_time = time.time() - GRACE + 1
    polls = FakeSet({ended.pk: late, running.pk: late, (gone := uuid.uuid4()): late})
    polls.due[fresh := uuid.uuid4()] = in_time

    due_set_upkeep.keep(polls)

    assert polls.due == {running.pk: late, fresh: in_time}
    assert gone not in polls.due
    assert told(caplog) == [LATE.format(1)]


def test_while_reads_pause_nobody_is_told_that_they_are_late(caplog):
    running = submitted(-60)
    Gate.objects.create(key=RequestType.READS, paused_until=timezone.now() + timedelta(hours=1))

    due_set_upkeep.keep(FakeSet({running.pk: time.time() - 60}))

    assert told(caplog) == []


# --- Emptied ------------------------------------------------------------------------------


def test_what_is_due_soon_is_handed_over_to_messages_and_leaves_the_set(settings, caplog):
    settings.RENDERS = {**settings.RENDERS, "SWEEP_SECONDS": 30}
    now = time.time()
    late, soon, far = (uuid.uuid4() for _ in range(3))
    polls = FakeSet({late: now - 5, soon: now + 50, far: now + 70})
    steps = []

    due_set_upkeep.drain(polls, steps.extend)

    assert polls.due == {far: now + 70}
    assert steps == [Step("poll", late), Step("poll", soon, pytest.approx(50, abs=1))]
    assert told(caplog) == ["Sweep hands 2 renders of the sorted set over to messages."]


def test_so_many_are_handed_over_at_once_the_earliest_first(monkeypatch):
    monkeypatch.setattr(due_set_upkeep, "MOST_DRAINED", 2)
    pks = [uuid.uuid4() for _ in range(3)]
    polls = FakeSet({pk: 3.0 - number for number, pk in enumerate(pks)})
    steps = []

    due_set_upkeep.drain(polls, steps.extend)

    assert [step.render_id for step in steps] == [pks[2], pks[1]]
    assert list(polls.due) == [pks[0]]


def test_an_empty_set_is_drained_without_a_word(caplog):
    with caplog.at_level(logging.INFO):
        due_set_upkeep.drain(FakeSet(), lambda steps: pytest.fail("Nothing is to follow."))

    assert told(caplog) == []
