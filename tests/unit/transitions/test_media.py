"""Transitions of media: who wins, who loses, and that a loser changes nothing."""

from datetime import timedelta

import pytest

from renders import transitions
from renders.media import storing
from renders.models import RenderJob
from renders.states import Status
from tests.rows import NOW, stored

pytestmark = pytest.mark.django_db
RENDERS = RenderJob.objects
SOON, BEFORE = NOW + timedelta(seconds=60), NOW - timedelta(seconds=60)


def linked(**changes):
    """Handled with one file of two; a late try began at `NOW`."""
    artifacts = [{"url": "https://a.example/0", "file": "zero"}, {"url": "https://a.example/1"}]
    fields = {"handled_at": BEFORE, "media_due_at": NOW, "taken_at": NOW}
    return stored(Status.COMPLETED, result={"artifacts": artifacts}, **{**fields, **changes})


def row(render):
    return RenderJob.objects.filter(pk=render.pk).values().get()


def events(render):
    return [event.what for event in render.events.all()]


MOVES = {
    "plan_late_media": (lambda pk: transitions.plan_late_media(pk, SOON), []),
    "ask_media": (
        lambda pk: transitions.ask_media(pk, SOON, 30, storing.TRIES, storing.MOST),
        ["media asked for"],
    ),
    "begin_late_media": (lambda pk: transitions.begin_late_media(pk, NOW, NOW, SOON, []), []),
    "end_late_try": (
        lambda pk: transitions.end_late_try(
            pk, 1, NOW, SOON, ("media postponed", "No."), failures=6
        ),
        ["media postponed"],
    ),
    "end_late_try, stored": (
        lambda pk: transitions.end_late_try(pk, 1, None, SOON, None, file="a"),
        [],
    ),
    "mark_media_stored": (lambda pk: transitions.mark_media_stored(pk, NOW), ["media stored"]),
    "postpone_media_stored": (
        lambda pk: transitions.postpone_media_stored(pk, NOW, SOON, "It raised."),
        ["finish postponed"],
    ),
}
OTHERS = {
    "not handled": {"handled_at": None},
    "being removed": {"removing_at": NOW},
    "removed": {"media_removed_at": NOW},
    "erased": {"erased_at": NOW},
}


@pytest.mark.parametrize("name", MOVES)
def test_a_late_move_of_a_handled_render_wins_and_changes_no_other(name):
    render, bystander = linked(), linked()
    before = row(bystander)

    assert MOVES[name][0](render.pk)

    assert row(render)["status"] == Status.COMPLETED
    assert events(render) == MOVES[name][1]
    assert row(bystander) == before


@pytest.mark.parametrize("other", OTHERS)
@pytest.mark.parametrize("name", MOVES)
def test_no_late_move_touches_what_is_not_handled_or_was_taken_away(name, other):
    render = linked(**OTHERS[other])
    before = row(render)

    assert not MOVES[name][0](render.pk)

    assert row(render) == before
    assert events(render) == []


@pytest.mark.parametrize("status", [one for one in Status if one != Status.COMPLETED])
@pytest.mark.parametrize("name", MOVES)
def test_only_what_was_completed_has_late_moves(name, status):
    render = stored(status, media_due_at=NOW, taken_at=NOW)

    assert not MOVES[name][0](render.pk)


@pytest.mark.parametrize("name", ["begin_late_media", "mark_media_stored", "postpone_media_stored"])
def test_of_two_that_know_when_it_was_due_the_first_wins(name):
    render = linked()

    assert MOVES[name][0](render.pk)
    assert not MOVES[name][0](render.pk)


def test_a_failure_counts_for_the_try_that_began_last_and_a_file_is_welcome_from_any():
    render = linked()
    assert not transitions.end_late_try(render.pk, 1, BEFORE, SOON, None, failures=9)
    assert transitions.end_late_try(render.pk, 1, BEFORE, SOON, None, file="one")
    assert not transitions.end_late_try(render.pk, 1, NOW, SOON, None, file="two")

    render.refresh_from_db()
    assert [one["file"] for one in render.artifacts] == ["zero", "one"]
    assert render.taken_at == NOW  # the other try is still under way


def test_fresh_links_replace_those_of_what_is_not_stored():
    render = linked()
    links = ["https://a.example/0?new", "https://a.example/1?new"]

    transitions.end_late_try(render.pk, 1, NOW, SOON, None, links=links, failures=6)

    render.refresh_from_db()
    urls = [str.__str__(one["url"]) for one in render.artifacts]
    assert urls == ["https://a.example/0", "https://a.example/1?new"]


@pytest.mark.parametrize(
    ("taken_at", "won"), [(None, True), (NOW - timedelta(seconds=31), True), (NOW, False)]
)
def test_a_person_does_not_disturb_a_try_under_way(taken_at, won):
    render = linked(taken_at=taken_at)

    assert transitions.ask_media(render.pk, NOW, 30, storing.TRIES, storing.MOST) is won


def test_where_nothing_is_missing_nobody_can_ask_for_it():
    render = linked(taken_at=None)

    assert not transitions.ask_media(render.pk, NOW, 30, storing.TRIES, 1)
    assert transitions.ask_media(render.pk, NOW, 30, storing.TRIES, 2)


def test_a_result_is_kept_once_so_that_what_was_stored_since_stays():
    render = stored(Status.COMPLETED)
    first = [{"url": "https://a.example/0"}]

    assert transitions.store_result(render.pk, NOW, first, 7)
    transitions.keep_artifact(render.pk, 0, SOON, None, file="zero")
    assert not transitions.store_result(render.pk, NOW, first, 7, ("media limited", "Many."))

    render.refresh_from_db()
    assert render.artifacts[0]["file"] == "zero"
    assert events(render) == []


@pytest.mark.parametrize(
    ("ahead", "due"),
    [(0, True), (60, False), (24 * 3600, False), (25 * 3600, True)],
    ids=["now", "soon", "in a day", "by a clock that was put back"],
)
def test_what_is_due_is_found_of_these_workspaces_alone(ahead, due):
    render = linked(media_due_at=NOW + timedelta(seconds=ahead))

    assert list(RENDERS.media_due(NOW, ["default"])) == [render] * due
    assert not RENDERS.media_due(NOW, ["acme"]).exists()
