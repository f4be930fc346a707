"""Many rows at once: each once, in few messages, and nothing stranded by a crash."""

from datetime import timedelta

import pytest
from django.utils import timezone

from renders import services, transitions
from renders.lifecycle.steps import Step
from renders.models import RenderEvent, RenderJob
from renders.services import bulk
from renders.states import Status
from tests.rows import NOW, stored
from tests.unit.services.test_services import committed

__all__ = ["committed"]
pytestmark = pytest.mark.django_db
RENDERS = RenderJob.objects


@pytest.fixture(autouse=True)
def small_batches(monkeypatch):
    monkeypatch.setattr(bulk, "BATCH", 10)


def make(count):
    return services.create_renders([{"prompt": f"fox {number}"} for number in range(count)])


def count_of(what):
    return RenderEvent.objects.filter(what=what).count()


def test_many_that_were_never_sent_are_canceled_in_few_messages(followed, committed):
    make(45)
    with committed():
        tally = bulk.cancel_renders(RENDERS.all())

    assert (tally.done, tally.unreached, len(tally.named)) == (45, 0, 45)
    assert RENDERS.filter(status=Status.CANCELED, cost_usd_micros=0).count() == 45
    assert count_of("canceled") == 45
    # Each finish starts the next.
    assert [step.do for step in followed] == ["finish"] * services.STARTERS


def test_sume_is_asked_within_the_minute_and_the_rest_wait_for_their_read(
    followed, committed, settings
):
    settings.RENDERS = {"WRITES_PER_MINUTE": 12}
    for _ in range(30):
        stored(Status.SUBMITTED)
    stored(Status.SUBMITTING)
    with committed():
        tally = bulk.cancel_renders(RENDERS.all())

    assert tally.done == 31
    assert count_of("cancel requested") == 31
    assert [step.do for step in followed] == ["cancel"] * 12
    assert bulk.cancel_renders(RENDERS.all()).done == 0


def test_what_sume_may_hold_is_asked_for_and_not_ended():
    unsure = stored(outcome_unknown_at=NOW)
    bulk.cancel_renders(RENDERS.all())

    unsure.refresh_from_db()
    assert (unsure.status, bool(unsure.cancel_requested_at)) == (Status.PENDING, True)


def test_each_is_retried_once_for_its_owner(followed, committed, django_user_model):
    ada, bob = (django_user_model.objects.create(username=name) for name in ("ada", "bob"))
    for number in range(25):
        owner = ada if number % 2 else None
        stored(Status.FAILED, prompt=f"fox {number}", created_by=owner, params={"seed": number})
    stored(Status.COMPLETED)
    with committed():
        tally = bulk.retry_renders(RENDERS.all(), bob)

    assert tally.done == 25
    new = RENDERS.pending().select_related("retry_of")
    assert {(row.prompt, row.params["seed"]) for row in new} == {
        (row.retry_of.prompt, row.retry_of.params["seed"]) for row in new
    }
    assert {row.created_by for row in new} == {ada, bob}
    assert count_of("created") == 25
    assert [step.do for step in followed] == ["submit"] * services.STARTERS
    assert bulk.retry_renders(RENDERS.all(), bob).done == 0


def test_what_a_limit_forbids_since_is_not_retried(settings):
    stored(Status.FAILED, prompt="a very long fox")
    short = stored(Status.FAILED, prompt="a fox")
    settings.RENDERS = {"MAX_PROMPT_LENGTH": 8}

    assert bulk.retry_renders(RENDERS.all(), None).done == 1
    assert RENDERS.get(retry_of__isnull=False).retry_of == short


def test_held_renders_are_released_with_one_message(followed, committed):
    renders = make(15)
    with committed():
        assert bulk.hold_renders(RENDERS.all()).done == 15
    assert followed == []
    with committed():
        assert bulk.release_renders(RENDERS.all()).done == 15
    assert followed == [Step("submit", renders[0].pk)]
    assert not RENDERS.filter(held_at__isnull=False).exists()


def test_check_now_counts_what_the_service_moved(monkeypatch):
    for _ in range(15):
        stored(Status.SUBMITTED)
    asked = []
    monkeypatch.setattr(services, "check_now", lambda pks: asked.append(len(pks)) or len(pks))

    assert bulk.check_renders(RENDERS.all()).done == 15
    assert asked == [10, 5]


def test_what_is_made_meanwhile_is_left_alone():
    make(5)
    stored(created_at=timezone.now() + timedelta(seconds=60))

    assert bulk.cancel_renders(RENDERS.all()).done == 5


def test_a_crash_between_batches_leaves_whole_ones_and_the_next_call_goes_on(followed, monkeypatch):
    make(25)
    real = transitions.cancel_unsent_many
    calls = []

    def dies(pks, now, **more):
        calls.append(pks)
        if len(calls) == 3:  # the second batch
            raise MemoryError
        return real(pks, now, **more)

    monkeypatch.setattr(transitions, "cancel_unsent_many", dies)
    with pytest.raises(MemoryError):
        bulk.cancel_renders(RENDERS.all())

    canceled = RENDERS.filter(status=Status.CANCELED)
    assert canceled.count() == count_of("canceled") == 10
    # Whoever's message was lost, the sweep finds them.
    assert RENDERS.unhandled_late(timezone.now() + timedelta(seconds=60), 30).count() == 10
    monkeypatch.undo()
    assert bulk.cancel_renders(RENDERS.all()).done == 15


def test_a_batch_takes_few_statements(django_assert_max_num_queries, monkeypatch):
    monkeypatch.setattr(bulk, "BATCH", 500)
    make(100)
    with django_assert_max_num_queries(35):
        bulk.cancel_renders(RENDERS.all())
