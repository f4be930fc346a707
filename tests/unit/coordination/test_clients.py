"""A Redis that does not answer is left alone for a while; one that refuses is asked as ever."""

import pytest
import redis

from renders.coordination import clients
from renders.coordination.clients import connect


@pytest.fixture
def clock(monkeypatch):
    now = [100.0]
    monkeypatch.setattr(clients.time, "monotonic", lambda: now[0])
    return now


def asked(monkeypatch, error):
    """How often a server is asked that answers with this error."""
    calls = []

    def execute(self, *args, **options):
        calls.append(args)
        raise error

    monkeypatch.setattr(redis.Redis, "execute_command", execute)
    client = connect("redis://127.0.0.1:9/0")
    for _ in range(3):
        with pytest.raises(type(error)):
            client.get("a")
    return client, calls


def test_one_that_does_not_answer_is_asked_once_in_a_while(monkeypatch, clock):
    client, calls = asked(monkeypatch, redis.TimeoutError("slow"))
    assert len(calls) == 1

    clock[0] += clients.REST_SECONDS
    with pytest.raises(redis.TimeoutError, match="slow"):
        client.get("a")

    assert len(calls) == 2


def test_one_that_refuses_connections_is_asked_each_time(monkeypatch, clock):
    _, calls = asked(monkeypatch, redis.ConnectionError("refused"))

    assert len(calls) == 3
