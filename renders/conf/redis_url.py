"""Redis URLs with several servers: a Redis Cluster, or a master watched by sentinels.

    redis+cluster://[user:password@]host:port[,host:port...]
    redis+sentinel://[user:password@]host:port[,host:port...]/service-name[/db]

`rediss+...` is the same over TLS, to the sentinels too.
"""

from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

from renders.redaction import Hidden

PLAIN = ("redis", "rediss", "unix")
CLUSTER, SENTINEL = "cluster", "sentinel"
SCHEMES = tuple(f"{scheme}+{kind}" for kind in (CLUSTER, SENTINEL) for scheme in PLAIN[:2])
PORTS = {CLUSTER: 6379, SENTINEL: 26379}

FLAGS = {"true": True, "1": True, "false": False, "0": False}
# The TLS parameters of a URL, with the names of redis-py.
TLS_FILES = ("ssl_ca_certs", "ssl_certfile", "ssl_keyfile")
TLS_CHECKS = ("none", "optional", "required")


@dataclass(frozen=True)
class RedisUrl:
    """A parsed URL. `hosts` are the cluster's nodes, or with a `service` the sentinels.

    `tls` holds redis-py's arguments for TLS, and is empty without TLS.
    """

    hosts: tuple[tuple[str, int], ...]
    username: str | None = None
    password: str | None = None
    service: str = ""
    db: int = 0
    sentinel_username: str | None = None
    sentinel_password: str | None = None
    tls: dict[str, Any] = field(default_factory=dict)


def kind_of(url: str) -> str:
    """`cluster`, `sentinel`, or empty for the URL of one server."""
    scheme = url.partition("://")[0].lower()
    return scheme.partition("+")[2] if scheme in SCHEMES else ""


def read(url: str) -> RedisUrl | None:
    """A parsed URL of several servers; None for any other URL.

    Raises `ValueError`, which repeats nothing of the URL: it can hold passwords.
    """
    kind = kind_of(url)
    if not kind:
        return None
    parts = urlsplit(url)
    account, _, servers = parts.netloc.rpartition("@")
    username, _, password = account.partition(":")
    given = dict(parse_qsl(parts.query, keep_blank_values=True))
    service, db = _place(kind, parts.path)
    sentinel = {
        name: _hidden(given.pop(name))
        for name in ("sentinel_username", "sentinel_password")
        if kind == SENTINEL and name in given
    }
    tls = _tls(given) if parts.scheme.startswith("rediss") else {}
    if given or parts.fragment:
        raise ValueError("an unknown word after the ?")
    return RedisUrl(
        hosts=tuple(_server(server, PORTS[kind]) for server in servers.split(",")),
        username=_hidden(unquote(username)),
        password=_hidden(unquote(password)),
        service=service,
        db=db,
        tls=tls,
        **sentinel,
    )


def _server(text: str, port: int) -> tuple[str, int]:
    """Host and port of one server; `port` is the default."""
    server = urlsplit(f"//{text}")
    if not server.hostname or server.port == 0:
        raise ValueError("a host is missing")
    return server.hostname, server.port or port


def _place(kind: str, path: str) -> tuple[str, int]:
    """The name of the service and the number of the database."""
    if kind == CLUSTER:
        if path not in {"", "/", "/0"}:
            raise ValueError("a cluster has no other database than 0")
        return "", 0
    service, _, db = path.removeprefix("/").partition("/")
    if not service or "@" in service or not (db or "0").isdecimal():
        raise ValueError("a service's name is missing")
    return unquote(service), int(db or 0)


def _hidden(value: str) -> str | None:
    """A text that its `repr` hides; None for an empty one."""
    return Hidden(value) if value else None


def _tls(given: dict[str, str]) -> dict[str, Any]:
    """The arguments for TLS, removed from `given`."""
    tls: dict[str, Any] = {"ssl": True, "ssl_cert_reqs": given.pop("ssl_cert_reqs", "required")}
    if tls["ssl_cert_reqs"] not in TLS_CHECKS:
        raise ValueError("ssl_cert_reqs is none, optional or required")
    tls |= {name: given.pop(name) for name in TLS_FILES if name in given}
    if "ssl_check_hostname" in given:
        try:
            tls["ssl_check_hostname"] = FLAGS[given.pop("ssl_check_hostname").lower()]
        except KeyError:
            raise ValueError("ssl_check_hostname is true or false") from None
    return tls
