"""The process's connections to Sume and Redis, made from the settings at first use."""

import os
import threading
from collections.abc import Callable
from functools import lru_cache
from typing import Any

from renders import workspaces
from renders.client import SumeClient
from renders.conf import conf
from renders.lease import Leases, Unshared
from renders.redis_clients import REDIS_DOWN as REDIS_DOWN  # what the app lives through
from renders.redis_clients import connect
from renders.sortedset import SortedSet

# Gives the client of a workspace, so that each render is sent and read with its own key.
Clients = Callable[[str], SumeClient]

_clients: dict[str, tuple[tuple[str, str, float, int], SumeClient]] = {}
_lock = threading.Lock()


def sume(workspace: str) -> SumeClient:
    """The client for one account at Sume. Sessions inside are one per process and thread.

    Kept until the workspace's key changes. Raises `UnknownWorkspace`.
    """
    account = workspaces.get(workspace)
    timeout, pool_size = conf.REQUEST_TIMEOUT_SECONDS, conf.READS_AT_ONCE
    made_of = (account.api_key, account.base_url, timeout, pool_size)
    with _lock:
        known = _clients.get(workspace)
        if known is None or known[0] != made_of:
            client = SumeClient(
                account.api_key, account.base_url, timeout=timeout, pool_size=pool_size
            )
            known = _clients[workspace] = (made_of, client)
        return known[1]


def _unlock() -> None:
    """In a child: what a thread of its parent's held, nobody gives back."""
    global _lock
    _lock = threading.Lock()


os.register_at_fork(after_in_child=_unlock)


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
