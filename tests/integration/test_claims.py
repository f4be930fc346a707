"""Who is sent next: in order, each once, within the limits, without a storm of messages."""

import threading
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth import get_user_model
from django.db import connection, transaction
from django.utils import timezone

from renders import services, transitions
from renders.coordination.connections import redis_client
from renders.exceptions import BackOff
from renders.lifecycle import cancellation, claims, submission
from renders.lifecycle.steps import Step
from renders.lifecycle.sweep import sweep
from renders.limits import capacity, gate
from renders.models import Gate, RenderEvent, RenderJob
from renders.sandbox import Sandbox
from renders.states import RequestType
from renders.sume.clients import sume
from tests.integration import engine

pytestmark = pytest.mark.usefixtures("database", "redis", "sandbox")


def make(count: int, **fields: Any) -> list[RenderJob]:
    return services.create_renders([{"prompt": f"fox {n}", **fields} for n in range(count)])


def claim(render: RenderJob, limit: int = 1) -> list[Any]:
    return claims.claim(render.pk, limit).renders


def pass_a_minute() -> None:
    later = timedelta(seconds=gate.WINDOW_SECONDS)
    for event in RenderEvent.objects.all():
        RenderEvent.objects.filter(pk=event.pk).update(at=event.at - later)
    engine.age_gates(gate.WINDOW_SECONDS)


# --- The order ------------------------------------------------------------------------------


def test_where_places_are_few_the_first_in_line_goes_whoever_was_named(settings: Any) -> None:
    settings.RENDERS |= {"MAX_IN_FLIGHT": 2}
    old, young = make(1)[0], make(1)[0]
    [urgent] = make(1, priority=5)
    assert claim(young) == [urgent.pk]
    assert claim(young) == [old.pk]
    assert claim(young) == []


def test_where_places_are_many_the_one_named_goes() -> None:
    renders = make(3)
    assert claim(renders[2]) == [renders[2].pk]


def test_a_message_for_a_render_that_was_sent_sends_the_next() -> None:
    first, second = make(2)
    assert claim(first) == [first.pk]
    assert claim(first) == [second.pk]
    assert claim(first) == []


def test_a_batch_is_claimed_at_once_in_order(django_assert_max_num_queries: Any) -> None:
    [low] = make(1, priority=-1)
    renders = make(5)
    [urgent] = make(1, priority=3)
    claimed = claims.claim(low.pk, 4)
    assert set(claimed.renders) == {low.pk, urgent.pk, renders[0].pk, renders[1].pk}
    for pk in claimed.renders:
        row = RenderJob.objects.get(pk=pk)
        assert (row.status, row.claimed_at, row.submit_attempts) == ("submitting", claimed.at, 1)
        assert [event.what for event in row.events.all()] == ["created", "sending"]


def test_a_batch_that_meets_a_closed_gate_is_put_back_unsent(sandbox: Sandbox) -> None:
    renders = make(4)
    sandbox.faults.add("rate_limited", on="submit")
    submission.send(claims.claim(renders[0].pk, 4), sume)
    assert sandbox.ledger.posts.total() == 1
    assert {row.status for row in RenderJob.objects.all()} == {"pending"}


def test_rows_that_somebody_holds_are_skipped() -> None:
    if connection.vendor != "postgresql":
        pytest.skip("SQLite has one writer.")
    first, second = make(2)
    held, done = threading.Event(), threading.Event()

    def hold() -> None:
        with transaction.atomic():
            RenderJob.objects.select_for_update().get(pk=first.pk)
            held.set()
            done.wait(10)
        connection.close()

    thread = threading.Thread(target=hold)
    thread.start()
    held.wait(10)
    try:
        assert claim(first) == [second.pk]
    finally:
        done.set()
        thread.join()
    assert claim(first) == [first.pk]


def test_many_workers_claim_each_render_once_and_no_more_than_may_fly(settings: Any) -> None:
    settings.RENDERS |= {"MAX_IN_FLIGHT": 12}
    renders = make(20)
    taken: list[Any] = []
    barrier = threading.Barrier(6)

    def work() -> None:
        barrier.wait()
        for render in renders:
            taken.extend(claim(render))
        connection.close()

    in_threads(work, 6)
    assert len(taken) == len(set(taken)) == 12


def in_threads(work: Callable[[], None], count: int) -> None:
    threads = [threading.Thread(target=work) for _ in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def test_what_a_person_wants_canceled_is_not_sent_by_anybody() -> None:
    """Its cancel came while it was on its way, and then it was put back."""
    first, second = make(2)
    now = timezone.now()
    assert transitions.claim(first.pk, now, "default")
    assert transitions.request_cancel(first.pk, now)
    assert transitions.release(first.pk, now, not_before=now, code="x", message="wait")

    assert claim(second) == [second.pk]
    assert claim(second) == []
    assert engine.swept() == [("finish", first.pk)]
    first.refresh_from_db()
    assert (first.status, first.cost_usd_micros) == ("canceled", 0)


# --- Fair -----------------------------------------------------------------------------------


def test_fair_users_take_turns(settings: Any) -> None:
    settings.RENDERS |= {"MAX_IN_FLIGHT": 6}
    ada, bob = (get_user_model().objects.create(username=name) for name in ("ada", "bob"))
    many = make(50, user=ada)
    [one] = make(1, user=bob)
    nobodys = make(2)
    for _ in range(6):
        claim(many[0])
    flying = RenderJob.objects.in_flight()
    assert set(flying.exclude(created_by=ada).values_list("pk", flat=True)) == {
        one.pk,
        *(render.pk for render in nobodys),
    }


def test_without_fairness_the_oldest_go_first(settings: Any) -> None:
    settings.RENDERS |= {"FAIR": 0, "MAX_IN_FLIGHT": 6}
    ada, bob = (get_user_model().objects.create(username=name) for name in ("ada", "bob"))
    many = make(50, user=ada)
    [one] = make(1, user=bob)
    for _ in range(6):
        claim(one)
    assert not RenderJob.objects.in_flight().filter(created_by=bob).exists()
    assert RenderJob.objects.in_flight().count() == 6
    assert many


def test_a_fair_batch_is_shared_too() -> None:
    ada, bob = (get_user_model().objects.create(username=name) for name in ("ada", "bob"))
    many = make(10, user=ada)
    theirs = make(2, user=bob)
    assert set(claim(many[0], 4)) == {render.pk for render in [*many[:2], *theirs]}


# --- Places at Sume -------------------------------------------------------------------------


def test_an_ended_render_makes_room_for_the_next(settings: Any, sandbox: Sandbox) -> None:
    settings.RENDERS |= {"MAX_IN_FLIGHT": 1}
    first, second = make(2)
    assert [step.do for step in engine.submit(first)] == ["poll", "submit"]
    assert engine.submit(second) == []
    sandbox_time_passes(sandbox)
    engine.make_due(first)
    assert engine.poll(first) == [Step("finish", first.pk), Step("submit", second.pk)]
    engine.submit(second)
    assert second.status == "submitted"


def sandbox_time_passes(sandbox: Sandbox) -> None:
    tick = threading.Event()
    while sandbox.rules.jobs()["jobs"][-1]["status"] != "completed":
        tick.wait(0.02)
        sandbox.rules.settle()


def test_a_render_that_is_refused_makes_room_for_the_next(settings: Any) -> None:
    settings.RENDERS |= {"MAX_IN_FLIGHT": 1}
    bad = services.create_render("REJECT this")
    [good] = make(1)
    assert engine.submit(bad) == [Step("finish", bad.pk), Step("submit", good.pk)]


def test_jobs_that_sume_never_ends_hold_no_place_for_ever(settings: Any) -> None:
    settings.RENDERS |= {"MAX_IN_FLIGHT": 1, "OVERDUE_HOURS": 6}
    first, second = make(2)
    engine.submit(first)
    assert claim(second) == []
    long_ago = timezone.now() - timedelta(hours=6)
    RenderJob.objects.filter(pk=first.pk).update(submitted_at=long_ago)
    assert claim(second) == [second.pk]


def test_sumes_last_word_on_places_is_kept_to(sandbox: Sandbox) -> None:
    renders = make(4)
    engine.submit(renders[0])
    capacity.accepted("default", 2, 0)
    assert [len(claim(render)) for render in renders[1:]] == [1, 1, 0]


def test_submits_on_their_way_are_taken_off_what_sume_told() -> None:
    renders = make(3)
    gate_row()
    capacity.accepted("default", 2, 1)
    assert [len(claim(render)) for render in renders] == [1, 0, 0]


def gate_row() -> None:
    with transaction.atomic():
        gate.lock("default", RequestType.WRITES)


def test_where_no_place_is_left_one_asks_again_after_an_end() -> None:
    renders = make(3)
    gate_row()
    capacity.accepted("default", 0, 0)
    assert claim(renders[0]) == []
    capacity.freed("default")
    assert [len(claim(render)) for render in renders] == [1, 0, 0]


def test_where_no_place_is_left_one_asks_again_when_the_word_is_old() -> None:
    renders = make(3)
    gate_row()
    capacity.accepted("default", 0, 0)
    [step] = claims.claim(renders[0].pk).steps
    assert step.do == "submit" and step.after > 0
    engine.age_gates(capacity.READING_SECONDS)
    assert [len(claim(render)) for render in renders] == [1, 0, 0]


def test_a_reply_that_names_no_places_sets_no_limit() -> None:
    renders = make(3)
    gate_row()
    capacity.accepted("default", 0, 0)
    capacity.accepted("default", None, 0)
    assert [len(claim(render)) for render in renders] == [1, 1, 1]


@pytest.mark.parametrize("told", [2**62, 10**6])
def test_a_huge_word_on_places_is_no_fault(told: int) -> None:
    renders = make(1)
    gate_row()
    capacity.accepted("default", told, 0)
    assert claim(renders[0])


def test_what_sume_may_hold_keeps_its_place(settings: Any, sandbox: Sandbox) -> None:
    settings.RENDERS |= {"MAX_IN_FLIGHT": 1}
    first, second = make(2)
    sandbox.faults.add("reset_after", on="submit")
    engine.submit(first)
    assert first.outcome_unknown_at
    assert claim(second) == []  # its place is taken, for all that is known
    transitions.recall("default")
    assert claim(second) == [first.pk]  # whose place it is may take it


# --- Writes a minute ------------------------------------------------------------------------


def test_no_more_posts_in_a_minute_than_allowed(settings: Any) -> None:
    settings.RENDERS |= {"WRITES_PER_MINUTE": 10}
    renders = make(15)
    assert sum(len(claim(render)) for render in renders) == 10
    redis_client().flushall()  # the minute is not forgotten with it
    assert sum(len(claim(render)) for render in renders) == 0
    pass_a_minute()
    assert sum(len(claim(render)) for render in renders) == 5


def test_one_message_waits_until_the_minute_is_over(settings: Any) -> None:
    settings.RENDERS |= {"WRITES_PER_MINUTE": 3, "MAX_POLL_SECONDS": 300}
    renders = make(9)
    for render in renders[:3]:
        claim(render)
    waiting = [step for render in renders for step in claims.claim(render.pk).steps]
    [step] = waiting
    assert 55 < step.after <= gate.WINDOW_SECONDS
    engine.age_gates(70)
    assert len(claims.claim(renders[0].pk).steps) == 1


def test_many_workers_keep_to_the_minute(settings: Any) -> None:
    settings.RENDERS |= {"WRITES_PER_MINUTE": 15}
    renders = make(30)
    taken: list[Any] = []

    def work() -> None:
        for render in renders:
            taken.extend(claim(render))
        connection.close()

    in_threads(work, 5)
    assert len(taken) == 15


def test_cancels_are_counted_and_have_a_share_of_their_own(settings: Any, sandbox: Sandbox) -> None:
    settings.RENDERS |= {"WRITES_PER_MINUTE": 40}
    renders = make(50)
    assert sum(len(claim(render)) for render in renders) == 38
    assert [len(claims.claim_cancel(renders[0].pk, "default").renders) for _ in range(3)] == [
        1,
        1,
        0,
    ]


def test_a_cancel_is_not_sent_with_a_refused_key(sandbox: Sandbox) -> None:
    [render] = make(1)
    sandbox.faults.add("unauthorized", on="submit")
    engine.submit(render)
    assert not claims.claim_cancel(render.pk, "default").renders


def test_a_cancel_may_be_the_one_that_tries(settings: Any, sandbox: Sandbox) -> None:
    """With nothing to send, it alone can find out that the key works again."""
    first, second = make(2)
    engine.submit(first)
    services.cancel_render(first)
    sandbox.faults.add("unauthorized", on="cancel")
    [after_the_pause] = cancellation.cancel(first.pk, sume)
    assert after_the_pause.after > 0
    gate.resume("default")
    assert claims.claim_cancel(first.pk, "default").probe
    assert not claims.claim_cancel(first.pk, "default").renders
    engine.age_gates(10)
    assert cancellation.cancel(first.pk, sume) == [Step("submit", second.pk)]
    assert Gate.objects.get(pk=RequestType.WRITES).refusals == 0


# --- Messages -------------------------------------------------------------------------------


def test_each_claim_starts_the_next_while_there_is_room(settings: Any) -> None:
    settings.RENDERS |= {"MAX_IN_FLIGHT": 2}
    first, second, _third = make(3)
    claimed = claims.claim(first.pk)
    assert claimed.steps == [Step("submit", second.pk)] and not claimed.last
    claimed = claims.claim(second.pk)
    assert claimed.steps == [] and claimed.last


@pytest.mark.parametrize("why", ["paused", "held", "full", "no place", "minute"])
def test_ten_thousand_behind_a_closed_gate_cost_few_messages(why: str, settings: Any) -> None:
    """The rows' own messages come, and some sweeps: how many more messages follow?"""
    settings.RENDERS |= {"MAX_IN_FLIGHT": 1, "MAX_POLL_SECONDS": 300}
    count = 10_000 if connection.vendor == "postgresql" and why == "full" else 500
    RenderJob.objects.bulk_create(
        [RenderJob(prompt=f"fox {n}", created_at=timezone.now()) for n in range(count)],
        batch_size=500,
    )
    first = RenderJob.objects.order_by("created_at").first()
    assert first
    if why == "paused":
        gate.pause("default", RequestType.WRITES, BackOff("wait", code="rate_limit_exceeded"), 900)
    elif why == "held":
        gate.hold("default", None)
    elif why == "full":
        claim(first)
    elif why == "no place":
        gate_row()
        capacity.accepted("default", 0, 0)
    else:
        settings.RENDERS |= {"WRITES_PER_MINUTE": 1, "MAX_IN_FLIGHT": 9}
        claim(first)
    pks = list(RenderJob.objects.pending().values_list("pk", flat=True)[:60])
    following = [step for pk in pks for step in submission.submit(pk, sume)]
    RenderJob.objects.pending().update(created_at=timezone.now() - timedelta(seconds=100))
    sweeps = [step for _ in range(10) for step in sweep()]
    assert len(following) <= 1
    assert len(sweeps) <= 10
    assert RenderJob.objects.in_flight().count() <= 1


# --- The deadline ---------------------------------------------------------------------------


def test_what_sume_did_not_take_in_time_fails_and_says_so(settings: Any) -> None:
    settings.RENDERS |= {"SUBMIT_DEADLINE_HOURS": 24}
    late, young = make(2)
    RenderJob.objects.filter(pk=late.pk).update(created_at=timezone.now() - timedelta(hours=24))
    assert claim(late) == [young.pk]  # too late to be sent, even before the sweep
    assert ("finish", late.pk) in engine.swept()
    late.refresh_from_db()
    assert (late.status, late.error_code) == ("failed", "submit_deadline")
    assert "nothing was billed" in late.error_message
    assert late.cost_usd_micros == 0
    engine.finish(late)
    assert late.handled_at


def test_what_sume_may_hold_fails_with_another_word(settings: Any, sandbox: Sandbox) -> None:
    settings.RENDERS |= {"SUBMIT_DEADLINE_HOURS": 24}
    [late] = make(1)
    sandbox.faults.add("reset_after", on="submit")
    engine.submit(late)
    RenderJob.objects.filter(pk=late.pk).update(created_at=timezone.now() - timedelta(hours=24))
    engine.swept()
    late.refresh_from_db()
    assert (late.status, late.error_code) == ("failed", "submit_outcome_unknown")
    assert late.cost_usd_micros is None


def test_without_a_deadline_a_render_waits_for_ever(settings: Any) -> None:
    settings.RENDERS |= {"SUBMIT_DEADLINE_HOURS": 0}
    [late] = make(1)
    RenderJob.objects.filter(pk=late.pk).update(created_at=timezone.now() - timedelta(days=900))
    assert engine.swept() == [("submit", late.pk)]
    assert claim(late) == [late.pk]


def test_a_row_of_the_gate_is_made_when_it_is_needed() -> None:
    Gate.objects.all().delete()
    [render] = make(1)
    assert claim(render) == [render.pk]
    assert Gate.objects.count() == 1
