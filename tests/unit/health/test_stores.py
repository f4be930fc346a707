"""Redis that is away, and a beat that is silent."""

import time

import pytest
import redis

from renders.health import stores
from renders.telemetry import celery_signs


class FakeRedis:
    def __init__(self):
        self.kept = {}
        self.away = False

    def get(self, key):
        if self.away:
            raise redis.TimeoutError("secret")
        return self.kept.get(key)


@pytest.fixture
def server(monkeypatch, settings):
    settings.RENDERS = {**settings.RENDERS, "SWEEP_SECONDS": 10}
    fake = FakeRedis()
    monkeypatch.setattr(stores, "redis_client", lambda: fake)
    return fake


@pytest.mark.parametrize(
    ("told", "code"),
    [(None, "beat-silent"), (b"nonsense", "beat-silent"), (50.0, "beat-silent"), (20.0, "")],
)
def test_beat_is_missed_after_three_sweeps(server, told, code):
    """`told` is what stands in Redis, or the age of the sign in seconds."""
    sign = f"{time.time() - told}".encode() if isinstance(told, float) else told
    server.kept[celery_signs.KEY] = sign

    assert stores.answers()[0].code == ""
    assert stores.beat()[0].code == code


def test_a_redis_that_is_away_is_told_without_its_address(server):
    server.away = True

    for ask in (stores.answers, stores.beat):
        [found] = ask()
        assert (found.code, found.said) == (
            "redis-away",
            "Redis does not answer (TimeoutError).",
        )


GOOD = {"maxmemory_policy": "noeviction", "aof_enabled": 1, "redis_version": "7"}


@pytest.mark.parametrize(
    ("info", "codes"),
    [
        ({}, [""]),
        ({"maxmemory_policy": "allkeys-lru"}, ["redis-may-evict"]),
        ({"evicted_keys": 3}, ["redis-evicted"]),
        ({"maxmemory": 100, "used_memory": 91}, ["redis-full"]),
        ({"maxmemory": 0, "used_memory": 91}, [""]),
        ({"aof_enabled": 0}, ["redis-forgets"]),
    ],
)
def test_what_a_redis_may_lose_is_told(info, codes):
    assert [one.code for one in stores.judged({**GOOD, **info}, "Redis")] == codes


def test_of_a_cluster_each_node_is_looked_at_and_told_once():
    bad = {**GOOD, "evicted_keys": 1}

    told = stores.judged({"a": dict(GOOD), "b": bad, "c": bad}, "Redis")

    assert [one.code for one in told] == ["redis-evicted"]
