"""Downloads of finished media: without the API key, to machines that may be reached only.

Redirects are followed by hand, each with the checks of the first address. Knows nothing of
models or settings. No text, and no variable of a traceback, shows what signs an address.
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
# The answers to a signed URL whose time is over, or whose file has moved.
EXPIRED = frozenset({401, 403, 404, 410})
CHUNK_BYTES = 65_536
HEADERS = {"Accept": "*/*", "Accept-Encoding": "identity", "User-Agent": USER_AGENT}


class _Expired(str):
    """What went wrong, where a fresh URL may help."""

    __slots__ = ()


class _Checked(TimedHTTPConnection):
    """Connects to an address that was checked a moment ago, and looks none up by itself."""

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
    """The same with TLS; the certificate is checked for the host's name, as ever."""


class _Pool(HTTPConnectionPool):
    ConnectionCls = _Checked


class _TLSPool(HTTPSConnectionPool):
    ConnectionCls = _CheckedTLS


def download(
    url: str,
    target: BinaryIO,
    *,
    timeout: float,
    max_bytes: int,
    private: networks.Private = (),
) -> str:
    """Write what lies at `url` to `target`, up to `max_bytes`.

    Returns the `Content-Encoding` that could not be undone, empty where there is none. `timeout`
    in seconds for the whole, redirects included. Raises `LinkExpired` where a fresh URL may help,
    `MediaError` otherwise, and whatever the target raises.
    """
    url = Link(url)  # so that no frame of a traceback holds the plain text
    encodings: list[str] = []
    failure = _transfer(url, target, timeout, max_bytes, private, encodings)
    if failure:
        raise (LinkExpired if isinstance(failure, _Expired) else MediaError)(str(failure))
    return ", ".join(encodings)


def _transfer(
    url: Link,
    target: BinaryIO,
    timeout: float,
    max_bytes: int,
    private: networks.Private,
    encodings: list[str],
) -> str:
    """What went wrong, in words: an error's own chain would hold the whole URL.

    Encodings that cannot be undone are added to `encodings`.
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
    """The head of the reply, or what is wrong."""
    pool = None
    try:
        found = _open(url, timeout, private)
        if isinstance(found, str):
            yield found
        else:
            pool, response = found
            yield response
    finally:
        if pool:
            response.close()
            pool.close()


def _open(
    url: Link, timeout: float, private: networks.Private
) -> tuple[HTTPConnectionPool, BaseHTTPResponse] | str:
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
    except Exception as error:  # noqa: BLE001 (the frames of its traceback hold the address)
        words = f"It could not be downloaded ({type(error).__name__})."
    if pool:
        pool.close()
    return words


def _following(url: Link, response: BaseHTTPResponse) -> Link | None:
    """Where a redirect leads; None if nowhere, or from https to http."""
    try:
        following = Link(urljoin(url, response.headers.get("Location") or ""))
        schemes = urlsplit(url).scheme.lower(), urlsplit(following).scheme.lower()
    except ValueError:
        return None
    allowed = {("http", "http"), ("http", "https"), ("https", "https")}
    return following if "Location" in response.headers and schemes in allowed else None


def _unknown_encodings(response: BaseHTTPResponse) -> list[str]:
    """Those of the reply that urllib3 leaves as they are; as it is any server's text, in short."""
    named = response.headers.get("Content-Encoding", "").lower().split(",")
    known = {"", "identity", *response.CONTENT_DECODERS}
    return [name for one in named if (name := one.strip()[:20]) not in known and name.isalnum()]


def _write(response: BaseHTTPResponse, target: BinaryIO, max_bytes: int) -> str:
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
    """The next bytes, none at the end; or the kind of error."""
    try:
        return response.read1(CHUNK_BYTES, decode_content=True)
    except (HTTPError, OSError, ValueError) as error:
        return type(error).__name__
