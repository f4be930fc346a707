"""The Redis client for a URL: one server, a cluster, or a master watched by sentinels.

Time-outs are short and nothing is retried, so that an outage costs little: callers go on without
Redis.
"""

import hashlib
import threading
import time
from collections.abc import Callable, Sequence
from typing import Any

import redis
from redis.backoff import NoBackoff
from redis.cluster import ClusterNode, RedisCluster
from redis.credentials import UsernamePasswordCredentialProvider
from redis.exceptions import ClusterError, NoScriptError, RedisClusterException
from redis.retry import Retry
from redis.sentinel import Sentinel

from renders.conf.redis_url import RedisUrl, read

# The errors of a client while its servers are down or refuse commands.
REDIS_DOWN = (
    redis.ConnectionError,
    redis.TimeoutError,
    redis.ResponseError,
    ClusterError,
    RedisClusterException,
    OSError,
)

SECONDS = 2.0
# Nodes of a cluster are asked in turn for its slots, and sentinels in turn for the master.
NODE_SECONDS = 1.0
SHORTEST_SECONDS = 0.5
# How long a server that did not answer is not asked again; likewise a cluster without answer.
REST_SECONDS = 3.0


def connect(url: str) -> Any:
    """A `redis.Redis` or a `Cluster`; no connection is made yet.

    Raises `ValueError` if the URL cannot be parsed.
    """
    address = read(url)
    if address is None:
        return Patient.from_url(url, health_check_interval=25, retry=None, **_patience(SECONDS))
    return _master(address) if address.service else Cluster(address)


def account(username: str | None, password: str | None) -> dict[str, Any]:
    """The account as arguments for redis-py: not as plain words, which some of its errors show."""
    if not username and not password:
        return {}
    return {"credential_provider": UsernamePasswordCredentialProvider(username, password)}


class Patient(redis.Redis):
    """A client that stops asking for a while after a time-out, since each try would take as long.

    After a refused connection it goes on asking: that costs nothing, and Redis may be back.
    """

    _rests_until = 0.0

    def execute_command(self, *args: Any, **options: Any) -> Any:
        """As redis-py's, but raises `redis.TimeoutError` at once while it rests."""
        if time.monotonic() < self._rests_until:
            raise redis.TimeoutError("Redis did not answer a moment ago.")
        try:
            return super().execute_command(*args, **options)
        except redis.TimeoutError:
            self._rests_until = time.monotonic() + REST_SECONDS
            raise


class Cluster:
    """The client for a cluster: a `RedisCluster` that is made at first use.

    redis-py's own asks all nodes when it is made and after each failure, in every thread. Here one
    thread asks. If no node answers, all callers get `redis.ConnectionError` for `REST_SECONDS`;
    then the nodes in the URL are asked again.
    """

    def __init__(self, address: RedisUrl) -> None:
        self._address = address
        self._asking = threading.RLock()
        self._client: Any = None
        self._rests_until = 0.0

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self._address.hosts}>"

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):  # `copy` and debuggers ask for such names; no command has one
            raise AttributeError(name)
        return getattr(self._connected(), name)

    def close(self) -> None:
        """Close the connections, if there are any."""
        if self._client is not None:
            self._client.close()

    def register_script(self, script: str) -> "Script":
        """As redis-py's, without a connection."""
        return Script(self, script)

    def _connected(self) -> Any:
        self._refuse_while_resting()
        return self._client or self._ask(self._make)

    def _refuse_while_resting(self) -> None:
        if time.monotonic() < self._rests_until:
            raise redis.ConnectionError("The cluster did not answer a moment ago.")

    def _ask(self, ask: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        """Ask the nodes, one thread at a time; after a failure, rest."""
        with self._asking:
            self._refuse_while_resting()
            try:
                return ask(*args, **kwargs)
            except Exception:
                self._client = None
                self._rests_until = time.monotonic() + REST_SECONDS
                raise

    def _make(self) -> Any:
        if self._client is None:
            address = self._address
            client = RedisCluster(
                startup_nodes=[ClusterNode(host, port) for host, port in address.hosts],
                **account(address.username, address.password),
                retry=Retry(NoBackoff(), 0),
                **_patience(NODE_SECONDS),
                **address.tls,
            )
            nodes: Any = client.nodes_manager
            look = nodes.initialize
            nodes.initialize = lambda *args, **kwargs: self._ask(look, *args, **kwargs)
            self._client = client
        return self._client


class Script:
    """A Lua script. A node that does not know it gets the whole text; no other node is asked."""

    def __init__(self, client: Cluster, text: str) -> None:
        self._client = client
        self._text = text
        self._digest = hashlib.sha1(text.encode()).hexdigest()  # noqa: S324 (Redis's name for it)

    def __call__(self, keys: Sequence[Any] = (), args: Sequence[Any] = ()) -> Any:
        """Run the script. All `keys` must be in one slot."""
        try:
            return self._client.evalsha(self._digest, len(keys), *keys, *args)
        except NoScriptError:
            return self._client.eval(self._text, len(keys), *keys, *args)


def _master(address: RedisUrl) -> "redis.Redis":
    """The client for the master, which sentinels name each time a connection is made."""
    sentinels = Sentinel(
        address.hosts,
        sentinel_kwargs={
            **account(address.sentinel_username, address.sentinel_password),
            "retry": None,
            **_patience(max(SHORTEST_SECONDS, SECONDS / len(address.hosts))),
            **address.tls,
        },
    )
    return sentinels.master_for(
        address.service,
        redis_class=Patient,
        **account(address.username, address.password),
        db=address.db,
        health_check_interval=25,
        retry=None,
        **_patience(SECONDS),
        **address.tls,
    )


def _patience(seconds: float) -> dict[str, Any]:
    return {"socket_timeout": seconds, "socket_connect_timeout": seconds}
