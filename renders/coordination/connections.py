"""The process's connections to Redis, made from the settings at first use."""

from functools import lru_cache
from typing import Any

from renders.conf import conf
from renders.coordination.clients import REDIS_DOWN as REDIS_DOWN  # what the app lives through
from renders.coordination.clients import connect
from renders.coordination.due_set import SortedSet
from renders.coordination.leases import Leases, Unshared


def uses_redis() -> bool:
    """Whether there is a Redis at all: the scheduler `database` does without."""
    return conf.SCHEDULER != "database"


def redis_client() -> Any:
    """The client for Redis (a `redis.Redis`, or for a cluster what works as its own does).

    Its time-outs are short, so that an outage costs little. To get it asks no server.
    """
    return _redis(conf.REDIS_URL)


def poll_leases() -> Leases:
    """The leases of those who read a job, or finish it."""
    return _leases(redis_client(), "sume:poll:") if uses_redis() else Unshared()


def media_leases() -> Leases:
    """The leases of those who store a picture or a clip."""
    return _leases(redis_client(), "sume:media:") if uses_redis() else Unshared()


def tick_leases() -> Leases:
    """The leases of the ticks that read what is due in the sorted set."""
    return _leases(redis_client(), "sume:tick:")


def polls() -> SortedSet:
    """The sorted set of what is to be read."""
    return _polls(redis_client())


@lru_cache(maxsize=8)
def _leases(client: Any, prefix: str) -> Leases:
    return Leases(client, prefix)


@lru_cache(maxsize=8)
def _polls(client: Any) -> SortedSet:
    return SortedSet(client)


@lru_cache(maxsize=8)
def _redis(url: str) -> Any:
    return connect(url)
