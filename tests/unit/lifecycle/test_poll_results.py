"""An answer becomes a row and what follows, one at a time or many: the same either way."""

import logging
from datetime import timedelta

import pytest
from django.db import DataError, InterfaceError, OperationalError, transaction
from django.utils import timezone

from renders import transitions
from renders.exceptions import OutcomeUnknown
from renders.lifecycle import poll_results
from renders.lifecycle.poll_results import Next, record, record_many
from renders.lifecycle.steps import Step
from renders.models import RenderEvent, RenderJob
from renders.states import Status
from tests.rows import stored
from tests.unit.fakes import done, goes

pytestmark = pytest.mark.django_db
SHORTEST = 0.2  # MIN_POLL_SECONDS of the tests
NOW = timezone.now()
NO_ANSWER = OutcomeUnknown("No answer.", code="no_answer")


@pytest.fixture(autouse=True)
def quiet(monkeypatch):
    """No jitter, and nobody waits in the line."""
    monkeypatch.setattr("renders.sume.timing.random.uniform", lambda low, high: high)
    monkeypatch.setattr("renders.lifecycle.poll_results.timezone.now", lambda: NOW)
    monkeypatch.setattr("renders.lifecycle.claims.next_in_line", lambda workspace: [])


def submitted(**fields):
    return stored(Status.SUBMITTED, **{"submitted_at": NOW, "sume_status": "processing", **fields})


def each_by_itself(answers):
    return [record(render, answer) for render, answer in answers]


both = pytest.mark.parametrize("write", [each_by_itself, record_many])


@both
def test_a_job_that_runs_is_due_again_in_its_time(write):
    render = submitted()

    assert write([(render, goes(wait=3))]) == [Next(3)]

    render.refresh_from_db()
    assert render.next_poll_at == NOW + timedelta(seconds=3)
    assert (render.poll_count, render.last_polled_at) == (1, NOW)
    assert not RenderEvent.objects.exists()


@both
def test_a_new_word_of_sumes_is_a_line_of_the_timeline(write):
    render = submitted(sume_status="queued")

    write([(render, goes("processing"))])

    assert RenderEvent.objects.values_list("what", "detail").get() == ("sume status", "processing")


@both
def test_a_job_that_ended_is_finished_and_frees_its_place(write, monkeypatch):
    freed, following = [], Step("submit", stored().pk)
    monkeypatch.setattr("renders.limits.capacity.freed", freed.append)
    monkeypatch.setattr("renders.lifecycle.claims.next_in_line", lambda workspace: [following])
    render = submitted()

    assert write([(render, done())]) == [
        Next(None, [Step("finish", render.pk), following], ended=True)
    ]

    render.refresh_from_db()
    assert (render.status, render.cost_usd_micros) == (Status.COMPLETED, 5)
    assert freed == ["default"]


@both
def test_who_was_overtaken_writes_nothing_and_does_not_go_on(write):
    going, ending = submitted(), submitted()
    RenderJob.objects.update(poll_count=1)
    before = list(RenderJob.objects.values())

    assert write([(going, goes()), (ending, done())]) == [Next(), Next()]

    assert list(RenderJob.objects.values()) == before
    assert not RenderEvent.objects.exists()


@both
def test_asked_for_since_the_read_began_it_is_read_once_more_a_moment_later(write):
    render = submitted()
    transitions.ask([render.pk], NOW)

    assert write([(render, goes(wait=3))]) == [Next(SHORTEST)]

    render.refresh_from_db()
    assert (render.asked_at, render.poll_count) == (NOW, 1)
    assert render.next_poll_at == NOW + timedelta(seconds=SHORTEST)


@both
def test_a_cancel_without_an_answer_is_asked_for_again_after_each_read(write, monkeypatch):
    wanted = submitted(cancel_requested_at=NOW)
    answered = submitted(cancel_requested_at=NOW, cancel_answered_at=NOW)
    answers = [(wanted, goes(wait=3)), (answered, NO_ANSWER)]

    assert write(answers) == [Next(3, [Step("cancel", wanted.pk)]), Next(0.5)]


@both
def test_no_message_goes_out_for_a_cancel_that_cannot_be_sent(write, monkeypatch):
    monkeypatch.setattr("renders.lifecycle.claims.cancels_left", lambda workspace: 0)
    wanted = submitted(cancel_requested_at=NOW)

    assert write([(wanted, goes(wait=3))]) == [Next(3)]


@both
def test_a_failed_read_is_told_in_the_log(write, caplog):
    render = submitted()

    with caplog.at_level(logging.WARNING):
        write([(render, NO_ANSWER)])

    assert caplog.messages == [f"Reading render {render.pk} failed (no_answer); again in 0.5 s."]


def test_many_together_are_as_each_by_itself():
    """All sorts in one batch; what follows is in the order of the answers."""
    answers = [
        (submitted(), goes(wait=3)),
        (submitted(), done()),
        (submitted(failed_reads=1), NO_ANSWER),
        (submitted(sume_status="queued"), goes(wait=4)),
        (submitted(), done(Status.FAILED)),
        (submitted(cancel_requested_at=NOW), goes(wait=2)),
    ]
    asked, lost, ended = submitted(), submitted(), submitted()
    transitions.ask([asked.pk], NOW)
    RenderJob.objects.filter(pk=lost.pk).update(poll_count=7)
    record(ended, done())
    answers += [(asked, goes(wait=9)), (lost, goes()), (ended, goes())]

    def outcome(write):
        with transaction.atomic():
            follows = write(answers)
            rows = list(RenderJob.objects.order_by("pk").values())
            events = list(
                RenderEvent.objects.order_by("render_id", "pk").values_list("render_id", "what")
            )
            transaction.set_rollback(True)
        return follows, rows, events

    assert outcome(record_many) == outcome(each_by_itself)
    assert [told.wait for told in outcome(record_many)[0]] == [
        3, None, 1, 4, None, 2, SHORTEST, None, None,
    ]  # fmt: skip


def test_nothing_is_nothing():
    assert record_many([]) == []


def test_a_wait_begins_with_the_answer_and_not_when_it_is_written_down():
    first, second = submitted(), submitted()

    follows = record_many(
        [(first, goes(wait=4)), (second, goes(wait=1))], [NOW - timedelta(seconds=1.5)] * 2
    )

    assert [told.wait for told in follows] == [2.5, 0]
    first.refresh_from_db()
    assert first.next_poll_at == NOW + timedelta(seconds=2.5)


# --- Faults -------------------------------------------------------------------------------


@pytest.mark.parametrize("what", ["learn", "cancel_if_asked"])
def test_one_that_breaks_holds_up_no_other(monkeypatch, caplog, what):
    first, odd, last = (submitted(cancel_requested_at=NOW) for _ in range(3))
    original = getattr(poll_results, what)

    def fail(render, *args):
        if render.pk == odd.pk:
            raise ValueError("odd")
        return original(render, *args)

    monkeypatch.setattr(poll_results, what, fail)

    follows = record_many([(first, goes(wait=3)), (odd, goes(wait=3)), (last, goes(wait=3))])

    assert [told and told.wait for told in follows] == [3, None, 3]
    assert follows[1] is None
    assert f"Writing down a read of render {odd.pk} failed." in caplog.messages


def test_where_the_statement_fails_each_is_written_by_itself(monkeypatch, caplog):
    renders = [submitted() for _ in range(3)]

    def fail(heard, now):
        raise DataError

    monkeypatch.setattr(transitions, "record_reads", fail)

    assert record_many([(render, goes(wait=3)) for render in renders]) == [Next(3)] * 3
    assert "Writing down 3 reads failed; each by itself now." in caplog.messages
    assert set(RenderJob.objects.values_list("poll_count", flat=True)) == {1}


@pytest.mark.parametrize("error", [OperationalError, InterfaceError])
@pytest.mark.parametrize("where", ["record_reads", "end"])
def test_where_the_database_is_away_it_says_so(monkeypatch, error, where):
    def fail(*args, **kwargs):
        raise error

    monkeypatch.setattr(transitions, where, fail)

    with pytest.raises(error):
        record_many([(submitted(), goes()), (submitted(), done())])


def test_however_many_end_together_the_line_is_set_going_once(monkeypatch):
    following = Step("submit", stored(Status.PENDING).pk)
    monkeypatch.setattr("renders.lifecycle.claims.next_in_line", lambda workspace: [following])

    follows = record_many([(submitted(), done()) for _ in range(3)])

    assert [step for told in follows for step in told.steps].count(following) == 1


@both
def test_whoever_reads_what_somebody_else_has_read_neither_goes_on_nor_ends_it(write):
    render, ended = submitted(), submitted()
    RenderJob.objects.update(poll_count=1)

    assert write([(render, goes(wait=3)), (ended, done())]) == [Next(), Next()]
