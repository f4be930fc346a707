"""Transitions of reads, on the database that the tests run on."""

import uuid
from datetime import timedelta

import pytest
from django.db import connection, transaction
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from renders import transitions
from renders.models import RenderEvent, RenderJob
from renders.states import Status
from renders.transitions import PollUpdate
from tests.rows import NOW, a_render, stored

pytestmark = pytest.mark.django_db
RENDERS = RenderJob.objects
PATIENCE = 45.0


def at(seconds):
    return NOW + timedelta(seconds=seconds)


EARLIER, SOON, LATE = at(-60), at(5), at(60)


def heard(render, **changes):
    """A read of this row after which the job goes on."""
    told = {
        "pk": render.pk,
        "sequence": render.poll_count,
        "asked_at": render.asked_at,
        "next_poll_at": SOON,
        "sume_status": "processing",
        "failed_reads": 0,
        "not_found_since": None,
        "answered": True,
    }
    return PollUpdate(**told | changes)


def rows():
    return list(RENDERS.order_by("pk").values())


# --- Many at once as one at a time ----------------------------------------------------------

some_rows = st.fixed_dictionaries(
    {
        "status": st.sampled_from([Status.SUBMITTED] * 4 + [Status.COMPLETED, Status.PENDING]),
        "poll_count": st.integers(0, 2),
        "asked_at": st.sampled_from([None, EARLIER, NOW]),
        "swept_at": st.sampled_from([None, EARLIER]),
        "taken_at": st.sampled_from([None, EARLIER]),
        "failed_reads": st.integers(0, 1),
        "not_found_since": st.sampled_from([None, EARLIER]),
    }
)
some_reads = st.fixed_dictionaries(
    {
        "sequence": st.integers(0, 2),
        "asked_at": st.sampled_from([None, EARLIER, NOW]),
        "next_poll_at": st.sampled_from([SOON, LATE]),
        "sume_status": st.sampled_from(["", "queued", "é %s ' \" {}"]),
        "failed_reads": st.integers(0, 3),
        "not_found_since": st.sampled_from([None, EARLIER]),
        "answered": st.booleans(),
    }
)


@settings(
    deadline=None,
    database=None,
    max_examples=40,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(st.lists(st.tuples(some_rows, some_reads), max_size=6))
def test_many_reads_written_at_once_are_as_if_each_were_written_by_itself(pairs):
    with transaction.atomic():
        renders = [a_render(**{**_possible(row), **row}) for row, _ in pairs]
        RENDERS.bulk_create([*renders, a_render(Status.SUBMITTED)])
        told = [heard(render, **read) for render, (_, read) in zip(renders, pairs, strict=True)] + [
            heard(a_render(), pk=uuid.uuid4())
        ]

        with transaction.atomic():
            singly = {one.pk for one in told if transitions.record(one, NOW)}
            expected = rows()
            transaction.set_rollback(True)
        together = transitions.record_reads(told, NOW)

        assert together == singly
        assert rows() == expected
        transaction.set_rollback(True)


def _possible(row):
    ended = row["status"] == Status.COMPLETED
    sent = {"claimed_at": NOW, "sume_job_id": "job_1", "submitted_at": NOW, "next_poll_at": NOW}
    return sent | ({"finished_at": NOW} if ended else {})


def test_many_reads_are_one_statement_where_the_database_can(django_assert_max_num_queries):
    renders = [stored(Status.SUBMITTED) for _ in range(20)]
    told = [heard(render) for render in renders]

    with django_assert_max_num_queries(1 if connection.vendor == "postgresql" else 22):
        assert transitions.record_reads(told, NOW) == {render.pk for render in renders}


def test_no_reads_write_nothing():
    assert transitions.record_reads([], NOW) == set()


# --- Asked for meanwhile ----------------------------------------------------------------------


def test_a_read_serves_whoever_asked_before_it():
    render = stored(Status.SUBMITTED, asked_at=EARLIER)

    assert transitions.record(heard(render), NOW)

    render.refresh_from_db()
    assert render.asked_at is None


@pytest.mark.parametrize("before", [None, EARLIER], ids=["nobody before", "somebody before too"])
def test_a_read_with_an_answer_loses_where_somebody_asked_since_it_began(before):
    render = stored(Status.SUBMITTED, asked_at=before)
    transitions.ask([render.pk], NOW)
    unchanged = rows()

    assert not transitions.record(heard(render), NOW)
    assert transitions.record_reads([heard(render)], NOW) == set()

    assert rows() == unchanged


def test_one_without_an_answer_leaves_who_asked_waiting():
    render = stored(Status.SUBMITTED)
    transitions.ask([render.pk], NOW)

    assert transitions.record(heard(render, answered=False), NOW)

    render.refresh_from_db()
    assert (render.asked_at, render.poll_count) == (NOW, 1)


# --- Taken from the table ---------------------------------------------------------------------


def taken(now=NOW, limit=10):
    return [render.pk for render in transitions.take_due(RENDERS, now, PATIENCE, limit)]


def test_what_is_due_is_taken_by_one():
    due = stored(Status.SUBMITTED, next_poll_at=NOW)
    stored(Status.SUBMITTED, next_poll_at=at(0.001))
    for status in set(Status) - {Status.SUBMITTED}:
        stored(status)

    assert taken() == [due.pk]
    assert taken() == []


def test_the_earliest_are_taken_first_and_no_more_than_asked_for():
    later = stored(Status.SUBMITTED, next_poll_at=at(-1))
    sooner = stored(Status.SUBMITTED, next_poll_at=at(-2))
    soonest = stored(Status.SUBMITTED, next_poll_at=at(-3))

    assert set(taken(limit=2)) == {sooner.pk, soonest.pk}
    assert taken(limit=2) == [later.pk]


def test_what_was_taken_and_never_read_is_due_again_when_patience_is_over():
    render = stored(Status.SUBMITTED, next_poll_at=EARLIER)

    assert taken() == [render.pk]
    assert taken(at(PATIENCE)) == []
    assert taken(at(PATIENCE + 0.001)) == [render.pk]


def test_what_was_read_is_due_at_its_next_time_and_not_when_patience_is_over():
    render = stored(Status.SUBMITTED, next_poll_at=NOW)
    taken()
    transitions.record(heard(render), NOW)

    assert taken(at(4.9)) == []
    assert taken(SOON) == [render.pk]


def test_what_is_given_back_is_free_at_once_for_whoever_still_has_it():
    mine, others = (stored(Status.SUBMITTED, next_poll_at=EARLIER) for _ in range(2))
    assert set(taken()) == {mine.pk, others.pk}
    RENDERS.filter(pk=others.pk).update(taken_at=at(1))  # taken anew since

    assert transitions.give_back([mine.pk, others.pk], NOW) == 1

    assert taken(at(2)) == [mine.pk]


def test_whoever_asks_for_a_read_of_what_is_taken_gets_no_second_one_now():
    render = stored(Status.SUBMITTED, next_poll_at=NOW)
    taken()

    transitions.ask([render.pk], at(1))
    transitions.bring_forward([render.pk], at(1))

    assert taken(at(1)) == []


def test_what_is_brought_forward_is_free_though_it_was_swept():
    render = stored(Status.SUBMITTED, next_poll_at=LATE, swept_at=NOW)

    assert transitions.bring_forward([render.pk], at(1)) == 1
    assert transitions.bring_forward([render.pk], at(1)) == 0

    assert taken(at(1)) == [render.pk]


# --- Postponed --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("sequence", "known", "status"),
    [
        (1, NOW, Status.SUBMITTED),
        (0, SOON, Status.SUBMITTED),
        (0, NOW, Status.COMPLETED),
    ],
    ids=["read meanwhile", "moved meanwhile", "ended meanwhile"],
)
def test_a_read_is_postponed_only_where_nothing_happened_meanwhile(sequence, known, status):
    render = stored(status)
    before = rows()

    assert not transitions.postpone_read(render.pk, sequence, known, LATE)

    assert rows() == before


def test_a_postponed_read_counts_as_none():
    render = stored(Status.SUBMITTED, swept_at=EARLIER)

    assert transitions.postpone_read(render.pk, 0, NOW, LATE)

    render.refresh_from_db()
    assert (render.next_poll_at, render.poll_count, render.swept_at) == (LATE, 0, None)
    assert not RenderEvent.objects.exists()
