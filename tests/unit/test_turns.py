"""Users take turns, however many renders one of them adds."""

import pytest
from django.utils import timezone

from renders import batches, services
from renders.models import RenderJob
from renders.states import Status

pytestmark = pytest.mark.django_db
RENDERS = RenderJob.objects


@pytest.fixture
def users(django_user_model):
    return [django_user_model.objects.create(username=name) for name in ("ada", "bob", "cy")]


def add(count, user=None, **fields):
    requests = [{"prompt": "a fox", **fields}] * count
    return services.create_renders(requests, user=user)


def send(count):
    """Claim the next ones; returns whose they are."""
    pks = RENDERS.due(timezone.now()).pks(count)
    for pk in pks:
        assert RENDERS.claim(pk, timezone.now(), "default")
    rows = RENDERS.in_bulk(pks)
    return [rows[pk].created_by.username if rows[pk].created_by else "" for pk in pks]


def test_one_render_waits_for_one_of_each_other_user_at_most(users):
    ada, bob, cy = users
    add(50, ada)
    add(50, bob)
    add(1, cy)

    assert send(6) == ["ada", "bob", "cy", "ada", "bob", "ada"]


def test_who_comes_later_is_next_and_not_first_for_all_that_others_had(users):
    ada, bob, _ = users
    add(50, ada)
    send(20)
    add(10, bob)

    assert send(6) == ["ada", "bob"] * 3


def test_a_later_batch_of_the_same_user_waits_behind_the_first(users):
    ada, bob, _ = users
    add(3, ada)
    add(3, ada)
    add(2, bob)

    assert send(8) == ["ada", "bob", "ada", "bob", "ada", "ada", "ada", "ada"]


def test_programs_together_are_one_user(users):
    add(5)
    add(5)
    add(2, users[0])

    assert send(4) == ["", "ada"] * 2


def test_turns_are_taken_within_a_level_of_priority(users):
    ada, bob, cy = users
    add(5, ada)
    add(3, bob, priority=5)
    add(1, cy, priority=5)
    add(1, ada, priority=5)

    assert send(6) == ["bob", "cy", "ada", "bob", "bob", "ada"]


def test_what_was_deleted_since_gives_nobody_an_advantage(users):
    ada, bob, _ = users
    add(10, ada)
    send(5)
    RENDERS.filter(status=Status.SUBMITTING).delete()
    add(10, bob)

    assert send(4) == ["ada", "bob"] * 2


def test_what_was_held_returns_as_if_it_were_new(users):
    ada, bob, _ = users
    add(5, ada)
    batches.hold_renders(RENDERS.all())
    add(20, bob)
    send(10)

    batches.release_renders(RENDERS.all())

    assert send(4) in (["bob", "ada"] * 2, ["ada", "bob"] * 2)


def test_a_second_release_gives_what_was_claimed_since_no_new_turn(users, monkeypatch):
    ada, bob, _ = users
    add(20, ada)
    batches.hold_renders(RENDERS.filter(pk__in=RENDERS.due(timezone.now()).pks(1)))
    unhold = RENDERS.unhold_many

    def both_have_chosen_it(pks, now):
        assert unhold(pks, now) == pks
        assert RENDERS.claim(pks[0], now, "default")
        return unhold(pks, now)

    monkeypatch.setattr(RENDERS, "unhold_many", both_have_chosen_it)
    batches.release_renders(RENDERS.all())
    add(1, bob)

    assert "bob" in send(3)


def test_what_returns_at_once_takes_turns_with_the_others(users):
    ada, bob, _ = users
    add(5, ada)
    add(5, bob)
    theirs = RENDERS.filter(created_by=ada)
    batches.hold_renders(theirs)
    batches.release_renders(theirs)

    assert sorted(send(4)) == ["ada", "ada", "bob", "bob"]


def test_one_that_is_claimed_before_its_turn_moves_the_line_for_nobody(users):
    ada, bob, _ = users
    add(20, ada)
    [last] = add(1, ada)
    assert RENDERS.claim(last.pk, timezone.now(), "default")
    add(1, bob)

    assert "bob" in send(2)


def test_what_waits_to_be_sent_again_lets_nobody_push_in(users):
    ada, bob, _ = users
    now = timezone.now()
    renders = add(20, ada)
    send(10)
    RENDERS.release(
        renders[0].pk,
        RENDERS.get(pk=renders[0].pk).claimed_at,
        not_before=now,
        code="rate_limited",
        message="Later.",
    )
    add(10, bob)

    assert send(5)[1:] in (["ada", "bob"] * 2, ["bob", "ada"] * 2)


def test_without_turns_the_oldest_goes_first(users, settings):
    ada, bob, _ = users
    add(3, ada)
    settings.RENDERS = {**settings.RENDERS, "FAIR": False}
    add(2, bob)
    add(1, ada)

    assert send(6) == ["ada", "ada", "ada", "bob", "bob", "ada"]


def test_each_line_has_turns_of_its_own(users, settings):
    settings.RENDERS = {**settings.RENDERS, "WORKSPACES": {"acme": {"API_KEY": "k"}}}
    ada, bob, _ = users
    add(5, ada, workspace="acme")
    add(2, ada)
    add(2, bob)

    theirs = RENDERS.filter(workspace="default").due(timezone.now())
    assert [row.created_by.username for row in theirs] == ["ada", "bob"] * 2
