"""Many reads at once: slots, batches, the gate, and faults that hold up nobody else."""

import logging
import threading
import time
from datetime import timedelta

import pytest
from django.db import OperationalError
from django.utils import timezone

from renders import transitions
from renders.exceptions import Closed, OutcomeUnknown, Paused, Rejected
from renders.lifecycle.steps import Step
from renders.limits import read_quota
from renders.limits.read_quota import Admission
from renders.models import RenderJob
from renders.schedulers import reader
from renders.schedulers.reader import Reader
from renders.states import Status
from tests.rows import stored
from tests.unit.fakes import FakeQueue, FakeSume, done, goes

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def open_gate(monkeypatch):
    """Whatever is asked for is admitted."""
    monkeypatch.setattr(read_quota, "admit", lambda workspace, wanted: Admission(wanted))
    monkeypatch.setattr("renders.lifecycle.claims.next_in_line", lambda workspace: [])
    monkeypatch.setattr("renders.limits.capacity.freed", lambda workspace: None)
    monkeypatch.setattr(reader, "close_old_connections", lambda: None)  # it is the test's


def submitted(number):
    now = timezone.now()
    return [
        stored(Status.SUBMITTED, sume_job_id=f"job{index}", submitted_at=now)
        for index in range(number)
    ]


def made(queue, sume, *, slots=10):
    followed = []
    return Reader(queue, sume, slots=slots, follow=followed.extend), followed


def run(a_reader):
    """Turn until nothing is under way any more."""
    written = a_reader.turn(5)
    while a_reader.busy:
        written += a_reader.turn(5)
    return written


def test_what_is_due_is_read_written_down_and_settled():
    going, ending = submitted(2)
    queue = FakeQueue(going, ending)
    sume = FakeSume(lambda job: goes(wait=3) if job == going.sume_job_id else done())
    a_reader, followed = made(queue, sume)

    assert run(a_reader) == 2

    assert RenderJob.objects.get(pk=going.pk).poll_count == 1
    assert RenderJob.objects.get(pk=ending.pk).status == Status.COMPLETED
    waits = dict(queue.settled)
    assert waits.keys() == {going, ending}
    assert waits[ending] is None
    assert 0 < waits[going] < 3  # a moment has passed since the answer
    assert followed == [Step("finish", ending.pk)]
    assert a_reader.finish(time.monotonic() + 5)


def test_no_more_are_under_way_than_there_are_slots():
    queue, sume = FakeQueue(*submitted(12)), FakeSume()
    a_reader, _ = made(queue, sume, slots=3)
    sume.gate.clear()

    a_reader.turn(0)
    assert a_reader.busy == 3
    a_reader.turn(0)
    assert a_reader.busy == 3
    assert queue.limits == [3]  # with no slot free, nothing is taken
    while sume.most < 3:
        time.sleep(0.001)

    sume.gate.set()
    run(a_reader)
    while queue.ready:
        run(a_reader)
    assert sume.most == 3
    assert len(queue.settled) == 12
    assert a_reader.finish(time.monotonic() + 5)


def test_what_is_taken_and_written_at_once_is_bounded(monkeypatch):
    monkeypatch.setattr(reader, "BATCH", 4)
    sizes = []
    record_many = reader.record_many

    def counted(answers, heard_at):
        sizes.append(len(answers))
        return record_many(answers, heard_at)

    monkeypatch.setattr(reader, "record_many", counted)
    queue, sume = FakeQueue(*submitted(10)), FakeSume()
    a_reader, _ = made(queue, sume, slots=100)
    sume.gate.clear()
    for _ in range(3):
        a_reader.turn(0)
    assert queue.limits == [4, 4, 4]
    assert a_reader.busy == 10

    sume.gate.set()
    run(a_reader)

    assert sum(sizes) == 10
    assert max(sizes) <= 4
    assert a_reader.finish(time.monotonic() + 5)


# --- The gate -----------------------------------------------------------------------------


def test_what_is_not_admitted_is_given_back_until_the_gate_opens(monkeypatch):
    until = timezone.now() + timedelta(seconds=3)
    closed = Closed("Too many.", code="read_budget", until=until)
    monkeypatch.setattr(read_quota, "admit", lambda workspace, wanted: Admission(1, closed=closed))
    first, *others = submitted(3)
    queue, sume = FakeQueue(first, *others), FakeSume()
    a_reader, _ = made(queue, sume)

    run(a_reader)

    assert sume.asked == [first.sume_job_id]
    assert [render for render, _ in queue.given_back] == others
    assert all(2 < seconds <= 3 for _, seconds in queue.given_back)
    a_reader.turn(0)
    assert len(queue.limits) == 1  # nor does it look again before
    assert a_reader.finish(time.monotonic() + 5)


@pytest.mark.parametrize(
    ("left", "seconds"),
    [
        (3600, reader.LONGEST_REST_SECONDS),
        (-5, reader.SHORTEST_REST_SECONDS),
        (None, reader.SHORTEST_REST_SECONDS),
    ],
    ids=["a long pause", "one that is over", "until a person opens it"],
)
def test_how_long_it_rests_is_bounded(monkeypatch, left, seconds):
    until = None if left is None else timezone.now() + timedelta(seconds=left)
    closed = Closed("Paused.", code="unauthorized", until=until)
    monkeypatch.setattr(read_quota, "admit", lambda workspace, wanted: Admission(closed=closed))
    [render] = submitted(1)
    queue, sume = FakeQueue(render), FakeSume()
    a_reader, _ = made(queue, sume)

    a_reader.turn(0)

    assert queue.given_back == [(render, seconds)]
    assert (a_reader.busy, sume.asked) == (0, [])
    assert a_reader.finish(time.monotonic() + 5)


REFUSED = Paused("No such key.", code="unauthorized", status=401)
PROBES = {
    "an answer": (True, goes(), (True, None)),
    "no such job": (True, Rejected("No.", code="x"), (True, "x")),
    "no answer": (True, OutcomeUnknown("No.", code="no_answer"), (True, "no_answer")),
    "refused again": (True, REFUSED, (True, "unauthorized")),
    "refused, and no probe": (False, REFUSED, (False, "unauthorized")),
    "an answer, and no probe": (False, goes(), None),
    "no answer, and no probe": (False, OutcomeUnknown("No.", code="no_answer"), None),
}


@pytest.mark.parametrize(("probe", "answer", "told"), PROBES.values(), ids=PROBES)
def test_the_gate_learns_from_refusals_and_from_whoever_tries(monkeypatch, probe, answer, told):
    monkeypatch.setattr(read_quota, "admit", lambda workspace, wanted: Admission(1, probe=probe))
    learned = []
    monkeypatch.setattr(
        read_quota, "answered", lambda _, *args: learned.append((args[0], args[1] and args[1].code))
    )

    def reply(job):
        if isinstance(answer, Exception):
            raise answer
        return answer

    first, second = submitted(2)
    queue = FakeQueue(first, second)
    a_reader, _ = made(queue, FakeSume(reply))

    run(a_reader)

    assert learned == ([told] if told else [])
    assert [render for render, _ in queue.given_back] == [second]
    assert a_reader.finish(time.monotonic() + 5)


# --- Faults -------------------------------------------------------------------------------


def test_a_read_that_breaks_is_one_without_an_answer(caplog):
    broken, fine = submitted(2)

    def reply(job):
        if job == broken.sume_job_id:
            raise RuntimeError("a fault of our own")
        return goes()

    queue = FakeQueue(broken, fine)
    a_reader, _ = made(queue, FakeSume(reply))

    run(a_reader)

    rows = RenderJob.objects.in_bulk()
    assert (rows[broken.pk].failed_reads, rows[fine.pk].failed_reads) == (1, 0)
    assert {render for render, _ in queue.settled} == {broken, fine}
    assert f"Reading render {broken.pk} failed" in caplog.text
    assert a_reader.finish(time.monotonic() + 5)


def test_what_cannot_be_written_down_is_not_settled_and_holds_up_nobody(monkeypatch, caplog):
    first, odd, last = submitted(3)
    end = transitions.end

    def fail(pk, *args, **kwargs):
        if pk == odd.pk:
            raise ValueError("cannot be stored")
        return end(pk, *args, **kwargs)

    monkeypatch.setattr(transitions, "end", fail)
    queue = FakeQueue(first, odd, last)
    a_reader, followed = made(queue, FakeSume(lambda job: done()))

    assert run(a_reader) == 3

    assert {render for render, _ in queue.settled} == {first, last}
    assert {step.render_id for step in followed} == {first.pk, last.pk}
    assert f"Writing down a read of render {odd.pk} failed" in caplog.text
    assert a_reader.finish(time.monotonic() + 5)


def test_where_the_database_is_away_it_raises_and_keeps_what_is_under_way(monkeypatch):
    first, second = submitted(2)
    queue, sume = FakeQueue(first, second), FakeSume()
    a_reader, _ = made(queue, sume)

    def fail(answers, heard_at):
        raise OperationalError

    with monkeypatch.context() as patch:
        patch.setattr(reader, "BATCH", 1)
        patch.setattr(reader, "record_many", fail)
        with pytest.raises(OperationalError):
            while True:
                a_reader.turn(5)
    run(a_reader)

    assert len(queue.settled) == 1  # the one whose answer was lost is due again later
    assert sorted(sume.asked) == ["job0", "job1"]
    assert a_reader.finish(time.monotonic() + 5)


# --- The end ------------------------------------------------------------------------------


def test_at_the_end_nothing_is_taken_and_what_is_under_way_is_written_down():
    [render] = submitted(1)
    queue, sume = FakeQueue(render), FakeSume()
    a_reader, _ = made(queue, sume)
    a_reader.turn(0)
    queue.ready = submitted(1)

    assert a_reader.finish(time.monotonic() + 10)

    assert [held for held, _ in queue.settled] == [render]
    assert len(queue.limits) == 1


def test_whoever_does_not_answer_in_time_is_not_waited_for():
    queue, sume = FakeQueue(*submitted(1)), FakeSume()
    a_reader, _ = made(queue, sume)
    sume.gate.clear()
    a_reader.turn(0)

    assert not a_reader.finish(time.monotonic())

    assert queue.settled == []
    sume.gate.set()


def test_at_the_end_an_outage_of_the_database_is_told_and_not_raised(monkeypatch, caplog):
    others = set(threading.enumerate())
    queue, sume = FakeQueue(*submitted(3)), FakeSume()
    a_reader, _ = made(queue, sume)
    sume.gate.clear()
    a_reader.turn(0)
    sume.gate.set()

    def fail(answers, heard_at):
        raise OperationalError("at secret-host")

    monkeypatch.setattr(reader, "record_many", fail)
    with caplog.at_level(logging.WARNING, "renders.schedulers.reader"):
        assert not a_reader.finish(time.monotonic() + 10)

    assert a_reader.busy == 0
    assert "The database is away (OperationalError)." in caplog.messages
    assert "secret-host" not in caplog.text
    for thread in set(threading.enumerate()) - others:
        thread.join(10)
        assert not thread.is_alive()  # a worker makes a reader for each tick


def test_the_next_time_is_that_of_the_queue():
    queue = FakeQueue()
    a_reader, _ = made(queue, FakeSume())
    assert a_reader.next_due is None

    queue.next_due = 12.5
    assert a_reader.next_due == 12.5


def test_what_somebody_else_has_read_is_let_go_and_stays_where_it_is():
    [render] = submitted(1)
    queue, sume = FakeQueue(render), FakeSume()
    a_reader, _ = made(queue, sume)
    sume.gate.clear()
    a_reader.turn(0)
    RenderJob.objects.update(poll_count=7)
    sume.gate.set()

    run(a_reader)

    assert (queue.settled, queue.let_go_of) == ([], [render])
    assert a_reader.finish(time.monotonic() + 5)


def test_what_is_under_way_is_not_read_again_though_it_is_given_again():
    [render] = submitted(1)
    queue, sume = FakeQueue(render), FakeSume()
    a_reader, _ = made(queue, sume)
    sume.gate.clear()
    a_reader.turn(0)
    queue.ready = [render]
    while queue.ready:
        a_reader.turn(0)
    sume.gate.set()

    run(a_reader)

    assert len(sume.asked) == 1
    assert a_reader.finish(time.monotonic() + 5)


# --- Workspaces ---------------------------------------------------------------------------


def test_each_render_is_read_with_the_key_of_its_own_workspace(settings):
    settings.RENDERS = {**settings.RENDERS, "WORKSPACES": {"acme": {}}}
    own, other = submitted(1)[0], submitted(1)[0]
    RenderJob.objects.filter(pk=other.pk).update(workspace="acme")
    other.refresh_from_db()
    sumes = {"default": FakeSume(), "acme": FakeSume()}
    a_reader, _ = made(FakeQueue(own, other), sumes.__getitem__)

    run(a_reader)

    assert sumes["default"].asked == [own.sume_job_id]
    assert sumes["acme"].asked == [other.sume_job_id]


def test_one_workspace_that_rests_does_not_have_the_others_wait(settings, monkeypatch):
    """Whose renders are given back; the next look passes over them."""
    settings.RENDERS = {**settings.RENDERS, "WORKSPACES": {"acme": {}}}
    closed = Closed("No.", code="held", until=None)
    monkeypatch.setattr(
        read_quota,
        "admit",
        lambda name, wanted: Admission(closed=closed) if name == "acme" else Admission(wanted),
    )
    theirs, own, later = submitted(3)
    RenderJob.objects.filter(pk=theirs.pk).update(workspace="acme")
    theirs.refresh_from_db()
    queue, sume = FakeQueue(theirs, own, later), FakeSume()
    rested = []
    take = queue.take

    def taken(limit, resting=()):
        rested.append(sorted(resting))
        return take(1, resting)

    queue.take = taken
    a_reader, _ = made(queue, sume)
    for _ in range(20):
        a_reader.turn(0.1)
    a_reader.finish(time.monotonic() + 5)

    assert sorted(sume.asked) == sorted([own.sume_job_id, later.sume_job_id])
    assert [one for one, _ in queue.given_back] == [theirs]
    assert rested[:2] == [[], ["acme"]]
