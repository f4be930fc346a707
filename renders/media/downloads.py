"""Downloads of finished media: without the API key, and only from permitted hosts.

Redirects are followed one by one, and each URL is checked like the first one. Independent of
models and settings. No text and no variable in a traceback shows a URL's signature.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, BinaryIO
from urllib.parse import urljoin, urlsplit

import certifi
from urllib3 import BaseHTTPResponse, HTTPConnectionPool, HTTPSConnectionPool, Timeout
from urllib3.exceptions import HTTPError
from urllib3.util import parse_url
from urllib3.util.connection import create_connection

from renders.conf import networks
from renders.exceptions import LinkExpired, MediaError
from renders.redaction import Hidden, Link
from renders.sume.client import USER_AGENT
from renders.sume.http import TimedHTTPConnection, TimedHTTPSConnection, deadline, left

MOST_REDIRECTS = 5
REDIRECTS = frozenset({301, 302, 303, 307, 308})
# Answers to a signed URL that has expired, or with a file that was moved.
EXPIRED = frozenset({401, 403, 404, 410})
CHUNK_BYTES = 65_536
HEADERS = {"Accept": "*/*", "Accept-Encoding": "identity", "User-Agent": USER_AGENT}


def download(
    url: str,
    target: BinaryIO,
    *,
    timeout: float,
    max_bytes: int,
    private: networks.Private = (),
) -> str:
    """Write the file at `url` to `target`, up to `max_bytes`.

    Returns the `Content-Encoding` that could not be decoded, or nothing. `timeout` is in seconds
    for the whole download with its redirects. Raises `LinkExpired` if a fresh URL may help,
    `MediaError` otherwise, and any error of the target.
    """
    url = Link(url)  # so that no frame of a traceback holds the plain text
    encodings: list[str] = []
    failure = _transfer(url, target, timeout, max_bytes, private, encodings)
    if failure:
        raise (LinkExpired if isinstance(failure, _Expired) else MediaError)(str(failure))
    return ", ".join(encodings)


class _Expired(str):
    """A failure's description, if a fresh URL may help."""

    __slots__ = ()


class _Checked(TimedHTTPConnection):
    """A connection to an address that was just checked; it makes no look-up of its own."""

    def __init__(self, *args: Any, private: networks.Private = (), **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._private = private

    def _new_conn(self) -> Any:
        failure: OSError | None = None
        for address in networks.find(self._dns_host, self.port, self._private):
            wait = min(float(self.timeout or 0), left())
            try:
                return create_connection(
                    (address, self.port), wait, socket_options=self.socket_options
                )
            except OSError as error:
                failure = error
        raise failure or OSError("This host has no address.")


class _CheckedTLS(_Checked, TimedHTTPSConnection):
    """The same with TLS; the certificate is checked for the host's name as usual."""


class _Pool(HTTPConnectionPool):
    ConnectionCls = _Checked


class _TLSPool(HTTPSConnectionPool):
    ConnectionCls = _CheckedTLS


def _transfer(
    url: Link,
    target: BinaryIO,
    timeout: float,
    max_bytes: int,
    private: networks.Private,
    encodings: list[str],
) -> str:
    """A description of the failure, or nothing: a chained error would hold the whole URL.

    Encodings that could not be decoded are added to `encodings`.
    """
    with deadline(timeout):
        for _ in range(1 + MOST_REDIRECTS):
            with _opened(url, timeout / 3, private) as response:
                if isinstance(response, str):
                    return response
                if response.status == 200:
                    encodings += _unknown_encodings(response)
                    return _write(response, target, max_bytes)
                if response.status not in REDIRECTS:
                    words = f"Its server answered with status {response.status}."
                    return _Expired(words) if response.status in EXPIRED else words
                following = _following(url, response)
                if following is None:
                    return "Its server redirects to what is no address for it."
                url = following
    return f"Its server redirects more than {MOST_REDIRECTS} times."


@contextmanager
def _opened(
    url: Link, timeout: float, private: networks.Private
) -> Iterator[BaseHTTPResponse | str]:
    """Yield the reply with its head read, or a description of the failure."""
    pool = None
    try:
        opened = _open(url, timeout, private)
        if isinstance(opened, str):
            yield opened
        else:
            pool, response = opened
            yield response
    finally:
        if pool:
            response.close()
            pool.close()


def _open(
    url: Link, timeout: float, private: networks.Private
) -> tuple[HTTPConnectionPool, BaseHTTPResponse] | str:
    """The connection pool and the reply, or a description of the failure."""
    pool: HTTPConnectionPool | None = None
    try:
        parts = parse_url(url)
        if parts.scheme not in {"http", "https"} or not parts.host:
            return "Its address is neither http nor https."
        if parts.auth is not None:
            return "Its address holds a user or a password."
        kwargs: dict[str, Any] = {"timeout": Timeout(connect=timeout, read=timeout)}
        kwargs |= {"retries": False, "private": private}
        if parts.scheme == "https":
            pool = _TLSPool(parts.host, parts.port, ca_certs=certifi.where(), **kwargs)
        else:
            pool = _Pool(parts.host, parts.port, **kwargs)
        response = pool.urlopen(
            "GET",
            Hidden(parts.request_uri),
            headers=HEADERS,
            redirect=False,
            preload_content=False,
        )
        return pool, response
    except networks.NotAllowed as error:
        words = f"It may not be fetched: {error}."
    except Exception as error:  # noqa: BLE001 (the frames of its traceback hold the URL)
        words = f"It could not be downloaded ({type(error).__name__})."
    if pool:
        pool.close()
    return words


def _following(url: Link, response: BaseHTTPResponse) -> Link | None:
    """The target of a redirect; None without a valid one, and for one from https to http."""
    try:
        following = Link(urljoin(url, response.headers.get("Location") or ""))
        schemes = urlsplit(url).scheme.lower(), urlsplit(following).scheme.lower()
    except ValueError:
        return None
    allowed = {("http", "http"), ("http", "https"), ("https", "https")}
    return following if "Location" in response.headers and schemes in allowed else None


def _unknown_encodings(response: BaseHTTPResponse) -> list[str]:
    """The reply's encodings that urllib3 can't decode, shortened: any server may send any text."""
    declared = response.headers.get("Content-Encoding", "").lower().split(",")
    decoded = {"", "identity", *response.CONTENT_DECODERS}
    names = (name.strip()[:20] for name in declared)
    return [name for name in names if name not in decoded and name.isalnum()]


def _write(response: BaseHTTPResponse, target: BinaryIO, max_bytes: int) -> str:
    """Write the body to `target`; a description of the failure, or nothing."""
    too_large = f"It is larger than {max_bytes:,} bytes."
    length = response.headers.get("Content-Length", "")
    if length.isascii() and length.isdigit() and int(length[:20]) > max_bytes:
        return too_large
    written = 0
    while True:
        chunk = _read(response)
        if isinstance(chunk, str):
            return f"It could not be downloaded ({chunk})."
        if not chunk:
            return ""
        target.write(chunk)
        written += len(chunk)
        if written > max_bytes:
            return too_large


def _read(response: BaseHTTPResponse) -> bytes | str:
    """The next bytes, empty at the end; or the error's type."""
    try:
        return response.read1(CHUNK_BYTES, decode_content=True)
    except (HTTPError, OSError, ValueError) as error:
        return type(error).__name__
