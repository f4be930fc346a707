"""The sorted set in a real Redis, and the queue that hands its renders to readers."""

import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID, uuid4

import pytest
from django.db import OperationalError
from django.utils import timezone

from renders import tasks
from renders.conf import conf
from renders.coordination.connections import poll_leases, redis_client
from renders.coordination.due_set import SortedSet
from renders.demo.embedded_redis import EmbeddedRedis
from renders.models import RenderJob
from renders.schedulers import due_set_upkeep
from renders.schedulers.queues import SetQueue
from tests.integration.modes import DatabaseAway

NOW = 1_900_000_000.0
LEASE = 45.0
ON_ONE_DATABASE = pytest.mark.parametrize("database", ["postgresql"], indirect=True)


@pytest.fixture
def polls(redis: EmbeddedRedis, settings: Any) -> SortedSet:
    settings.RENDERS = {**settings.RENDERS, "SCHEDULER": "sortedset"}
    return SortedSet(redis_client())


def due_times(polls: SortedSet) -> dict[UUID, float]:
    """All of the set."""
    return polls.due_by(NOW * 2, 1_000_000)


# --- The set ------------------------------------------------------------------------------


def test_of_many_who_take_at_once_each_render_goes_to_one(polls: SortedSet) -> None:
    ids = [uuid4() for _ in range(500)]
    polls.add(dict.fromkeys(ids, NOW - 1))

    def take(_: int) -> list[UUID]:
        return [pk for _ in range(10) for pk in polls.take(NOW, 7, LEASE).ids]

    with ThreadPoolExecutor(8) as pool:
        taken = Counter(pk for found in pool.map(take, range(8)) for pk in found)

    assert taken == Counter(ids)


def test_what_is_due_first_is_taken_first_and_what_is_not_due_stays(polls: SortedSet) -> None:
    first, second, later = uuid4(), uuid4(), uuid4()
    polls.add({second: NOW - 1, later: NOW + 1, first: NOW - 2})
    assert polls.take(NOW, 1, LEASE).ids == [first]
    taken = polls.take(NOW, 10, LEASE)
    assert (taken.ids, taken.next_due) == ([second], NOW + 1)


def test_what_was_taken_and_never_settled_is_due_again_when_the_lease_is_over(
    polls: SortedSet,
) -> None:
    pk = uuid4()
    polls.add({pk: NOW})
    taken = polls.take(NOW, 10, LEASE)
    assert taken.lease_ends == taken.next_due == NOW + LEASE
    assert polls.take(NOW + LEASE - 0.001, 10, LEASE).ids == []
    assert polls.take(NOW + LEASE, 10, LEASE).ids == [pk]


def test_settling_names_the_next_time_or_removes(polls: SortedSet) -> None:
    goes_on, ends = uuid4(), uuid4()
    polls.add({goes_on: NOW, ends: NOW})
    lease_ends = polls.take(NOW, 10, LEASE).lease_ends
    polls.settle([(goes_on, lease_ends, NOW + 300), (ends, lease_ends, None)])
    assert due_times(polls) == {goes_on: NOW + 300}


def test_settling_keeps_an_earlier_time_that_was_asked_for_meanwhile(polls: SortedSet) -> None:
    pk = uuid4()
    polls.add({pk: NOW})
    lease_ends = polls.take(NOW, 10, LEASE).lease_ends
    polls.add({pk: NOW + 1})
    polls.settle([(pk, lease_ends, NOW + 5)])
    assert due_times(polls) == {pk: NOW + 1}


def test_a_late_reader_does_not_forget_a_render_that_somebody_else_reads_now(
    polls: SortedSet,
) -> None:
    """Its lease ran out; what it learned counts no more, so for it the render is over."""
    pk = uuid4()
    polls.add({pk: NOW})
    late = polls.take(NOW, 10, LEASE).lease_ends
    other = polls.take(late, 10, LEASE).lease_ends
    polls.settle([(pk, late, None)])
    assert due_times(polls) == {pk: other}
    polls.settle([(pk, other, other + 10)])
    polls.settle([(pk, late, None)])
    assert due_times(polls) == {pk: other + 10}


def test_asking_never_makes_a_read_later_and_what_is_missing_comes_back(polls: SortedSet) -> None:
    known, lost = uuid4(), uuid4()
    polls.add({known: NOW})
    polls.add({known: NOW + 10})
    assert polls.add_missing({known: NOW + 20, lost: NOW + 30}) == 1
    assert due_times(polls) == {known: NOW, lost: NOW + 30}


def test_as_many_as_lua_can_unpack_are_taken_at_once(polls: SortedSet) -> None:
    polls.add({uuid4(): NOW for _ in range(2500)})
    assert [len(polls.take(NOW, 5000, LEASE).ids) for _ in range(4)] == [1000, 1000, 500, 0]


def test_the_sets_scripts_survive_a_restart_of_redis(
    polls: SortedSet, redis: EmbeddedRedis
) -> None:
    pk = uuid4()
    polls.add({pk: NOW})
    polls.take(NOW, 1, LEASE)
    redis.restart()
    polls.add({pk: NOW})
    taken = polls.take(NOW, 1, LEASE)
    polls.settle([(pk, taken.lease_ends, None)])
    assert taken.ids == [pk]
    assert len(polls) == 0


# --- The queue ----------------------------------------------------------------------------


def submitted(count: int, due: datetime) -> list[RenderJob]:
    """Rows with Sume, whose next read is at that time."""
    rows = [
        RenderJob(
            prompt="a red fox",
            status="submitted",
            sume_job_id=f"job_{uuid4().hex}",
            submitted_at=timezone.now(),
            next_poll_at=due,
        )
        for _ in range(count)
    ]
    return RenderJob.objects.bulk_create(rows, batch_size=1000)


@pytest.fixture
def queue(polls: SortedSet) -> SetQueue:
    return SetQueue(polls, poll_leases())


@ON_ONE_DATABASE
def test_an_ended_render_leaves_the_set_and_one_that_is_not_due_waits(
    database: str, polls: SortedSet, queue: SetQueue
) -> None:
    soon = timezone.now() + timedelta(seconds=60)
    [early] = submitted(1, soon)
    polls.add({early.pk: time.time(), uuid4(): time.time()})
    assert queue.take(10) == []
    assert due_times(polls) == {early.pk: pytest.approx(soon.timestamp(), abs=0.001)}


@ON_ONE_DATABASE
def test_a_render_that_a_dead_reader_held_is_free_the_moment_its_lease_is_over(
    database: str, polls: SortedSet, queue: SetQueue, settings: Any
) -> None:
    """Whoever takes it from the set then must not find the dead one's token in its way."""
    settings.RENDERS = {
        **settings.RENDERS,
        "REQUEST_TIMEOUT_SECONDS": 0.3,
        "LEASE_MARGIN_SECONDS": 0.2,
    }
    rows = submitted(50, timezone.now())
    polls.add({row.pk: row.next_poll_at.timestamp() for row in rows})
    held = queue.take(50)
    assert len(held) == 50
    ends = held[0].lease_ends or 0.0
    while time.time() < ends:
        time.sleep(0.001)
    assert len(SetQueue(polls, poll_leases()).take(50)) == 50


@ON_ONE_DATABASE
def test_a_render_that_a_chain_of_messages_reads_is_left_to_it(
    database: str, polls: SortedSet, queue: SetQueue
) -> None:
    reads, waits, asked = submitted(3, timezone.now())
    RenderJob.objects.filter(pk=asked.pk).update(asked_at=timezone.now())
    for row in (reads, waits, asked):
        token = poll_leases().acquire(str(row.pk), 60)
        assert token
        if row is not reads:
            poll_leases().hand_on(str(row.pk), token, 60)
    polls.add({row.pk: time.time() for row in (reads, waits, asked)})
    assert [held.render.pk for held in queue.take(10)] == [asked.pk]
    assert len(polls) == 3


@ON_ONE_DATABASE
def test_what_is_given_back_is_due_again_and_free(
    database: str, polls: SortedSet, queue: SetQueue
) -> None:
    [row] = submitted(1, timezone.now())
    polls.add({row.pk: time.time()})
    queue.give_back(queue.take(10), 0.0)
    assert [held.render.pk for held in SetQueue(polls, poll_leases()).take(10)] == [row.pk]


@ON_ONE_DATABASE
def test_while_redis_is_away_the_table_says_what_is_due_and_each_is_taken_once(
    database: str, polls: SortedSet, queue: SetQueue, redis: EmbeddedRedis, caplog: Any
) -> None:
    rows = submitted(3, timezone.now())
    redis.halt()
    taken = [held for _ in range(2) for held in (queue.take(2), queue.take(2))]
    assert sorted(len(held) for held in taken) == [0, 0, 1, 2]
    assert {one.render.pk for held in taken for one in held} == {row.pk for row in rows}
    assert "the database says what is due" in caplog.text


@ON_ONE_DATABASE
def test_what_is_taken_while_the_database_is_away_is_due_again_in_a_moment(
    database: str, polls: SortedSet, queue: SetQueue, settings: Any
) -> None:
    settings.RENDERS = {**settings.RENDERS, "LEASE_MARGIN_SECONDS": 600}
    rows = submitted(3, timezone.now())
    polls.add({row.pk: time.time() for row in rows})
    with DatabaseAway(), pytest.raises(OperationalError):
        queue.take(10)
    assert len(due_times(polls)) == 3
    assert max(due_times(polls).values()) < time.time() + 5


# --- The sweep ----------------------------------------------------------------------------


@pytest.mark.slow
@ON_ONE_DATABASE
def test_after_redis_was_emptied_one_sweep_puts_all_of_10_000_back_and_none_is_read_early(
    database: str, polls: SortedSet, queue: SetQueue, settings: Any
) -> None:
    settings.RENDERS = {**settings.RENDERS, "TICKS": 0}
    due = timezone.now() + timedelta(seconds=60)
    rows = submitted(10_000, due)
    tasks.sweep_renders()
    assert len(polls) == len(rows)
    redis_client().flushall()

    tasks.sweep_renders()

    assert set(due_times(polls)) == {row.pk for row in rows}
    assert set(due_times(polls).values()) == {due.timestamp()}
    assert queue.take(1000) == []


@ON_ONE_DATABASE
def test_keeping_the_set_drops_what_has_ended_and_warns_of_what_nobody_reads(
    database: str, polls: SortedSet, caplog: Any
) -> None:
    [row] = submitted(1, timezone.now())
    long_ago = time.time() - 2 * conf.grace_seconds
    polls.note_whole(60)
    polls.add({row.pk: long_ago, uuid4(): long_ago})
    due_set_upkeep.keep(polls)
    assert set(due_times(polls)) == {row.pk}
    assert "1 reads are late by more than 2.5 s. Does `pollrenders`" in caplog.text
