"""The line goes on by messages, whatever is refused, stalls or dies; nobody starves in it."""

import threading
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth import get_user_model
from django.db import connection, transaction
from django.db.models import F
from django.utils import timezone

from renders import services, transitions
from renders.coordination.connections import redis_client
from renders.exceptions import BackOff, Paused
from renders.lifecycle import cancellation, claims, submission
from renders.limits import gate, read_quota
from renders.models import Gate, RenderEvent, RenderJob
from renders.sandbox import Sandbox
from renders.states import RequestType
from renders.sume.clients import sume
from tests.integration import engine
from tests.integration.test_claims import claim, make, pass_a_minute

pytestmark = pytest.mark.usefixtures("database", "redis", "sandbox")
REFUSED = Paused("The key is refused.", code="unauthorized", status=401)
WAIT = BackOff("wait", code="rate_limit_exceeded", status=429)


def end(pk: Any) -> None:
    now = timezone.now()
    transitions.record_submitted(
        pk, now, job_id=f"job-{pk}", sume_status="queued", hit=False, next_poll_at=now
    )
    assert transitions.end(pk, 0, now, "completed", sume_status="completed")


def test_fair_with_more_users_than_places(settings: Any) -> None:
    settings.RENDERS |= {"MAX_IN_FLIGHT": 2, "FAIR": True}
    ada, bob, cy = (get_user_model().objects.create(username=n) for n in ("ada", "bob", "cy"))
    many = []
    for _ in range(4):
        many += make(1, user=ada) + make(1, user=bob)
    [one] = make(1, user=cy)
    order = []
    flying = claim(one) + claim(one)
    order += flying
    for _ in range(4):
        end(flying.pop(0))
        taken = claim(one)
        flying += taken
        order += taken
    assert one.pk in order, "six were sent, and cy's one was never among them"


def test_fair_overdue_does_not_starve(settings: Any) -> None:
    settings.RENDERS |= {"MAX_IN_FLIGHT": 2, "FAIR": True, "OVERDUE_HOURS": 1}
    ada, cy = (get_user_model().objects.create(username=n) for n in ("ada", "cy"))
    for _ in range(2):
        [old] = make(1, user=cy)
        now = timezone.now()
        transitions.record_submitted(
            old.pk, now, job_id="zombie", sume_status="queued", hit=False, next_poll_at=now
        )
        RenderJob.objects.filter(pk=old.pk).update(submitted_at=now - timedelta(hours=2))
    [one] = make(1, user=cy)
    make(6, user=ada)
    flying = claim(one) + claim(one)
    order = [*flying]
    for _ in range(3):
        end(flying.pop(0))
        flying += (taken := claim(one))
        order += taken
    assert one.pk in order


def test_two_that_are_always_refused_do_not_stop_the_others(
    sandbox: Sandbox, settings: Any
) -> None:
    """403 for these two requests only (a model of another plan, a clip too dear for the rest)."""
    poison = make(2)
    good = make(5)
    bad = {row.pk for row in poison}
    client = sume("default")
    real = client.submit

    def submit(path: str, body: str, key: str) -> Any:
        if any(key.endswith(str(pk)) for pk in bad):
            raise Paused("Not in your plan.", code="forbidden", status=403)
        return real(path, body, key)

    class Client:
        pass

    fake = Client()
    fake.submit = submit  # type: ignore[attr-defined]
    for _ in range(12):
        for row in [*poison, *good]:
            submission.submit(row.pk, lambda workspace: fake)  # type: ignore[arg-type,return-value]
        engine.age_gates(2000)
        past = timedelta(seconds=2000)
        for row in RenderJob.objects.filter(not_before__isnull=False):
            RenderJob.objects.filter(pk=row.pk).update(not_before=row.not_before - past)
        redis_client().flushall()
    assert RenderJob.objects.filter(pk__in=[r.pk for r in good], status="submitted").count() == 5


def test_reads_go_on_with_one_write_a_minute(settings: Any) -> None:
    settings.RENDERS |= {"WRITES_PER_MINUTE": 1}
    assert read_quota.read("default", lambda: 1)


def test_refusal_during_a_429_pause_is_a_refusal() -> None:
    gate.pause("default", RequestType.WRITES, WAIT, 1)
    gate.pause("default", RequestType.WRITES, REFUSED)
    assert Gate.objects.get(pk=RequestType.WRITES).refusals == 1


def test_passed_leaves_a_pause_that_began_meanwhile() -> None:
    renders = make(2)
    gate.pause("default", RequestType.WRITES, REFUSED)
    gate.resume("default")
    assert claims.claim(renders[0].pk).probe
    gate.pause("default", RequestType.WRITES, WAIT, 60)  # one that was on its way before
    gate.passed("default", RequestType.WRITES)
    assert gate.closed("default", RequestType.WRITES, timezone.now())


def test_an_early_wake_up_is_followed_by_another(settings: Any) -> None:
    settings.RENDERS |= {"WRITES_PER_MINUTE": 2, "MAX_POLL_SECONDS": 20}
    renders = make(5)
    assert claim(renders[0]) and claim(renders[1])
    [step] = claims.claim(renders[2].pk).steps
    assert step.after <= 20
    ago = timedelta(seconds=20.1)
    for event in RenderEvent.objects.all():
        RenderEvent.objects.filter(pk=event.pk).update(at=event.at - ago)
    engine.age_gates(20.1)
    assert claims.claim(renders[2].pk).steps, "40 s to go, and nothing is on its way"


def test_the_line_goes_on_right_after_a_429(sandbox: Sandbox) -> None:
    renders = make(4)
    RenderJob.objects.filter(pk=renders[0].pk).update(submit_attempts=8)
    sandbox.faults.add("rate_limited", on="submit")
    begun = submission.begin(renders[0].pk)
    steps = submission.send(begun, sume)
    for step in begun.steps:  # it came while the gate was closed
        steps += claims.claim(step.render_id).steps
    row = Gate.objects.get(pk=RequestType.WRITES)
    assert row.paused_until
    pause = (row.paused_until - timezone.now()).total_seconds()
    first = min(step.after for step in steps if step.do == "submit")
    assert first < pause + 5, f"pause of {pause:.0f} s, woken after {first:.0f} s"


@pytest.mark.parametrize("fault", ["rate_limited", "reset_before"])
def test_a_cancel_that_ends_badly_starts_the_line(sandbox: Sandbox, fault: str) -> None:
    first, *others = make(3)
    engine.submit(first)
    services.cancel_render(first)
    gate.pause("default", RequestType.WRITES, REFUSED)
    gate.resume("default")
    sandbox.faults.add(fault, on="cancel")
    # meanwhile the messages of the others find the try on its way, and are used up
    real = sume("default").cancel
    waiting: list[Any] = []

    class Client:
        def cancel(self, *args: str) -> None:
            for other in others:
                claimed = claims.claim(other.pk)
                assert claimed.renders == []
                waiting.extend(claimed.steps)
            real(*args)

    steps = cancellation.cancel(first.pk, lambda workspace: Client())  # type: ignore[arg-type,return-value]
    on_their_way = [step.after for step in [*waiting, *steps] if step.do == "submit"]
    assert on_their_way, "nothing is on its way"
    assert min(on_their_way) < 5


def test_stalled_workers_keep_to_the_minute(settings: Any, sandbox: Sandbox) -> None:
    settings.RENDERS |= {"WRITES_PER_MINUTE": 3}
    renders = make(6)
    stalled = [submission.begin(row.pk) for row in renders[:3]]
    pass_a_minute()
    minute = timedelta(seconds=gate.WINDOW_SECONDS)
    RenderJob.objects.filter(status="submitting").update(claimed_at=F("claimed_at") - minute)
    stalled = [replace(held, at=held.at - minute) for held in stalled]
    fresh = [submission.begin(row.pk) for row in renders[3:]]
    for held in [*stalled, *fresh]:
        if held.renders:
            submission.send(held, sume)
    assert sandbox.ledger.posts.total() <= 3


def test_a_stale_copy_of_a_pause_in_redis(monkeypatch: Any) -> None:
    tell = gate._tell

    def late(*args: Any) -> None:
        gate.resume("default")  # a person, between the commit and Redis
        tell(*args)

    monkeypatch.setattr(gate, "_tell", late)
    gate.pause("default", RequestType.WRITES, WAIT, 600)
    assert not gate.closed("default", RequestType.WRITES, timezone.now())


def test_a_locked_head_stops_nobody(settings: Any) -> None:
    if connection.vendor != "postgresql":
        pytest.skip("locks of rows")
    settings.RENDERS |= {"MAX_IN_FLIGHT": 1}
    head, second = make(2)
    got: list[Any] = []

    def other() -> None:
        got.append(claims.claim(second.pk))
        connection.close()

    with transaction.atomic():
        RenderJob.objects.filter(pk=head.pk).update(priority=5)
        thread = threading.Thread(target=other)
        thread.start()
        thread.join()
    assert got[0].renders == [second.pk] or got[0].steps


def test_writes_in_the_future_count_no_longer_than_a_minute(settings: Any) -> None:
    settings.RENDERS |= {"WRITES_PER_MINUTE": 2}
    renders = make(4)
    assert claim(renders[0]) and claim(renders[1])
    RenderEvent.objects.update(at=timezone.now() + timedelta(hours=1))  # the clock went back
    assert claim(renders[2])


def test_probe_flag_after_the_clock_went_back() -> None:
    renders = make(2)
    gate.pause("default", RequestType.WRITES, REFUSED)
    gate.resume("default")
    assert claims.claim(renders[0].pk).probe
    Gate.objects.update(probe_until=timezone.now() + timedelta(hours=1))
    assert claims.claim(renders[1].pk).renders


def test_a_read_that_tries_after_the_clock_went_back() -> None:
    gate.pause("default", RequestType.READS, REFUSED)
    gate.resume("default")
    Gate.objects.update(probe_until=timezone.now() + timedelta(hours=1))
    assert read_quota.read("default", lambda: 1)


def test_begin_of_a_withdrawn_one_still_starts_the_line() -> None:
    first, second = make(2)
    RenderJob.objects.filter(pk=first.pk).update(cancel_requested_at=timezone.now())
    begun = submission.begin(first.pk)
    assert begun.renders == [second.pk] or [s for s in begun.steps if s.do == "submit"]


def test_the_first_503_is_a_short_pause_whoever_meets_it() -> None:
    """Sume was away for a while (no answers), then says 503 once, without a Retry-After."""
    renders = make(2)
    RenderJob.objects.filter(pk=renders[0].pk).update(submit_attempts=8)

    class Client:
        def submit(self, *args: str) -> None:
            raise BackOff("away", code="unavailable", status=503)

    begun = submission.begin(renders[0].pk)
    submission.send(begun, lambda workspace: Client())  # type: ignore[arg-type,return-value]
    row = Gate.objects.get(pk=RequestType.WRITES)
    assert row.paused_until
    assert (row.paused_until - timezone.now()).total_seconds() <= 5


def test_no_message_waits_longer_than_the_broker_lets_it(settings: Any) -> None:
    settings.RENDERS |= {"PAUSE_SECONDS": 7200, "MAX_PAUSE_SECONDS": 7200}
    [first, _second] = make(2)

    class Client:
        def submit(self, *args: str) -> None:
            raise REFUSED

    steps = submission.send(
        submission.begin(first.pk),
        lambda workspace: Client(),  # type: ignore[arg-type,return-value]
    )
    assert max(step.after for step in steps) <= submission.LONGEST_MESSAGE_SECONDS


def test_a_probe_that_dies_is_followed_without_the_sweep() -> None:
    """The message that finds a try on its way is used up; nothing comes at `probe_until`."""
    renders = make(3)
    gate.pause("default", RequestType.WRITES, REFUSED)
    gate.resume("default")
    assert claims.claim(renders[0].pk).probe  # and its worker is killed
    assert claims.claim(renders[1].pk).steps
