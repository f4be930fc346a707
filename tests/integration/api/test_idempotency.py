"""Two equal requests at the same time make one render, and both get it."""

import json
import threading
from collections.abc import Callable
from typing import Any

from django.contrib.auth import get_user_model
from django.db import connection
from django.http import HttpResponse
from django.test import Client

from renders.models import ApiRequest, ApiToken, RenderEvent, RenderJob

CALLERS = 4


def at_once(ask: Callable[[int], HttpResponse]) -> list[Any]:
    """The replies to as many callers, each in a thread of its own, let go together."""
    replies: list[Any] = [None] * CALLERS
    start = threading.Barrier(CALLERS)

    def call(number: int) -> None:
        try:
            connection.ensure_connection()
            start.wait(20)
            replies[number] = ask(number)
        finally:
            connection.close()

    threads = [threading.Thread(target=call, args=[number]) for number in range(CALLERS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    return replies


def poster(**headers: str) -> Callable[[Any], HttpResponse]:
    """Posts a body as one user."""
    user = get_user_model().objects.create_user("ann")
    sent = {"Authorization": f"Bearer {ApiToken.issue(user=user, name='Test')[1]}", **headers}

    def post(body: Any) -> HttpResponse:
        return Client().post("/api/renders/", json.dumps(body), "application/json", headers=sent)

    return post


def test_equal_requests_at_once_make_one_render(database: str, redis: Any) -> None:
    post = poster(**{"Idempotency-Key": "one"})
    for _ in range(3):
        ApiRequest.objects.all().delete()
        RenderJob.objects.all().delete()

        replies = at_once(lambda number: post({"renders": [{"prompt": "A boat"}] * 3}))

        assert [reply.status_code for reply in replies] == [202] * CALLERS
        assert RenderJob.objects.count() == 3
        assert len({tuple(row["id"] for row in reply.json()["renders"]) for reply in replies}) == 1
        replayed = [reply.headers.get("Idempotency-Replayed") for reply in replies]
        assert sorted(map(str, replayed)) == ["None", *["true"] * (CALLERS - 1)]
        assert RenderEvent.objects.filter(what="created").count() == 3


def test_of_different_requests_with_one_key_one_wins(database: str, redis: Any) -> None:
    post = poster(**{"Idempotency-Key": "one"})

    replies = at_once(lambda number: post({"prompt": f"Boat {number}"}))

    assert sorted(reply.status_code for reply in replies) == [202, *[409] * (CALLERS - 1)]
    assert RenderJob.objects.count() == 1


def test_of_different_requests_with_one_reference_one_wins(database: str, redis: Any) -> None:
    post = poster()

    replies = at_once(lambda number: post({"prompt": f"Boat {number}", "reference": "order-1"}))

    assert sorted(reply.status_code for reply in replies) == [202, *[409] * (CALLERS - 1)]
    assert RenderJob.objects.count() == 1
