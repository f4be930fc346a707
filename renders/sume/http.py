"""Connections whose every read ends by the deadline of the request, head and body alike.

A socket's own time-out starts again with each byte, so a reply that trickles in never meets it.
They also know whether anything of the request was sent: what never left is not in doubt.


Kept connections to one server for GETs, shared by all threads of a process.

Straight on urllib3, which `requests` stands on too: without its ceremony (cookies, hooks,
sessions, environment) a read costs less than half of the processor's time.
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
    """Let all reading in this thread end in `seconds`."""
    _local.at = time.monotonic() + seconds
    _local.sent = False
    try:
        yield
    finally:
        del _local.at


def was_sent() -> bool:
    """Whether anything of this thread's last request may have left this machine."""
    return _local.sent


def left() -> float:
    """Seconds until the deadline; raises `TimeoutError` when it is over."""
    seconds = _local.at - time.monotonic()
    if seconds <= 0:
        raise TimeoutError("The reply takes too long.")
    return seconds


class _Reader(io.RawIOBase):
    """Reads a socket until the deadline; raises `TimeoutError` then."""

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
    def __init__(self, sock: socket.socket, *args: Any, **kwargs: Any) -> None:
        super().__init__(sock, *args, **kwargs)
        self.fp = io.BufferedReader(_Reader(sock, self.fp.detach()))


class _Timed(HTTPConnection):
    response_class = _Response

    def send(self, data: Any) -> None:
        """Note that from here on the request may arrive; until then, it did not leave."""
        if self.sock is None:
            self.connect()
        _local.sent = True
        super().send(data)


class TimedHTTPConnection(_Timed):
    """Over http, each reply by the deadline."""


class TimedHTTPSConnection(_Timed, HTTPSConnection):
    """Over https, each reply by the deadline."""


class _HTTPPool(HTTPConnectionPool):
    ConnectionCls = TimedHTTPConnection


class _HTTPSPool(HTTPSConnectionPool):
    ConnectionCls = TimedHTTPSConnection


POOLS = {"http": _HTTPPool, "https": _HTTPSPool}


class Connections:
    """GETs below one address, each on a connection that is kept for the next.

    `size` is how many are kept; more are opened where more read at once. Follows no redirect,
    tries nothing again, obeys no environment. Safe to share between threads and over a fork.
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
        """The head of the reply, its body still to be read; connecting may take a third.

        Raises `urllib3.exceptions.HTTPError`, `OSError`; `ValueError` for an address that is none.
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
            # What was not read to its end must not be taken for the next reply.
            if not whole:
                response.close()
            response.release_conn()

    def _pool(self) -> tuple[HTTPConnectionPool, str]:
        """One for each process: sockets shared over a fork mix up replies. And the path's start."""
        made, own = self._made, os.getpid()
        if made is None or made[0] != own:
            if self._making[0] != own:  # a lock that another process's thread held stays locked
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
            # One for all connections: to read whom to trust takes longer than a handshake.
            context = create_urllib3_context(cert_reqs=ssl.CERT_REQUIRED)
            context.load_verify_locations(certifi.where())
            safe = {"ssl_context": context}
        pool = POOLS[parts.scheme](parts.host, parts.port, maxsize=self._size, **safe)
        return pool, parts.path or ""
