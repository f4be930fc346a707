"""The gate: pauses for all, one try after a refusal, and a person who opens and closes it."""

from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth import get_user_model
from django.utils import timezone

from renders import services, transitions
from renders.coordination.connections import redis_client
from renders.demo.embedded_redis import EmbeddedRedis
from renders.demo.processes import kill_group
from renders.exceptions import (
    BackOff,
    Closed,
    NotFound,
    NotReady,
    OutcomeUnknown,
    Paused,
    Rejected,
)
from renders.lifecycle import claims
from renders.limits import gate, read_quota
from renders.models import Gate, RenderJob
from renders.sandbox import Sandbox
from renders.states import RequestType
from tests.integration import engine

pytestmark = pytest.mark.usefixtures("database", "redis", "sandbox")
REFUSED = Paused("The key is refused.", code="unauthorized", status=401)


def shut(sort: RequestType = RequestType.WRITES) -> Closed | None:
    return gate.closed("default", sort, timezone.now())


def span(sort: RequestType) -> float:
    """How long the pause is that a refusal brings now, in seconds."""
    return (gate.pause("default", sort, REFUSED) - timezone.now()).total_seconds()


@pytest.fixture
def renders(sandbox: Sandbox) -> list[RenderJob]:
    return services.create_renders([{"prompt": f"fox {number}"} for number in range(4)])


@pytest.mark.parametrize("sort", RequestType)
def test_pauses_grow_while_the_refusals_go_on(sort: RequestType, settings: Any) -> None:
    settings.RENDERS |= {"PAUSE_SECONDS": 15, "MAX_PAUSE_SECONDS": 100}
    spans = []
    for _ in range(5):
        spans.append(round(span(sort)))
        engine.age_gates(1000)
    assert spans == [15, 30, 60, 100, 100]
    gate.passed("default", sort)
    assert round(span(sort)) == 15


def test_those_that_were_on_their_way_together_are_one_refusal(settings: Any) -> None:
    settings.RENDERS |= {"PAUSE_SECONDS": 15}
    assert [round(span(RequestType.WRITES)) for _ in range(8)] == [15] * 8


def test_a_shorter_pause_leaves_a_longer_one(settings: Any) -> None:
    wait = BackOff("wait", code="rate_limit_exceeded")
    until = gate.pause("default", RequestType.WRITES, wait, 60)
    assert gate.pause("default", RequestType.WRITES, wait, 1) == until
    assert gate.pause("default", RequestType.WRITES, wait, 100) > until


def test_reads_and_writes_pause_apart() -> None:
    gate.pause("default", RequestType.WRITES, REFUSED, 60)
    assert shut(RequestType.WRITES) and not shut(RequestType.READS)
    assert read_quota.read("default", lambda: 7) == 7


def test_a_pause_says_why_and_until_when() -> None:
    until = gate.pause("default", RequestType.WRITES, REFUSED, 60)
    for _ in ("as Redis tells", "as the database tells"):
        closed = shut()
        assert closed and closed.until == until
        assert (closed.code, str(closed)) == ("unauthorized", "The key is refused.")
        redis_client().flushall()


def test_without_redis_the_database_tells_of_the_pause(redis: EmbeddedRedis) -> None:
    assert redis.child
    kill_group(redis.child)
    assert not shut()
    gate.pause("default", RequestType.WRITES, REFUSED, 60)
    assert shut()
    gate.resume("default")
    assert not shut()


def test_a_pause_ends_by_itself() -> None:
    gate.pause("default", RequestType.WRITES, BackOff("wait", code="rate_limit_exceeded"), 60)
    engine.age_gates(61)
    redis_client().flushall()
    assert not shut()


# --- One at a time --------------------------------------------------------------------------


def test_after_a_refusal_one_submit_at_a_time_tries(renders: list[RenderJob]) -> None:
    gate.pause("default", RequestType.WRITES, REFUSED)
    gate.resume("default")
    first = claims.claim(renders[0].pk)
    assert first.probe and first.renders == [renders[0].pk]
    assert [claims.claim(render.pk).renders for render in renders[1:]] == [[], [], []]

    gate.passed("default", RequestType.WRITES)
    assert [claims.claim(render.pk).renders for render in renders[1:]] == [
        [render.pk] for render in renders[1:]
    ]


def test_where_unsure_renders_have_every_place_one_of_them_tries(
    renders: list[RenderJob], settings: Any
) -> None:
    """Those behind them, never sent, cannot try: there is no place for them."""
    settings.RENDERS = {**settings.RENDERS, "MAX_IN_FLIGHT": 1}
    unsure = RenderJob.objects.filter(pk=renders[0].pk)
    unsure.update(submit_attempts=2, outcome_unknown_at=timezone.now())
    gate.pause("default", RequestType.WRITES, REFUSED)
    gate.resume("default")

    claim = claims.claim(renders[1].pk)

    assert claim.probe and claim.renders == [renders[0].pk]


def test_one_that_tries_and_dies_holds_up_the_others_for_a_while_only(
    renders: list[RenderJob],
) -> None:
    gate.pause("default", RequestType.WRITES, REFUSED)
    gate.resume("default")
    assert claims.claim(renders[0].pk).renders
    engine.age_gates(10)
    assert claims.claim(renders[1].pk).renders == [renders[1].pk]


@pytest.mark.parametrize("fault", ["unauthorized", "forbidden", "insufficient_credits"])
def test_a_refused_key_costs_one_call_a_pause_and_fails_nobody(
    renders: list[RenderJob], sandbox: Sandbox, fault: str, settings: Any
) -> None:
    # However slow the machine, the pause is not over before its time is turned on.
    settings.RENDERS = {**settings.RENDERS, "PAUSE_SECONDS": "60"}
    sandbox.faults.add(fault, on="submit", times=3)
    for calls in (1, 2, 3, 4):
        for render in renders:
            engine.submit(render)
        assert sandbox.ledger.posts.total() == calls + (calls == 4) * 3
        engine.age_gates(1000)
        redis_client().flushall()
        transitions.recall("default")
    for render in renders:
        render.refresh_from_db()
    assert {render.status for render in renders} == {"submitted"}
    assert len(sandbox.ledger.bills) == 4


def test_when_the_try_is_answered_the_line_goes_on(
    renders: list[RenderJob], sandbox: Sandbox
) -> None:
    sandbox.faults.add("unauthorized", on="submit")
    engine.submit(renders[0])
    gate.resume("default")
    steps = engine.submit(renders[1])
    assert [step.do for step in steps] == ["poll", "submit"]
    assert steps[1].render_id == renders[2].pk


def test_a_try_without_a_clear_answer_leaves_it_to_the_next(
    renders: list[RenderJob], sandbox: Sandbox
) -> None:
    gate.pause("default", RequestType.WRITES, REFUSED)
    gate.resume("default")
    sandbox.faults.add("reset_before", on="submit")
    steps = engine.submit(renders[0])
    assert [(step.do, step.render_id) for step in steps] == [
        ("submit", renders[0].pk),
        ("submit", renders[1].pk),
    ]
    assert claims.claim(renders[1].pk).probe


def test_one_render_that_is_always_refused_does_not_stop_the_others(
    renders: list[RenderJob], sandbox: Sandbox
) -> None:
    """Others come first after the pause: its own wait ends a moment later."""
    sandbox.faults.add("forbidden", on="submit")
    engine.submit(renders[0])
    row = Gate.objects.get(pk=RequestType.WRITES)
    assert row.paused_until and renders[0].not_before
    assert renders[0].not_before > row.paused_until


def test_reads_try_one_at_a_time_too() -> None:
    calls: list[int] = []

    def refuse() -> int:
        calls.append(1)
        raise REFUSED

    for error in (Paused, Closed, Closed):
        with pytest.raises(error):
            read_quota.read("default", refuse)
    engine.age_gates(1)
    redis_client().flushall()

    def ask_meanwhile() -> int:
        with pytest.raises(Closed, match="Somebody tries"):
            read_quota.read("default", lambda: 1)
        raise OutcomeUnknown("no answer", code="no_answer")

    with pytest.raises(OutcomeUnknown):
        read_quota.read("default", ask_meanwhile)
    assert read_quota.read("default", lambda: 2) == 2  # it tries, and opens
    assert read_quota.read("default", lambda: read_quota.read("default", lambda: 3)) == 3
    assert len(calls) == 1


def test_no_more_reads_than_allowed_in_a_second(settings: Any) -> None:
    settings.RENDERS |= {"WRITES_PER_MINUTE": 5}  # so 200 reads a minute, 3 a second
    done = refused = 0
    for _ in range(20):
        try:
            done += read_quota.read("default", lambda: 1)
        except Closed as closed:
            assert closed.code == "read_budget"
            refused += 1
    assert 3 <= done <= 9  # three seconds at most
    assert refused


def test_a_paused_poll_chain_goes_on_after_the_pause(
    renders: list[RenderJob], sandbox: Sandbox
) -> None:
    sandbox.faults.add("job_takes", on="submit", argument=600)
    [render] = renders[:1]
    engine.submit(render)
    engine.make_due(render)
    over = timezone.now() + timedelta(seconds=3)
    gate.pause("default", RequestType.READS, REFUSED, 3)
    [step] = engine.poll(render)
    assert step.do == "poll" and step.token and step.after > 0
    assert render.poll_count == 0
    assert render.next_poll_at and render.next_poll_at > over

    engine.make_due(render)
    [step] = engine.poll(render, step.token)
    assert render.poll_count == 1


def test_of_two_postponed_copies_one_goes_on(
    renders: list[RenderJob], redis: EmbeddedRedis
) -> None:
    """Without Redis, the time of the next read is the fence."""
    [render] = renders[:1]
    engine.submit(render)
    engine.make_due(render)
    known = render.next_poll_at
    assert known
    later = known + timedelta(seconds=9)
    assert transitions.postpone_read(render.pk, 0, known, later)
    assert not transitions.postpone_read(render.pk, 0, known, later)


# --- A person -------------------------------------------------------------------------------


def test_a_person_pauses_and_resumes(renders: list[RenderJob]) -> None:
    user = get_user_model().objects.create(username="ada")
    gate.hold("default", user)
    closed = shut()
    assert closed and closed.until is None and "person" in str(closed)
    assert claims.claim(renders[0].pk).renders == []
    assert read_quota.read("default", lambda: 1) == 1
    gate.resume("default")
    assert claims.claim(renders[0].pk).renders == [renders[0].pk]


def test_a_person_who_resumes_early_has_one_submit_try(renders: list[RenderJob]) -> None:
    gate.pause("default", RequestType.WRITES, REFUSED)
    gate.pause("default", RequestType.WRITES, REFUSED, 600)
    assert claims.claim(renders[0].pk).renders == []
    gate.resume("default")
    assert claims.claim(renders[0].pk).probe
    assert claims.claim(renders[1].pk).renders == []


def test_a_refusal_of_one_request_is_no_refusal_of_the_key(
    renders: list[RenderJob], sandbox: Sandbox
) -> None:
    gate.pause("default", RequestType.WRITES, REFUSED)
    gate.resume("default")
    bad = services.create_render("REJECT this", priority=9)
    engine.submit(bad)
    assert bad.status == "failed"
    assert Gate.objects.get(pk=RequestType.WRITES).refusals == 0


@pytest.mark.parametrize("error", [Rejected, NotFound, NotReady])
def test_a_read_that_is_rejected_shows_that_the_key_is_taken(error: Any) -> None:
    def refuse() -> int:
        raise error("no", code="x")

    gate.pause("default", RequestType.READS, REFUSED)
    gate.resume("default")
    with pytest.raises(error):
        read_quota.read("default", refuse)
    assert Gate.objects.get(pk=RequestType.READS).refusals == 0
