"""Anything may happen in any order: one bill, one handling, and every render ends.

Hypothesis draws the order. Sume is a double inside this process, so that nothing waits; Redis
and the database (SQLite) are real. Messages on their way are a bag: each may be delivered, lost
or doubled at any time.
"""

import hashlib
from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any

import hypothesis.strategies as st
import pytest
from django.utils import timezone
from hypothesis import HealthCheck, settings
from hypothesis.stateful import (
    RuleBasedStateMachine,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from renders import services, transitions
from renders.coordination.connections import redis_client
from renders.exceptions import (
    BackOff,
    NotFound,
    NotReady,
    OutcomeUnknown,
    Paused,
    Rejected,
    SumeError,
)
from renders.lifecycle import cancellation, finishing, media_saving, polling, read_now, submission
from renders.lifecycle.steps import Step
from renders.lifecycle.sweep import sweep
from renders.models import RenderEvent, RenderJob
from renders.states import TERMINAL, Status
from renders.sume.replies import Accepted, JobResult, JobStatus, SumeFault
from tests.effects.models import Effect
from tests.integration import engine
from tests.integration.conftest import Databases, using_database

MOST_ROUNDS = 12
# What the next request may meet: before Sume has acted on it, or after.
FAULTS = ("unknown before", "unknown after", "429", "401", "not ready")
SECONDS = (0.3, 3.0, 8.0, 60.0)
# Which of those that are there. How many there are can depend on the clock of the machine, and
# Hypothesis wants the same choices each time.
NUMBERS = st.integers(0, 999)


class FakeSume:
    """The client's interface, with a ledger and a clock of its own."""

    def __init__(self) -> None:
        self.now = 0.0
        self.fault = ""
        self.jobs: dict[str, tuple[str, float]] = {}  # job id → prompt's first word, accepted at
        self.canceled: set[str] = set()
        self.bodies: dict[str, set[str]] = {}
        self.bills: dict[str, list[str]] = {}  # key → job ids
        self.reads: dict[str, int] = {}

    def submit(self, path: str, body: str, key: str) -> Accepted:
        self.bodies.setdefault(key, set()).add(path + body)
        self._before()
        hit = key in self.bills
        if not hit:
            if "REJECT" in body:
                raise Rejected("no", code="prompt_rejected", status=422)
            job_id = f"job_{hashlib.sha256(key.encode()).hexdigest()[:12]}"
            self.jobs[job_id] = ("failed" if "FAIL" in body else "completed", self.now)
            self.bills.setdefault(key, []).append(job_id)
        self._after()
        return Accepted(self.bills[key][0], "queued", hit, 0.5, None)

    def status(self, job_id: str) -> JobStatus:
        self._before()
        self.reads[job_id] = self.reads.get(job_id, 0) + 1
        word = self.word(job_id)
        not_ready, self.fault = self.fault == "not ready", ""
        ending = Status(word) if word in TERMINAL else None
        return JobStatus(word, ending, not not_ready, 0.5, SumeFault(), None)

    def result(self, job_id: str) -> JobResult:
        self._before()
        if self.fault:
            self.fault = ""
            raise NotReady("not yet", code="result_not_ready", status=409)
        assert self.word(job_id) == "completed"
        return JobResult([{"url": "http://127.0.0.1:9/a.png", "type": "image"}], 9)

    def record_fault(self, job_id: str) -> SumeFault:
        self._before()
        if job_id not in self.jobs:
            raise NotFound("no such job", code="job_not_found", status=404)
        return SumeFault("generation_failed", "It failed.")

    def cancel(self, job_id: str, key: str) -> None:
        self._before()
        if job_id not in self.canceled and self.word(job_id) != "queued":
            raise Rejected("too late", code="job_generation_already_started", status=409)
        self.canceled.add(job_id)
        self._after()

    def word(self, job_id: str) -> str:
        """Queued for 5 s, processing for 5 s, then at its end."""
        if job_id in self.canceled:
            return "canceled"
        end, accepted_at = self.jobs[job_id]
        age = self.now - accepted_at
        return "queued" if age < 5 else "processing" if age < 10 else end

    def end_of(self, key: str) -> str:
        """How the render of that key must end; empty where Sume holds nothing for it."""
        return self.word(self.bills[key][0]) if key in self.bills else ""

    def _before(self) -> None:
        fault = self.fault
        if fault in {"unknown before", "429", "401"}:
            self.fault = ""
        if fault == "unknown before":
            raise OutcomeUnknown("no answer", code="no_answer")
        if fault == "401":
            raise Paused("key refused", code="unauthorized", status=401)
        if fault == "429":
            error = BackOff("wait", code="rate_limit_exceeded", status=429)
            error.retry_after = 2.0
            raise error

    def _after(self) -> None:
        if self.fault == "unknown after":
            self.fault = ""
            raise OutcomeUnknown("no answer", code="no_answer")


class Renders(RuleBasedStateMachine):
    """The rules may come in any order; what must hold, holds after each."""

    databases: Databases

    def __init__(self) -> None:
        super().__init__()
        self.cleanup = ExitStack()
        self.cleanup.enter_context(using_database(self.databases.fresh("sqlite")))
        redis_client().flushall()
        self.sume = FakeSume()
        self.bag: list[Step] = []
        self.tokens: list[str | None] = [None]
        self.known: dict[Any, RenderJob] = {}
        self.unbillable: set[Any] = set()

    # --- What people and workers do ----------------------------------------------------------

    @rule(
        prompt=st.sampled_from(["a red fox", "FAIL this", "REJECT this"]),
        sent=st.sampled_from(("later", "", *FAULTS)),
    )
    def create(self, prompt: str, sent: str) -> None:
        """Its message waits, or is delivered at once and meets that fault."""
        if len(self.known) < 3:
            render = services.create_render(prompt)
            self.known[render.pk] = render
            if sent == "later":
                self.bag.append(Step("submit", render.pk))
            else:
                self.sume.fault = sent
                self._take(Step("submit", render.pk))

    @precondition(lambda self: self.known)
    @rule(number=NUMBERS)
    def cancel(self, number: int) -> None:
        render = self._any(number)
        services.cancel_render(render)
        self.bag.append(Step("finish" if render.is_terminal else "cancel", render.pk))
        if render.status == "canceled" and not render.sume_job_id:
            self.unbillable.add(render.pk)

    @rule(number=NUMBERS, keep=st.booleans(), fault=st.sampled_from(("", *FAULTS)))
    def deliver(self, number: int, keep: bool, fault: str) -> None:
        """Any message that is on its way; it may come again, and Sume's next reply may fail."""
        if not self.bag:
            return
        self.sume.fault = fault
        step = self.bag[number % len(self.bag)]
        if not keep:
            self.bag.remove(step)
        self._take(step)

    @precondition(lambda self: self.known)
    @rule(number=NUMBERS, do=st.sampled_from(["submit", "finish", "cancel"]))
    def stray(self, number: int, do: Any) -> None:
        """A message that nobody awaits."""
        self._take(Step(do, self._any(number).pk))

    @precondition(lambda self: self.known)
    @rule(number=NUMBERS, handed_out=NUMBERS)
    def stray_poll(self, number: int, handed_out: int) -> None:
        """A poll with any token that was ever handed out, or none."""
        token = self.tokens[handed_out % len(self.tokens)]
        self._take(Step("poll", self._any(number).pk, 0, token))

    @precondition(lambda self: self.known)
    @rule(number=NUMBERS, lost=st.booleans())
    def check_now(self, number: int, lost: bool) -> None:
        """A webhook, or a person, wants a read at once; the message may get lost."""
        _, steps = read_now.ask([self._any(number).pk])
        self._add([] if lost else steps)

    @rule()
    def sweep(self) -> None:
        self._add(sweep())

    # --- What goes wrong ---------------------------------------------------------------------

    @rule(number=NUMBERS)
    def lose_a_message(self, number: int) -> None:
        if self.bag:
            self.bag.pop(number % len(self.bag))

    @rule()
    def crash(self) -> None:
        self.bag.clear()

    @precondition(lambda self: self.known)
    @rule(number=NUMBERS)
    def die_while_sending(self, number: int) -> None:
        """Sume has the request; the worker dies before it hears so."""
        render = self._any(number)
        if transitions.claim(render.pk, now := timezone.now(), "default"):
            frozen = submission.frozen(render.pk, now)
            assert frozen
            try:
                self.sume.submit(frozen.request_path, frozen.request_body, frozen.idempotency_key)
            except SumeError:
                return

    @rule()
    def empty_redis(self) -> None:
        redis_client().flushall()

    @rule(seconds=st.sampled_from(SECONDS))
    def pass_time(self, seconds: float) -> None:
        """For rows, leases, pauses and Sume alike."""
        self.sume.now += seconds
        engine.age_rows(seconds)
        engine.age_gates(seconds)
        redis = redis_client()
        for key in redis.keys("sume:*"):
            left = redis.pttl(key) - int(seconds * 1000)
            redis.pexpire(key, max(0, left))

    # --- What must hold ----------------------------------------------------------------------

    @invariant()
    def all_is_well(self) -> None:
        self.money_is_safe()
        self.rows_move_forward_only()
        self.effects_are_those_of_handled_rows()

    def money_is_safe(self) -> None:
        assert all(len(jobs) == 1 for jobs in self.sume.bills.values())
        assert all(len(bodies) == 1 for bodies in self.sume.bodies.values())
        for pk in self.unbillable:
            assert f"render-job-{pk}" not in self.sume.bills

    def rows_move_forward_only(self) -> None:
        for now in RenderJob.objects.all():
            before = self.known[now.pk]
            if before.is_terminal:
                assert now.status == before.status
                assert now.finished_at == before.finished_at
            assert now.poll_count >= before.poll_count
            assert now.handled_at or not now.is_terminal or now.next_poll_at
            if now.status == "submitted":
                assert now.sume_job_id
            if before.sume_job_id:
                assert now.sume_job_id == before.sume_job_id
            if before.request_body:
                assert now.request_body == before.request_body
            if before.handled_at:
                assert now.handled_at == before.handled_at
            self.known[now.pk] = now

    def effects_are_those_of_handled_rows(self) -> None:
        effects = sorted((e.render_id, e.signal) for e in Effect.objects.all())
        handled = sorted((r.pk, r.status) for r in self.known.values() if r.handled_at)
        assert effects == handled

    def teardown(self) -> None:
        try:
            self.sume.fault = ""
            for _ in range(MOST_ROUNDS):
                if all(render.handled_at for render in self.known.values()):
                    break
                self.pass_time(60)
                steps, self.bag = self.bag + sweep(), []
                for step in steps:
                    self._take(step)
                chains = [step.render_id for step in self.bag if step.do == "poll"]
                assert len(chains) == len(set(chains)), "two poll chains of one render live"
                self.all_is_well()
            for render in self.known.values():
                assert render.handled_at, f"{render} never ended: {self._timeline(render)}"
                expected = self.sume.end_of(render.idempotency_key)
                if not expected:  # Sume holds nothing: refused, or canceled in time
                    refused = render.prompt.startswith("REJECT") and render.status == "failed"
                    expected = "failed" if refused else "canceled"
                    assert refused or render.cancel_requested_at
                assert render.status == expected, self._timeline(render)
        finally:
            self.cleanup.close()

    # --- Helpers -----------------------------------------------------------------------------

    def _any(self, number: int) -> RenderJob:
        """One of the renders, as it is now."""
        return RenderJob.objects.get(pk=list(self.known)[number % len(self.known)])

    def _take(self, step: Step) -> None:
        client = engine.clients_of(lambda: self.sume)
        if step.do == "submit":
            self._add(submission.submit(step.render_id, client))
        elif step.do == "poll":
            self._add(polling.poll(step.render_id, step.token, client, engine.leases()))
        elif step.do == "media":
            self._add(media_saving.save(step.render_id, client, engine.media_leases()))
        elif step.do == "finish":
            self._add(finishing.finish(step.render_id, client, engine.leases()))
        else:
            self._add(cancellation.cancel(step.render_id, client))

    def _add(self, steps: list[Step]) -> None:
        self.bag += steps
        self.tokens += [step.token for step in steps if step.token]

    @staticmethod
    def _timeline(render: RenderJob) -> str:
        return str([str(event) for event in RenderEvent.objects.filter(render=render)])


@pytest.fixture
def machine(
    databases: Databases, redis: Any, settings: Any, django_db_blocker: Any, monkeypatch: Any
) -> Iterator[type[Renders]]:
    settings.RENDERS = {**settings.RENDERS, "SAVE_MEDIA": "0"}
    # The bag is where messages go.
    monkeypatch.setattr("renders.schedulers.dispatch.follow", lambda steps: None)
    Renders.databases = databases
    with django_db_blocker.unblock():
        yield Renders


@pytest.mark.parametrize("examples", [12, pytest.param(100, marks=pytest.mark.thorough)])
def test_whatever_the_order_every_render_ends_once_and_is_billed_once(
    machine: type[Renders], examples: int
) -> None:
    run_state_machine_as_test(
        machine,
        settings=settings(
            max_examples=examples,
            stateful_step_count=30,
            deadline=None,
            derandomize=True,
            database=None,
            suppress_health_check=list(HealthCheck),
        ),
    )
