"""The process's connections to Redis, made from the settings at first use."""

from functools import lru_cache
from typing import Any

from renders.conf import conf
from renders.coordination.clients import REDIS_DOWN as REDIS_DOWN  # the app goes on despite these
from renders.coordination.clients import connect
from renders.coordination.due_set import SortedSet
from renders.coordination.leases import Leases, Unshared


def uses_redis() -> bool:
    """Whether Redis is used: the scheduler `database` needs none."""
    return conf.SCHEDULER != "database"


def redis_client() -> Any:
    """The client for Redis: a `redis.Redis`, or for a cluster one with the same methods.

    Its time-outs are short, so that an outage costs little. No connection is made yet.
    """
    return _redis(conf.REDIS_URL)


def poll_leases() -> Leases:
    """The leases for reading or finishing a render."""
    return _leases(redis_client(), "sume:poll:") if uses_redis() else Unshared()


def media_leases() -> Leases:
    """The leases for storing a render's media."""
    return _leases(redis_client(), "sume:media:") if uses_redis() else Unshared()


def tick_leases() -> Leases:
    """The leases for the ticks that read due renders of the sorted set."""
    return _leases(redis_client(), "sume:tick:")


def polls() -> SortedSet:
    """The sorted set of due reads."""
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
