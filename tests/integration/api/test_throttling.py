"""The limits, counted in a real Redis for all processes together."""

from typing import Any

import pytest
from django.contrib.auth import get_user_model
from django.test import Client

from renders.api import throttling
from renders.coordination.connections import redis_client
from renders.demo.embedded_redis import EmbeddedRedis
from renders.models import ApiToken

pytestmark = pytest.mark.django_db
LIMIT = 3


@pytest.fixture(autouse=True)
def limited(redis: EmbeddedRedis, settings: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    settings.RENDERS = {**settings.RENDERS, "API_REQUESTS_PER_MINUTE": LIMIT}
    monkeypatch.setattr(throttling._Rest, "until", 0.0)


def caller(name: str) -> Client:
    user = get_user_model().objects.create_user(name)
    return Client(headers={"Authorization": f"Bearer {ApiToken.issue(user=user, name='T')[1]}"})


def end_the_minute() -> None:
    """What is counted runs out."""
    for key in redis_client().scan_iter("renders:api:*"):
        redis_client().pexpire(key, 0)


def test_who_asks_too_often_waits_for_the_next_minute() -> None:
    ann, bob = caller("ann"), caller("bob")
    replies = [ann.get("/api/renders/") for _ in range(LIMIT + 1)]

    assert [reply.status_code for reply in replies] == [200] * LIMIT + [429]
    left = [reply.headers["RateLimit-Remaining"] for reply in replies]
    assert left == ["2", "1", "0", "0"]
    for reply in replies:
        assert reply.headers["RateLimit-Limit"] == str(LIMIT)
        assert 1 <= int(reply.headers["RateLimit-Reset"]) <= 60
    assert replies[-1].headers["Content-Type"] == "application/problem+json"
    assert replies[-1].headers["Retry-After"] == replies[-1].headers["RateLimit-Reset"]
    assert bob.get("/api/renders/").status_code == 200

    end_the_minute()
    assert ann.get("/api/renders/").status_code == 200


def test_a_person_is_counted_whatever_way_they_come() -> None:
    ann = caller("ann")
    session = Client()
    session.force_login(get_user_model().objects.get())
    for client in (ann, session, ann):
        assert client.get("/api/renders/").status_code == 200

    assert session.get("/api/renders/").status_code == 429
    assert ann.post("/api/renders/", {}, "application/json").status_code == 429


def test_errors_count_and_tell_what_is_left() -> None:
    reply = caller("ann").get("/api/renders/?page=1")

    assert reply.status_code == 422
    assert reply.headers["RateLimit-Remaining"] == str(LIMIT - 1)


def test_a_count_without_an_end_gets_one() -> None:
    ann = caller("ann")
    ann.get("/api/renders/")
    [key] = redis_client().scan_iter("renders:api:user:*")
    redis_client().persist(key)
    ann.get("/api/renders/")

    assert 0 < redis_client().ttl(key) <= 60


def test_wrong_tokens_are_held_up_and_right_ones_are_not() -> None:
    ann = caller("ann")
    wrong = Client(headers={"Authorization": "Bearer renders_wrong"})
    replies = [wrong.get("/api/renders/") for _ in range(throttling.REFUSALS_PER_MINUTE + 1)]

    assert {reply.status_code for reply in replies[:-1]} == {401}
    assert replies[-1].status_code == 429
    assert replies[-1].headers["Retry-After"]
    assert ann.get("/api/renders/").status_code == 200
    elsewhere = wrong.get("/api/renders/", REMOTE_ADDR="192.0.2.1")
    assert elsewhere.status_code == 401


def test_a_redis_that_goes_away_holds_nobody_up(redis: EmbeddedRedis) -> None:
    ann = caller("ann")
    ann.get("/api/renders/")
    redis.stop()

    replies = [ann.get("/api/renders/") for _ in range(LIMIT + 2)]

    assert {reply.status_code for reply in replies} == {200}
