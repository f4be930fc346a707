"""Connections whose every read ends by the deadline of the request, head and body alike.

A socket's own time-out starts again with each byte, so a reply that trickles in never meets it.
They also know whether anything of the request was sent: what never left is not in doubt.
"""

import http.client
import io
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from urllib3 import HTTPConnectionPool, HTTPSConnectionPool
from urllib3.connection import HTTPConnection, HTTPSConnection

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
