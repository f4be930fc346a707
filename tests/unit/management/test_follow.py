from datetime import timedelta
from typing import Any
from unittest.mock import patch

import pytest
from django.db import OperationalError
from django.utils import timezone

from renders.management.follow import End, Following, did_as_asked, has_ended
from renders.models import RenderJob
from renders.models.querysets import RenderQuerySet
from renders.states import Status

pytestmark = pytest.mark.django_db


def make(prompt: str = "a red fox", **fields: Any) -> RenderJob:
    return RenderJob.objects.create(prompt=prompt, **fields)


def end(render: RenderJob, status: str = Status.COMPLETED, **fields: Any) -> None:
    """What the tasks do, told in one UPDATE."""
    now = timezone.now()
    RenderJob.objects.filter(pk=render.pk).update(
        status=status,
        sume_job_id="job_1",
        submitted_at=now,
        finished_at=now,
        handled_at=now,
        next_poll_at=None,
        **fields,
    )


def follow(following: Following, *changes: Any, **times: float) -> tuple[End, list[list[str]]]:
    """Follow; after the first showing run the first change, and so on. Gives what was shown."""
    shown: list[list[str]] = []
    steps = list(changes)

    def show(now: Following) -> None:
        shown.append([render.status for render in now.renders])
        if steps:
            steps.pop(0)()

    return following.until_end(show, interval=0.01, **times), shown


def test_it_ends_when_all_have_ended_and_were_handled() -> None:
    first, second = make(), make()
    end(first)
    result, shown = follow(Following([first, second]), lambda: end(second, Status.FAILED))
    assert result is End.ENDED
    assert shown == [["completed", "pending"], ["completed", "failed"]]


def test_a_render_that_is_not_handled_yet_has_not_ended() -> None:
    render = make()
    end(render)
    RenderJob.objects.update(handled_at=None, next_poll_at=timezone.now())
    render.refresh_from_db()
    assert render.is_terminal
    assert not has_ended(render)


def test_it_stops_at_its_timeout() -> None:
    result, _ = follow(Following([make()]), timeout=0.05)
    assert result is End.TIMED_OUT


def test_it_stops_when_nothing_moves() -> None:
    result, _ = follow(Following([make()]), patience=0.05)
    assert result is End.STALLED


def test_each_move_is_a_reason_to_wait_on() -> None:
    render = make()
    moves = [lambda n=n: RenderJob.objects.update(submit_attempts=n) for n in range(1, 20)]
    result, shown = follow(Following([render]), *moves, patience=0.05)
    assert result is End.STALLED
    assert len(shown) > len(moves)


def test_a_time_in_the_future_is_waited_for() -> None:
    due = timezone.now() + timedelta(seconds=0.3)
    result, _ = follow(Following([make(not_before=due)]), patience=0.01)
    assert result is End.STALLED
    assert timezone.now() > due


def test_a_deleted_render_is_counted_and_not_waited_for() -> None:
    render = make()
    following = Following([render])
    RenderJob.objects.all().delete()
    result, _ = follow(following)
    assert result is End.ENDED
    assert following.deleted == 1


def test_an_outage_of_the_database_is_lived_through() -> None:
    render = make()
    following = Following([render])
    outage = patch.object(RenderQuerySet, "in_bulk", side_effect=OperationalError)
    with outage, patch("renders.management.follow.connection"):
        following.read()
    assert not following.database_answers
    assert following.renders == [render]
    following.read()
    assert following.database_answers


@pytest.mark.parametrize(
    ("prompt", "status", "sandbox", "right"),
    [
        ("a red fox", Status.COMPLETED, False, True),
        ("a red fox", Status.FAILED, False, False),
        ("a red fox", Status.CANCELED, False, False),
        ("FAIL please", Status.FAILED, False, False),
        ("FAIL please", Status.FAILED, True, True),
        ("REJECT this", Status.FAILED, True, True),
        ("REJECT this", Status.COMPLETED, True, False),
        ("do not FAIL", Status.FAILED, True, False),
    ],
)
def test_as_it_should(prompt: str, status: str, sandbox: bool, right: bool) -> None:
    render = RenderJob(prompt=prompt, status=status)
    assert did_as_asked(render, sandbox=sandbox) is right
