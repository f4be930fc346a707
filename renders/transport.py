"""Kept connections to one server for GETs, shared by all threads of a process.

Straight on urllib3, which `requests` stands on too: without its ceremony (cookies, hooks,
sessions, environment) a read costs less than half of the processor's time.
"""

import os
import ssl
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import certifi
from urllib3 import BaseHTTPResponse, HTTPConnectionPool, Timeout
from urllib3.util import parse_url
from urllib3.util.ssl_ import create_urllib3_context

from renders.deadlines import POOLS


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
