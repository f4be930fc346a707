"""A cancel races with everything: the render ends once, as Sume says, and the person is told.

The steps are taken by hand; the sandbox's clock says when a generation starts and ends.
"""

import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from django.contrib.auth import get_user_model
from django.db import connection
from django.test import Client

from renders import services
from renders.coordination.connections import redis_client
from renders.lifecycle import cancellation
from renders.lifecycle.steps import Step
from renders.limits import gate
from renders.models import RenderJob
from renders.sandbox import Sandbox
from renders.states import TERMINAL
from renders.sume.clients import sume
from tests.effects.models import Effect
from tests.integration import engine

QUEUED_SECONDS, PROCESSING_SECONDS = 100.0, 100.0
TO_START = QUEUED_SECONDS + 1
TO_END = QUEUED_SECONDS + PROCESSING_SECONDS + 1


class World:
    """The sandbox, whose time goes on when told to, and all that workers would do."""

    def __init__(self, sandbox: Sandbox, clock: Any) -> None:
        self.sandbox = sandbox
        self._clock = clock

    def wait(self, seconds: float) -> None:
        """Let time go on at Sume."""
        self._clock.ahead += seconds

    def submitted(self, prompt: str = "a red fox") -> RenderJob:
        """A render that Sume holds, queued."""
        render = services.create_render(prompt)
        engine.submit(render)
        assert render.status == "submitted"
        return render

    def ask(self, render: RenderJob) -> None:
        """One `cancel_render` task."""
        cancellation.cancel(render.pk, sume)
        render.refresh_from_db()

    def take(self, render: RenderJob, step: Step) -> list[Step]:
        """Take one step, whose time has come."""
        if step.do == "cancel":
            self.ask(render)
            return []
        if step.do == "poll":
            engine.make_due(render)
            return engine.poll(render, step.token)
        if step.do == "finish":
            return engine.finish(render)
        gate.resume("default")
        RenderJob.objects.filter(pk=render.pk).update(not_before=None)
        return engine.submit(render)

    def end(self, render: RenderJob, steps: list[Step] | None = None) -> None:
        """Take all steps until nothing follows; by default, first those that may be lost."""
        steps = [Step("cancel", render.pk), Step("poll", render.pk)] if steps is None else steps
        redis_client().delete(f"sume:poll:{render.pk}")
        for _ in range(30):
            if not steps:
                break
            steps = [*steps[1:], *self.take(render, steps[0])]
            self.wait(20)
        assert not steps
        assert engine.finish(render) == []  # a message that came twice

    def assert_ended(self, render: RenderJob, status: str) -> None:
        """One end, which is the one at Sume; one bill at most; one handling."""
        render.refresh_from_db()
        assert (render.status, bool(render.handled_at)) == (status, True)
        assert [event.what for event in render.events.all() if event.what in TERMINAL] == [status]
        assert Effect.objects.filter(render_id=render.pk).count() == 1
        ledger = self.sandbox.ledger
        bills = [bill.job_id for bill in ledger.bills]
        refunds = [refund.job_id for refund in ledger.refunds]
        if render.sume_job_id:
            assert self.sandbox.rules.status(render.sume_job_id)["sume_status"] == status
            assert bills.count(render.sume_job_id) == 1
            assert refunds.count(render.sume_job_id) == (status != "completed")
        else:
            assert not bills

    def told(self, render: RenderJob) -> str:
        """What the render's page says."""
        RenderJob.objects.filter(pk=render.pk).update(created_by=owner())
        browser = Client()
        browser.force_login(owner())
        return browser.get(render.get_absolute_url()).content.decode()

    def asked(self, render: RenderJob) -> int:
        """How often Sume was asked to cancel it; always with the same key."""
        return self.sandbox.ledger.posts.get(f"render-cancel-{render.pk}", 0)


def owner() -> Any:
    return get_user_model().objects.get_or_create(username="ann")[0]


@pytest.fixture
def world(database: str, redis: Any, settings: Any, tmp_path: Any) -> Iterator[World]:
    class Clock:
        ahead = 0.0

        def __call__(self) -> float:
            return time.time() + self.ahead

    clock = Clock()
    settings.MEDIA_ROOT = tmp_path / "media"
    with Sandbox(
        clock=clock,
        queued_seconds=QUEUED_SECONDS,
        processing_seconds=PROCESSING_SECONDS,
        writes_per_minute=None,
    ) as sandbox:
        settings.RENDERS = {**settings.RENDERS, "BASE_URL": sandbox.url}
        yield World(sandbox, clock)


def at_once(*calls: Callable[[], Any]) -> list[Any]:
    """What the calls return, each made by a thread of its own at the same time."""
    results: list[Any] = []
    barrier = threading.Barrier(len(calls))

    def work(call: Callable[[], Any]) -> None:
        barrier.wait(5)
        results.append(call())
        connection.close()

    threads = [threading.Thread(target=work, args=[call]) for call in calls]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return results


def until(condition: Callable[[], Any]) -> None:
    """Wait until another thread has come so far."""
    deadline = time.monotonic() + 5
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.01)


# --- Before Sume has it -------------------------------------------------------------------


def test_what_was_never_sent_is_canceled_at_once_and_never_billed(world: World) -> None:
    render = services.create_render("a red fox")
    assert services.cancel_render(render)
    assert render.status == "canceled"
    assert engine.submit(render) == []  # the message was on its way
    world.end(render, [Step("finish", render.pk), Step("finish", render.pk)])
    world.assert_ended(render, "canceled")
    assert not services.cancel_render(render)


@pytest.mark.parametrize("starts", [False, True], ids=["queued", "generation has started"])
def test_a_cancel_while_the_request_is_under_way_is_asked_once_sume_has_it(
    world: World, starts: bool
) -> None:
    render = services.create_render("a red fox")
    world.sandbox.faults.add("slow", on="submit", argument=0.4)
    followed: list[Step] = []

    def cancel() -> None:
        until(lambda: world.sandbox.ledger.bills)
        assert services.cancel_render(RenderJob.objects.get(pk=render.pk))
        world.ask(RenderJob.objects.get(pk=render.pk))  # too early: there is no job id yet
        assert world.asked(render) == 0

    at_once(cancel, lambda: followed.extend(engine.submit(RenderJob.objects.get(pk=render.pk))))
    render.refresh_from_db()
    assert [step.do for step in followed] == ["poll", "cancel"]
    if starts:
        world.wait(TO_START)
    world.end(render, followed[::-1])
    world.assert_ended(render, "completed" if starts else "canceled")
    assert ("Too late" in world.told(render)) == starts


@pytest.mark.parametrize(
    ("fault", "status", "bills"),
    [
        ("reset_after", "canceled", 1),  # Sume has it, and is asked
        ("reset_before", "canceled", 1),  # Sume may have it: it is sent again to be canceled there
        ("unavailable", "canceled", 1),
        ("unauthorized", "canceled", 0),  # Sume has nothing
    ],
)
def test_a_cancel_while_the_request_fails_ends_as_sume_says(
    world: World, fault: str, status: str, bills: int
) -> None:
    render = services.create_render("a red fox")
    world.sandbox.faults.add(fault, on="submit")

    class Meanwhile:
        def submit(self, *arguments: str) -> Any:
            assert services.cancel_render(RenderJob.objects.get(pk=render.pk))
            return sume("default").submit(*arguments)

    client = engine.clients_of(lambda: Meanwhile())
    steps = engine.submission.submit(render.pk, client)
    render.refresh_from_db()
    world.end(render, steps)
    world.assert_ended(render, status)
    assert len(world.sandbox.ledger.bills) == bills


def test_a_cancel_while_sume_refuses_the_request_changes_nothing(world: World) -> None:
    render = services.create_render("REJECT this")

    class Meanwhile:
        def submit(self, *arguments: str) -> Any:
            services.cancel_render(RenderJob.objects.get(pk=render.pk))
            return sume("default").submit(*arguments)

    client = engine.clients_of(lambda: Meanwhile())
    steps = engine.submission.submit(render.pk, client)
    world.end(render, [*steps, Step("cancel", render.pk)])
    world.assert_ended(render, "failed")
    assert world.asked(render) == 0


# --- Once Sume has it ---------------------------------------------------------------------


@pytest.mark.parametrize(
    ("seconds", "status", "words"),
    [
        (0, "canceled", "Sume canceled it."),
        (TO_START, "completed", "job_generation_already_started"),
        (TO_END, "completed", "job_not_cancelable"),
    ],
    ids=["just before the start", "just after the start", "just after the end"],
)
def test_sume_decides_by_when_the_cancel_arrives_and_the_person_is_told(
    world: World, seconds: float, status: str, words: str
) -> None:
    render = world.submitted()
    assert services.cancel_render(render)
    assert "Sume decides whether it still can" in world.told(render)
    [step, again] = world.take(render, Step("poll", render.pk))
    assert again.do == "cancel"
    world.wait(seconds)
    world.ask(render)
    assert render.cancel_answered_at
    assert not services.cancel_render(render)  # it was asked for before
    world.end(render, [step])
    world.assert_ended(render, status)
    assert words in world.told(render)
    assert ("Too late" in world.told(render)) == (status == "completed")


@pytest.mark.parametrize("seconds", [0, TO_END], ids=["in time", "too late"])
def test_the_end_is_read_while_the_answer_is_on_its_way(world: World, seconds: float) -> None:
    render = world.submitted()
    services.cancel_render(render)
    world.wait(seconds)
    world.sandbox.faults.add("slow", on="cancel", argument=0.5)

    def read_the_end() -> None:
        until(lambda: world.asked(render))
        if not seconds:
            until(lambda: world.sandbox.ledger.refunds)
        row = RenderJob.objects.get(pk=render.pk)
        world.end(row, [Step("poll", row.pk)])

    at_once(read_the_end, lambda: world.ask(RenderJob.objects.get(pk=render.pk)))
    world.assert_ended(render, "completed" if seconds else "canceled")
    assert ("Too late" if seconds else "Sume canceled it.") in world.told(render)


def test_a_read_that_was_on_its_way_when_sume_canceled_ends_nothing(world: World) -> None:
    render = world.submitted()
    engine.make_due(render)
    world.sandbox.faults.add("slow", on="status", argument=0.5)
    followed: list[Step] = []

    def cancel() -> None:
        until(lambda: world.sandbox.ledger.reads.get(render.sume_job_id))
        assert services.cancel_render(RenderJob.objects.get(pk=render.pk))
        world.ask(RenderJob.objects.get(pk=render.pk))

    at_once(cancel, lambda: followed.extend(engine.poll(RenderJob.objects.get(pk=render.pk))))
    render.refresh_from_db()
    assert render.status == "submitted"
    world.end(render, followed)
    world.assert_ended(render, "canceled")


@pytest.mark.parametrize(
    ("fault", "argument"),
    [
        ("reset_before", None),
        ("reset_after", None),
        ("server_error", 500),
        ("html", None),
        ("gateway_timeout", 504),
        ("unauthorized", None),
        ("forbidden", None),
        ("rate_limited", 1),
        ("unavailable", 1),
        ("idempotency_in_progress", None),
        ("server_error", 409),
        ("not_found", None),
        ("cut_short", None),
        ("hostile", None),
    ],
)
@pytest.mark.parametrize("database", ["sqlite"], indirect=True)
def test_without_a_clear_answer_sume_is_asked_again_with_the_same_key(
    world: World, fault: str, argument: Any
) -> None:
    """404 too: Sume may not know everywhere yet what it has just accepted."""
    render = world.submitted()
    services.cancel_render(render)
    world.sandbox.faults.add(fault, on="cancel", argument=argument)
    world.ask(render)
    if fault != "hostile":
        assert render.cancel_answered_at is None
        gate.resume("default")  # a refused key pauses all writes
        world.ask(render)
        assert world.asked(render) == 2
    assert "Sume canceled it." in world.told(render)
    world.end(render)
    world.assert_ended(render, "canceled")
    assert len(world.sandbox.ledger.refunds) == 1


def test_an_unanswered_cancel_is_asked_again_after_a_read(world: World) -> None:
    render = world.submitted()
    services.cancel_render(render)
    world.sandbox.faults.add("server_error", on="cancel", argument=500)
    world.ask(render)
    steps = world.take(render, Step("poll", render.pk))
    assert [step.do for step in steps] == ["poll", "cancel"]
    world.take(render, steps[1])
    assert [step.do for step in world.take(render, steps[0])] == ["finish"]


def test_a_cancel_that_sume_never_answers_ends_with_the_job(world: World) -> None:
    render = world.submitted()
    services.cancel_render(render)
    world.sandbox.faults.add("server_error", on="cancel", argument=500, times=None)
    world.end(render)
    world.assert_ended(render, "completed")


@pytest.mark.parametrize("sent", [False, True], ids=["pending", "submitted"])
def test_of_two_cancels_at_once_one_counts(world: World, sent: bool) -> None:
    render = world.submitted() if sent else services.create_render("a red fox")
    copies = [RenderJob.objects.get(pk=render.pk) for _ in range(4)]
    asked = at_once(*(lambda copy=copy: services.cancel_render(copy) for copy in copies))
    assert sorted(asked) == [False, False, False, True]
    render.refresh_from_db()
    world.end(render, [Step("cancel" if sent else "finish", render.pk), Step("poll", render.pk)])
    world.assert_ended(render, "canceled")
    assert [event.what for event in render.events.all()].count("cancel requested") == sent
    assert world.asked(render) == sent


@pytest.mark.parametrize("prompt", ["a red fox", "FAIL on purpose"])
def test_an_ended_render_is_neither_canceled_nor_asked_about(world: World, prompt: str) -> None:
    render = world.submitted(prompt)
    world.end(render)
    assert not services.cancel_render(render)
    world.ask(render)
    assert world.asked(render) == 0
    world.assert_ended(render, "completed" if prompt == "a red fox" else "failed")


# --- Trying again -------------------------------------------------------------------------


def test_a_double_click_on_retry_makes_one_new_render_with_a_bill_of_its_own(world: World) -> None:
    render = world.submitted()
    services.cancel_render(render)
    world.end(render)
    copies = [RenderJob.objects.get(pk=render.pk) for _ in range(4)]
    tried = at_once(*(lambda copy=copy: services.retry_once(copy, None) for copy in copies))
    assert len({new.pk for new, _made in tried}) == 1
    assert sum(made for _new, made in tried) == 1
    new = RenderJob.objects.get(retry_of=render)
    engine.submit(new)
    world.end(new)
    world.assert_ended(new, "completed")
    world.assert_ended(render, "canceled")
    assert new.sume_job_id != render.sume_job_id
