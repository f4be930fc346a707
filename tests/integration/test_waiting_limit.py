"""Requests of one person at the same time never exceed the number that may wait."""

from collections.abc import Callable
from typing import Any

import pytest
from django.contrib.auth import get_user_model

from renders import services
from renders.exceptions import LineFull
from renders.models import RenderJob
from renders.references import door
from renders.states import Status
from tests.integration.test_references import at_once
from tests.unit.test_models import stored

pytestmark = pytest.mark.usefixtures("database", "redis")
CALLERS = 6


@pytest.fixture
def ann(settings: Any) -> Any:
    settings.RENDERS = {**settings.RENDERS, "MAX_WAITING_PER_USER": 5}
    return get_user_model().objects.create_user("ann")


def made_and_refused(*calls: Callable[[], Any]) -> tuple[int, int]:
    """How many of these calls made their renders, and how many met a full line."""
    results = at_once(*calls)
    refused = [result for result in results if isinstance(result, LineFull)]
    others = [result for result in results if isinstance(result, Exception)]
    assert len(others) == len(refused), others
    return len(results) - len(refused), len(refused)


def test_requests_at_once_do_not_exceed_the_limit(ann: Any) -> None:
    requests = [{"prompt": "a fox"}, {"prompt": "a hen"}]
    calls = [lambda: services.create(requests, ann, door(ann))] * CALLERS
    for _ in range(5):  # the race has more than one way to go
        RenderJob.objects.all().delete()

        assert made_and_refused(*calls) == (2, CALLERS - 2)
        assert RenderJob.objects.count() == 4


def test_retries_and_requests_at_once_do_not_exceed_the_limit(ann: Any) -> None:
    failed = [stored(Status.FAILED, created_by=ann) for _ in range(4)]
    retries = [lambda row=row: services.retry_once(row, ann) for row in failed]
    calls = [lambda: services.create([{"prompt": "a fox"}], ann, door(ann))] * 4

    assert made_and_refused(*retries, *calls) == (5, 3)
    assert RenderJob.objects.waiting().count() == 5


def test_people_do_not_wait_for_each_other(ann: Any) -> None:
    users = [get_user_model().objects.create_user(f"user {number}") for number in range(4)]
    calls = [
        lambda user=user: services.create([{"prompt": "a fox"}] * 5, user, door(user))
        for user in users
    ]

    assert made_and_refused(*calls) == (4, 0)


def test_requests_at_once_of_who_has_no_limit_share_no_turn(ann: Any, settings: Any) -> None:
    settings.RENDERS = {**settings.RENDERS, "MAX_WAITING_PER_USER": 0}
    calls = [lambda: services.create([{"prompt": "a fox"}] * 3, ann, door(ann))] * CALLERS

    assert made_and_refused(*calls) == (CALLERS, 0)
    turns = RenderJob.objects.values_list("turn", flat=True)
    assert len(set(turns)) == len(turns) == 3 * CALLERS
