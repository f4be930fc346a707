"""Named queries find the rows that they name, and show a person what they may see."""

from datetime import timedelta

import pytest
from django.contrib.auth.models import AnonymousUser, Permission

from renders import transitions
from renders.models import RenderJob
from renders.states import TERMINAL, Status
from tests.rows import NOW, stored

pytestmark = pytest.mark.django_db

SOON = NOW + timedelta(seconds=30)
EARLIER = NOW - timedelta(seconds=30)
ENDED = set(TERMINAL)
RUNNING = {Status.PENDING, Status.SUBMITTING, Status.SUBMITTED}
RENDERS = RenderJob.objects


def one_of_each():
    return {status: stored(status) for status in Status}


@pytest.mark.parametrize(
    ("query", "states"),
    [
        ("pending", {Status.PENDING}),
        ("in_flight", {Status.SUBMITTING, Status.SUBMITTED}),
        ("terminal", ENDED),
        ("unhandled", ENDED),
    ],
)
def test_a_named_query_finds_its_states(query, states):
    one_of_each()

    assert {render.status for render in getattr(RENDERS, query)()} == states


def test_these_tests_know_every_state():
    assert set(Status) == RUNNING | ENDED


def test_a_handled_render_is_not_unhandled():
    for status in TERMINAL:
        stored(status, handled_at=NOW)

    assert not RENDERS.unhandled().exists()


@pytest.mark.parametrize(
    ("not_before", "found"),
    [(None, True), (NOW, True), (NOW + timedelta(microseconds=1), False)],
)
def test_due_is_what_may_be_sent_now(not_before, found):
    stored(not_before=not_before)

    assert RENDERS.due(NOW).exists() is found


def test_due_renders_come_by_priority_then_turn_then_age():
    late = stored(created_at=EARLIER, turn=1)
    low = stored(priority=-1, created_at=EARLIER - timedelta(days=1))
    young, old = stored(created_at=NOW), stored(created_at=EARLIER)
    high = stored(priority=5, created_at=SOON)

    assert RENDERS.due(NOW).pks(10) == [high.pk, old.pk, young.pk, late.pk, low.pk]
    assert RENDERS.due(NOW).pks(2) == [high.pk, old.pk]


LATE = NOW - timedelta(seconds=45)
A_MOMENT = timedelta(microseconds=1)
BOUNDARIES = [
    pytest.param(
        Status.SUBMITTING,
        "claimed_at",
        lambda: RENDERS.stuck_submitting(NOW, 45),
        id="stuck_submitting",
    ),
    pytest.param(Status.SUBMITTED, "next_poll_at", lambda: RENDERS.late(NOW, 45), id="late"),
    *(
        pytest.param(
            status,
            "next_poll_at",
            lambda: RENDERS.unhandled_late(NOW, 45),
            id=f"unhandled_late, {status}",
        )
        for status in TERMINAL
    ),
    pytest.param(
        Status.PENDING, "created_at", lambda: RENDERS.due(NOW).waiting_since(LATE), id="created"
    ),
    pytest.param(
        Status.PENDING, "not_before", lambda: RENDERS.due(NOW).waiting_since(LATE), id="held back"
    ),
    pytest.param(
        Status.SUBMITTED, "swept_at", lambda: RENDERS.not_swept_since(LATE), id="not_swept_since"
    ),
]


@pytest.mark.parametrize(("status", "field", "query"), BOUNDARIES)
def test_the_sweep_finds_what_is_later_than_the_grace(status, field, query):
    long_ago = NOW - timedelta(days=1)
    stored(status, **{"created_at": long_ago, field: LATE})
    late = stored(status, **{"created_at": long_ago, field: LATE - A_MOMENT})

    assert list(query()) == [late]


@pytest.mark.parametrize("query", ["stuck_submitting", "late", "unhandled_late"])
def test_the_sweep_finds_each_render_for_one_reason_only(query):
    states = {
        "stuck_submitting": {Status.SUBMITTING},
        "late": {Status.SUBMITTED},
        "unhandled_late": ENDED,
    }
    one_of_each()

    found = getattr(RENDERS, query)(NOW + timedelta(days=1), 45)

    assert {render.status for render in found} == states[query]


def test_a_handled_render_is_never_late():
    stored(Status.COMPLETED, handled_at=NOW)

    assert not RENDERS.unhandled_late(NOW + timedelta(days=1), 45).exists()


def test_the_sweep_notes_what_it_put_back():
    swept, other = stored(), stored()

    assert transitions.mark_swept([swept.pk], NOW) == 1

    assert RENDERS.get(pk=swept.pk).swept_at == NOW
    assert RENDERS.get(pk=other.pk).swept_at is None


# --- Who sees what ------------------------------------------------------------------------


def test_a_person_sees_their_own_renders(django_user_model):
    ada = django_user_model.objects.create(username="ada")
    bob = django_user_model.objects.create(username="bob", is_staff=True)
    mine = stored(created_by=ada)
    stored(created_by=bob)
    stored()

    assert list(RENDERS.visible_to(ada)) == [mine]


def test_staff_who_may_view_renders_see_all(django_user_model):
    view = Permission.objects.get(codename="view_renderjob")
    boss = django_user_model.objects.create(username="boss", is_staff=True)
    boss.user_permissions.add(view)
    clerk = django_user_model.objects.create(username="clerk", is_staff=True)
    guest = django_user_model.objects.create(username="guest")
    guest.user_permissions.add(view)
    stored()

    seen = [RENDERS.visible_to(user).count() for user in (boss, clerk, guest)]

    assert seen == [1, 0, 0]


def test_a_visitor_sees_no_render():
    stored()

    assert not RENDERS.visible_to(AnonymousUser()).exists()
