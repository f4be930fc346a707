"""HTTP connections with one deadline per request, and a pool of them for reads.

A socket's own time-out starts again with each byte, so a reply that trickles in never meets it;
here every read of head and body ends by the deadline. The connections also note whether anything
of the request was sent: a request that never left is not an unknown outcome.

Reads use urllib3 directly. Without the work that `requests` adds on top of it (cookies, hooks,
sessions, environment), a read takes less than half of the CPU time.
"""

import http.client
import io
import os
import socket
import ssl
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import certifi
from urllib3 import BaseHTTPResponse, HTTPConnectionPool, HTTPSConnectionPool, Timeout
from urllib3.connection import HTTPConnection, HTTPSConnection
from urllib3.util import parse_url
from urllib3.util.ssl_ import create_urllib3_context

_local = threading.local()


@contextmanager
def deadline(seconds: float) -> Iterator[None]:
    """End every read of this thread within `seconds`."""
    _local.at = time.monotonic() + seconds
    _local.sent = False
    try:
        yield
    finally:
        del _local.at


def was_sent() -> bool:
    """Whether any part of this thread's last request may have left this machine."""
    return _local.sent


def left() -> float:
    """Seconds until the deadline. Raises `TimeoutError` once it has passed."""
    seconds = _local.at - time.monotonic()
    if seconds <= 0:
        raise TimeoutError("The reply takes too long.")
    return seconds


class _Reader(io.RawIOBase):
    """A socket's stream that raises `TimeoutError` at the deadline."""

    def __init__(self, sock: socket.socket, raw: io.RawIOBase) -> None:
        self._sock = sock
        self._raw = raw

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int | None:
        self._sock.settimeout(left())
        return self._raw.readinto(buffer)

    def close(self) -> None:
        self._raw.close()
        super().close()


class _Response(http.client.HTTPResponse):
    """A response read through `_Reader`, so that each read keeps the deadline."""

    def __init__(self, sock: socket.socket, *args: Any, **kwargs: Any) -> None:
        super().__init__(sock, *args, **kwargs)
        self.fp = io.BufferedReader(_Reader(sock, self.fp.detach()))


class _Timed(HTTPConnection):
    """A connection that keeps the deadline and notes when a request begins to leave."""

    response_class = _Response

    def send(self, data: Any) -> None:
        """Note that the request may arrive from here on: before, nothing of it has left."""
        if self.sock is None:
            self.connect()
        _local.sent = True
        super().send(data)


class TimedHTTPConnection(_Timed):
    """A connection over http that keeps the deadline."""


class TimedHTTPSConnection(_Timed, HTTPSConnection):
    """A connection over https that keeps the deadline."""


class _HTTPPool(HTTPConnectionPool):
    ConnectionCls = TimedHTTPConnection


class _HTTPSPool(HTTPSConnectionPool):
    ConnectionCls = TimedHTTPSConnection


POOLS = {"http": _HTTPPool, "https": _HTTPSPool}


class Connections:
    """A connection pool for GETs below one URL, shared by all threads of a process.

    `size` is how many connections are kept; more are opened if more threads read at once.
    Redirects are not followed, nothing is retried and environment variables are ignored. Safe to
    share between threads and across a fork.
    """

    def __init__(self, base_url: str, size: int) -> None:
        self._base_url = base_url
        self._size = size
        self._made: tuple[int, HTTPConnectionPool, str] | None = None
        self._making: tuple[int, threading.Lock] = os.getpid(), threading.Lock()

    @contextmanager
    def get(
        self, path: str, headers: Mapping[str, str], timeout: float
    ) -> Iterator[BaseHTTPResponse]:
        """Yield the reply with its head read and its body unread; connecting may take a third.

        Raises `urllib3.exceptions.HTTPError`, `OSError`, and `ValueError` for an invalid URL.
        """
        pool, prefix = self._pool()
        response = pool.urlopen(
            "GET",
            prefix + path,
            headers=headers,
            timeout=Timeout(connect=timeout / 3, read=timeout),
            retries=False,
            redirect=False,
            preload_content=False,
        )
        whole = False
        try:
            yield response
            whole = True
        finally:
            # The rest of an unfinished reply must not be read as the next reply.
            if not whole:
                response.close()
            response.release_conn()

    def _pool(self) -> tuple[HTTPConnectionPool, str]:
        """This process's pool and the path's prefix: sockets shared by a fork mix up replies."""
        made, own = self._made, os.getpid()
        if made is None or made[0] != own:
            if self._making[0] != own:  # a lock held by a thread of the parent stays locked
                self._making = own, threading.Lock()
            with self._making[1]:
                made = self._made
                if made is None or made[0] != own:
                    made = self._made = own, *self._make()
        return made[1:]

    def _make(self) -> tuple[HTTPConnectionPool, str]:
        parts = parse_url(self._base_url)
        if parts.scheme not in POOLS or not parts.host:
            raise ValueError("No http or https address.")
        safe: dict[str, Any] = {}
        if parts.scheme == "https":
            # One for all connections: loading the certificates takes longer than a handshake.
            context = create_urllib3_context(cert_reqs=ssl.CERT_REQUIRED)
            context.load_verify_locations(certifi.where())
            safe = {"ssl_context": context}
        pool = POOLS[parts.scheme](parts.host, parts.port, maxsize=self._size, **safe)
        return pool, parts.path or ""
