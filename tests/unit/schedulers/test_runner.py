"""Renders from start to end in one process, by the table alone, with the stand-in for Sume.

The steps of a crew are taken at once, in the test's own thread; reads go out in threads.
"""

import time
from datetime import timedelta

import pytest
from django.conf import settings
from django.db import OperationalError
from django.test import override_settings
from django.utils import timezone

from renders import services, transitions
from renders.lifecycle import sweep
from renders.lifecycle.steps import Step
from renders.models import Gate, RenderJob
from renders.schedulers import runner as table_runner
from renders.schedulers import step_pool
from renders.schedulers.runner import Runner
from renders.states import RequestType, Status
from renders.testing import StandIn
from tests.rows import stored

pytestmark = pytest.mark.django_db


class AtOnce:
    """As `Threads`, without any: what is put in is done at once, unless it is held up."""

    held_up = set()

    def __init__(self, work, most, name):
        self._work, self._most, self.name = work, most, name
        self._jobs = []
        self.busy = 0
        self.most_busy = 0

    @property
    def free(self):
        return self._most - self.busy

    def put(self, job):
        self.busy += 1
        self.most_busy = max(self.most_busy, self.busy)
        self._jobs.append(job)

    def get(self, seconds, most):
        if self.name in AtOnce.held_up:
            return []
        jobs, self._jobs = self._jobs[:most], self._jobs[most:]
        self.busy -= len(jobs)
        return [self._work(job) for job in jobs]


@pytest.fixture(autouse=True)
def sume(monkeypatch):
    monkeypatch.setattr(step_pool, "Threads", AtOnce)
    # The steps share the connection of the test, and its transaction.
    monkeypatch.setattr(table_runner, "close_old_connections", lambda: None)
    monkeypatch.setattr(AtOnce, "held_up", set())
    monkeypatch.setattr(table_runner, "LOOK_SECONDS", 0.0)
    monkeypatch.setattr(table_runner, "TURN_SECONDS", 0.01)
    ours = {"SCHEDULER": "database", "MIN_POLL_SECONDS": 0.02}
    with StandIn(poll_seconds=0.05) as sume, override_settings(RENDERS=settings.RENDERS | ours):
        yield sume


@pytest.fixture
def runner(sume):
    from renders.sume.clients import sume as client

    made = Runner(client, slots=5)
    yield made
    AtOnce.held_up = set()
    assert made.finish(time.monotonic() + 10)


def run_until(runner, done, seconds=20.0):
    """Turn until it is done; fails where that does not come."""
    end = time.monotonic() + seconds
    while not done():
        assert time.monotonic() < end, list(RenderJob.objects.values("status", "handled_at"))
        runner.turn()


def all_handled():
    return not RenderJob.objects.filter(handled_at=None).exists()


# --- From start to end ------------------------------------------------------------------------


def test_a_render_is_sent_read_stored_and_finished(runner, sume):
    render = services.create_render("A boat")

    run_until(runner, all_handled)

    render.refresh_from_db()
    assert (render.status, render.cost_usd_micros > 0) == (Status.COMPLETED, True)
    assert render.artifacts[0]["file"]
    assert len(sume.bills) == 1
    assert [event.what for event in render.events.order_by("pk")][-1] == "handled"


def test_many_of_all_sorts_are_billed_once_each(runner, sume):
    renders = services.create_renders(
        [{"prompt": "FAIL" if number % 3 == 0 else f"boat {number}"} for number in range(4)]
    )
    services.cancel_render(renders[-1])

    run_until(runner, all_handled)

    statuses = list(RenderJob.objects.order_by("created_at").values_list("status", flat=True))
    assert statuses == [Status.FAILED, Status.COMPLETED, Status.COMPLETED, Status.CANCELED]
    assert len(sume.bills) == 3
    assert sume.sandbox.ledger.posts.total() == 3


def test_sume_is_asked_once_to_cancel_and_says_what_becomes_of_it(runner, sume):
    sume.next_takes(3600)
    render = services.create_render("A boat")
    run_until(runner, RenderJob.objects.filter(status=Status.SUBMITTED).exists)

    services.cancel_render(render)
    run_until(runner, RenderJob.objects.exclude(cancel_answered_at=None).exists)
    for _ in range(3):
        runner.turn()
    sume._turn_on(3600)
    run_until(runner, all_handled)

    render.refresh_from_db()
    assert render.status == Status.COMPLETED  # too late: it was being made
    whats = [event.what for event in render.events.all()]
    assert whats.count("asking Sume to cancel") == whats.count("cancel answered") == 1


def test_what_another_process_left_is_finished(runner, sume):
    left = stored(
        Status.CANCELED,
        sume_job_id="",
        next_poll_at=timezone.now() - timedelta(seconds=table_runner.LEFT_SECONDS + 1),
    )

    run_until(runner, all_handled)

    assert left.events.get().what == "handled"


# --- The order ----------------------------------------------------------------------------


@pytest.fixture
def taken(monkeypatch):
    """The steps that are taken, in order; none of them does anything, and nothing is found."""
    steps = []
    monkeypatch.setattr(Runner, "_do", lambda self, step: steps.append(step) or [])
    monkeypatch.setattr(table_runner, "find", lambda *, starting, finishes, saves: [])
    monkeypatch.setattr(sweep, "sweep", list)
    return steps


def found_once(monkeypatch, *steps):
    """The next look finds these."""
    found = list(steps)

    def find(*, starting, finishes, saves):
        now, found[:] = list(found), []
        return now

    monkeypatch.setattr(table_runner, "find", find)


def test_steps_are_taken_in_the_order_of_their_times(runner, taken, monkeypatch):
    first, second, third, far = (stored().pk for _ in range(4))
    steps = [
        Step("finish", far, 60),
        Step("finish", third, 0.03),
        Step("finish", second, 0.01),
        Step("finish", first),
    ]
    found_once(monkeypatch, *steps)

    run_until(runner, lambda: len(taken) == 3)

    assert [step.render_id for step in taken] == [first, second, third]


def test_polls_are_left_to_the_reader(runner, taken, monkeypatch):
    found_once(monkeypatch, Step("poll", stored().pk), Step("finish", (other := stored()).pk))

    run_until(runner, lambda: taken)

    assert taken == [Step("finish", other.pk)]


def test_downloads_hold_up_nothing_else(runner, taken, monkeypatch):
    AtOnce.held_up = {"save"}
    media = [Step("media", stored().pk) for _ in range(table_runner.SAVERS + 3)]
    finish = Step("finish", stored().pk)
    found_once(monkeypatch, *media, finish)

    run_until(runner, lambda: taken)

    assert taken == [finish]
    assert runner.busy == table_runner.SAVERS
    AtOnce.held_up = set()
    run_until(runner, lambda: len(taken) == len(media) + 1)


def test_an_exception_in_a_step_is_told_and_the_others_go_on(runner, monkeypatch, caplog, taken):
    odd, fine = Step("finish", stored().pk), Step("finish", stored().pk)

    def do(self, step):
        if step == odd:
            raise ValueError("odd")
        taken.append(step)
        return []

    monkeypatch.setattr(Runner, "_do", do)
    found_once(monkeypatch, odd, fine)

    run_until(runner, lambda: taken)

    assert taken == [fine]
    assert f"The step finish of render {odd.render_id} failed." in caplog.messages
    assert runner.busy == 0


# --- The line ------------------------------------------------------------------------------


def test_the_line_is_set_going_once_and_not_by_a_submit_that_waits(runner, monkeypatch):
    asked = []
    monkeypatch.setattr(
        table_runner, "find", lambda *, starting, finishes, saves: asked.append(not starting) or []
    )
    AtOnce.held_up = {"work"}

    monkeypatch.setattr(sweep, "sweep", lambda: [Step("submit", stored().pk, 60)])
    runner.turn()
    runner.turn()
    assert asked == [True, True]

    monkeypatch.setattr(sweep, "sweep", lambda: [Step("submit", stored().pk)])
    runner._sweep_at = 0
    runner.turn()
    runner.turn()
    assert asked[2:] == [False, False]


def test_a_new_render_does_not_wait_for_one_that_is_to_be_sent_again(runner, sume):
    """That one, of which Sume may hold a job, comes in its own time."""
    sume.sandbox.faults.add("html", on="submit")
    services.create_render("A boat")
    run_until(runner, RenderJob.objects.exclude(not_before=None).exists)

    new = services.create_render("A new boat")
    run_until(runner, RenderJob.objects.filter(pk=new.pk).exclude(handled_at=None).exists)

    assert RenderJob.objects.filter(status=Status.PENDING).count() == 1


def test_behind_a_pause_everything_waits_and_goes_on_when_a_person_resumes(runner, sume):
    Gate.objects.create(key=RequestType.WRITES, paused_until=timezone.now() + timedelta(hours=1))
    services.create_render("A boat")
    for _ in range(3):
        runner.turn()
    assert not sume.bills

    Gate.objects.update(paused_until=None)
    run_until(runner, all_handled)

    assert len(sume.bills) == 1


def test_whoever_wakes_it_has_it_look_at_once(sume, monkeypatch, taken):
    looks, words = [], [False, True, False]
    monkeypatch.setattr(table_runner, "LOOK_SECONDS", 3600.0)
    monkeypatch.setattr(
        table_runner, "find", lambda *, starting, finishes, saves: looks.append(len(words)) or []
    )
    runner = Runner(None, slots=1, awakened=lambda: words.pop(0))

    for _ in range(4):
        runner.turn()

    assert looks == [3, 1]  # at the start, and when it was woken
    assert runner.finish(time.monotonic() + 5)


# --- The database away ------------------------------------------------------------------------


@pytest.mark.parametrize("where", ["find", "take_due"])
def test_an_outage_of_the_database_is_lived_through(runner, sume, monkeypatch, caplog, where):
    rests = []
    monkeypatch.setattr(table_runner, "REST_SECONDS", 0.01)
    place = table_runner if where == "find" else transitions
    original, faults = getattr(place, where), [OperationalError("at secret-host")] * 2

    def away(*args, **kwargs):
        if faults:
            rests.append(True)
            raise faults.pop()
        return original(*args, **kwargs)

    monkeypatch.setattr(place, where, away)
    services.create_render("A boat")

    run_until(runner, all_handled)

    assert rests == [True, True]
    told = "The database is away (OperationalError); again in a moment."
    assert caplog.messages.count(told) == 2
    assert "secret-host" not in caplog.text


def test_a_fault_of_our_own_ends_it(sume, monkeypatch):
    def fail(*, starting, finishes, saves):
        raise ValueError("odd")

    monkeypatch.setattr(table_runner, "find", fail)

    with pytest.raises(ValueError, match="odd"):
        Runner(None, slots=1).turn()


# --- The end ------------------------------------------------------------------------------


def test_at_the_end_what_is_under_way_is_done_and_nothing_more_is_begun(sume, taken, monkeypatch):
    runner = Runner(None, slots=1)
    following = Step("media", stored().pk)
    monkeypatch.setattr(
        Runner, "_do", lambda self, step: [taken.append(step) or following][: step != following]
    )
    first = Step("finish", stored().pk)
    AtOnce.held_up = {"work"}
    found_once(monkeypatch, first)
    runner.turn()
    assert runner.busy == 1
    AtOnce.held_up = set()

    assert runner.finish(time.monotonic() + 5)

    assert taken == [first]


def test_whoever_is_not_done_in_time_is_not_waited_for(sume, taken, monkeypatch):
    runner = Runner(None, slots=1)
    AtOnce.held_up = {"work"}
    found_once(monkeypatch, Step("finish", stored().pk))
    runner.turn()

    assert not runner.finish(time.monotonic())
