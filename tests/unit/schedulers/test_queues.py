"""Where readers find what is due: the table, and the sorted set with the table behind it."""

import logging
import time
import uuid
from datetime import timedelta

import pytest
from django.utils import timezone

from renders.models import RenderJob
from renders.models.querysets import RenderQuerySet
from renders.schedulers import queues
from renders.schedulers.queues import FIELDS, LeasedRender, SetQueue, TableQueue
from renders.states import Status
from tests.rows import stored
from tests.unit.fakes import FakeLeases, FakeSet

pytestmark = pytest.mark.django_db
GRACE = 2.5  # of the tests' settings


def submitted(seconds=-1.0, **fields):
    """With its read due in so many seconds."""
    due_at = timezone.now() + timedelta(seconds=seconds)
    return stored(Status.SUBMITTED, next_poll_at=due_at, **fields)


def pks(held):
    return [one.render.pk for one in held]


# --- The table ----------------------------------------------------------------------------


def test_the_table_gives_what_is_due_to_one_reader():
    render = submitted()
    first, second = TableQueue(), TableQueue()

    [held] = first.take(10)

    assert held.render == render
    assert (held.lease_ends, held.token) == (None, None)
    assert second.take(10) == []


def test_the_table_tells_when_the_next_read_is_due():
    queue = TableQueue()
    assert queue.next_due is None

    later, sooner = submitted(60), submitted(30)
    assert queue.take(10) == []
    assert queue.next_due == sooner.next_poll_at.timestamp()

    submitted()
    queue.take(1)
    assert queue.next_due <= time.time()  # there may be more: look again at once

    RenderJob.objects.filter(pk__in=[later.pk, sooner.pk]).delete()
    queue.take(10)
    assert queue.next_due is None


def test_a_read_needs_no_more_of_the_row_than_is_loaded():
    [held] = (submitted(), *TableQueue().take(1))[1:]

    assert held.render.get_deferred_fields().isdisjoint(FIELDS)
    assert {"prompt", "params", "request_body"} <= held.render.get_deferred_fields()


def test_what_is_given_back_is_free_for_others():
    submitted()
    queue = TableQueue()
    held = queue.take(10)

    queue.give_back(held, 5)

    assert pks(TableQueue().take(10)) == pks(held)


def test_what_was_taken_at_different_times_is_given_back_together():
    queue = TableQueue()
    submitted()
    held = queue.take(10)
    submitted()
    held += queue.take(10)

    queue.give_back([*held, LeasedRender(submitted())], 5)

    assert len(TableQueue().take(10)) == 3


def test_settling_asks_nothing_of_the_database(django_assert_num_queries):
    held = [LeasedRender(submitted())]

    with django_assert_num_queries(0):
        TableQueue().settle([(held[0], 5)])


# --- The sorted set -------------------------------------------------------------------------


@pytest.fixture
def polls():
    return FakeSet()


@pytest.fixture
def leases():
    return FakeLeases()


@pytest.fixture
def queue(polls, leases):
    return SetQueue(polls, leases)


def put(polls, *renders):
    polls.add({render.pk: render.next_poll_at.timestamp() for render in renders})


def test_the_set_gives_what_is_due_under_a_lease(queue, polls, leases):
    render, later = submitted(), submitted(60)
    put(polls, render, later)

    [held] = queue.take(10)

    assert held.render == render
    assert held.token == leases.tokens[str(render.pk)]
    assert polls.due[render.pk] == held.lease_ends > time.time() + GRACE - 1
    assert queue.next_due == held.lease_ends


def test_the_lease_is_over_before_the_set_gives_the_render_to_the_next_reader(
    queue, polls, leases, monkeypatch
):
    """Else that one would find a dead reader's lease, and wait once more as long."""
    render = submitted()
    put(polls, render)
    filter_ = RenderQuerySet.filter

    def slow(self, *args, **kwargs):
        time.sleep(0.05)  # between the set and the lease
        return filter_(self, *args, **kwargs)

    monkeypatch.setattr(RenderQuerySet, "filter", slow)

    [held] = queue.take(10)

    assert time.time() + leases.lives[str(render.pk)] < held.lease_ends


def test_what_is_not_due_by_the_table_is_put_right_in_the_set(queue, polls, leases):
    early = submitted(60)
    polls.add({early.pk: time.time() - 5})

    assert queue.take(10) == []

    assert polls.due[early.pk] == early.next_poll_at.timestamp()
    assert leases.tokens == {}


@pytest.mark.parametrize("status", [Status.PENDING, Status.COMPLETED, None])
def test_what_sume_does_not_hold_leaves_the_set(queue, polls, status):
    pk = stored(status).pk if status else uuid.uuid4()
    polls.add({pk: time.time() - 5})

    assert queue.take(10) == []

    assert polls.due == {}


@pytest.mark.parametrize("does", ["r", "w"], ids=["that reads", "that waits"])
def test_what_a_chain_of_messages_has_is_left_to_it(queue, polls, leases, does):
    render = submitted()
    put(polls, render)
    leases.tokens[str(render.pk)] = f"{does}-of-a-chain"

    assert queue.take(10) == []

    assert leases.tokens[str(render.pk)] == f"{does}-of-a-chain"
    assert polls.due[render.pk] > time.time()  # looked at again when the lease here is over


def test_what_was_taken_from_the_table_meanwhile_is_not_read_from_the_set_too(queue, polls):
    render = submitted(taken_at=timezone.now())
    put(polls, render)

    assert queue.take(10) == []
    assert polls.due.keys() == {render.pk}


@pytest.mark.parametrize(("does", "read"), [("w", True), ("r", False)])
def test_a_read_at_once_overtakes_a_chain_that_waits_and_none_that_reads(
    queue, polls, leases, does, read
):
    render = submitted(asked_at=timezone.now())
    put(polls, render)
    leases.tokens[str(render.pk)] = f"{does}-of-a-chain"

    held = queue.take(10)

    assert pks(held) == ([render.pk] if read else [])
    assert (leases.tokens[str(render.pk)] == f"{does}-of-a-chain") is not read


def test_what_was_read_is_due_in_its_time_or_no_more_and_its_lease_is_free(queue, polls, leases):
    going, ended = submitted(), submitted()
    put(polls, going, ended)
    held = {one.render: one for one in queue.take(10)}
    before = time.time()

    queue.settle([(held[going], 5.0), (held[ended], None)])

    assert before + 5 <= polls.due.pop(going.pk) <= time.time() + 5
    assert polls.due == {}
    assert leases.tokens == {}


def test_a_reader_that_comes_too_late_takes_nothing_from_the_next(queue, polls, leases):
    render = submitted()
    put(polls, render)
    [late] = queue.take(10)
    # It stalled: its leases were over, and somebody else took the render.
    polls.due[render.pk] += 100
    leases.tokens[str(render.pk)] = "r-of-the-next"

    queue.settle([(late, None)])

    assert render.pk in polls.due
    assert leases.tokens[str(render.pk)] == "r-of-the-next"


def test_what_is_given_back_to_the_set_is_due_in_so_many_seconds(queue, polls, leases):
    render = submitted()
    put(polls, render)
    before = time.time()

    queue.give_back(queue.take(10), 3)

    assert before + 3 <= polls.due[render.pk] <= time.time() + 3
    assert leases.tokens == {}


def test_an_empty_set_asks_nothing_of_the_database(queue, django_assert_num_queries):
    with django_assert_num_queries(0):
        assert queue.take(10) == []
    assert queue.next_due is None


# --- Redis away -----------------------------------------------------------------------------


def test_without_redis_the_table_says_what_is_due(queue, polls, leases, caplog):
    render, later = submitted(), submitted(60)
    polls.away = leases.away = True

    with caplog.at_level(logging.WARNING):
        held = queue.take(10)

    assert pks(held) == [render.pk]
    assert queue.next_due == later.next_poll_at.timestamp()
    assert caplog.messages == [
        "Redis unreachable (ConnectionError): the database says what is due."
    ]
    queue.settle([(held[0], 5.0)])
    assert caplog.messages[1:] == [
        "Redis unreachable (ConnectionError): the sweep puts back what the set does not know."
    ]


def test_redis_that_goes_away_between_set_and_lease_is_no_loss(queue, polls, leases):
    render = submitted()
    put(polls, render)
    leases.away = True

    assert pks(queue.take(10)) == [render.pk]


def test_an_outage_is_not_asked_about_at_each_look(queue, polls, monkeypatch):
    now = 1000.0
    monkeypatch.setattr(queues.time, "monotonic", lambda: now)
    set_idle = queue.idle_seconds
    polls.away = True
    for _ in range(5):
        queue.take(10)
    assert polls.calls == 1
    assert queue.idle_seconds == TableQueue.idle_seconds

    polls.away, now = False, now + queues.REST_SECONDS
    queue.take(10)
    assert polls.calls == 2
    assert queue.idle_seconds == set_idle


def test_what_the_table_gave_comes_into_the_set_when_redis_is_back(queue, polls):
    render = submitted()
    polls.away = True
    held = queue.take(10)
    polls.away = False

    queue.settle([(held[0], 5.0)])

    assert render.pk in polls.due


def test_what_the_table_gave_is_given_back_to_both(queue, polls):
    render = submitted()
    polls.away = True
    held = queue.take(10)
    polls.away = False

    queue.give_back(held, 3)

    assert pks(TableQueue().take(10)) == [render.pk]
    assert render.pk in polls.due
