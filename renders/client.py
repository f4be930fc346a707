"""HTTP to Sume. Knows nothing of models or settings; nothing else imports `requests`.

The facts about the API (paths, headers, what each status means) are those of Sume's public
clients and documents.
"""

import json
import os
import threading
import time
from datetime import UTC, datetime
from typing import Any, BinaryIO
from urllib.parse import quote

import requests
from requests.adapters import HTTPAdapter
from urllib3.exceptions import HTTPError

from renders import replies
from renders.exceptions import (
    BackOff,
    MediaError,
    NotFound,
    NotReady,
    OutcomeUnknown,
    Paused,
    Rejected,
    SumeError,
)
from renders.pacing import parse_retry_after

MAX_REPLY_BYTES = 4 * 1024 * 1024
USER_AGENT = "renders (Django)"
# Codes of a 409 that say "another body", in words seen at APIs of this kind.
CONFLICT_WORDS = ("mismatch", "conflict", "reuse", "different")


class SumeClient:
    """One API key at one place. Safe to share between threads and across a fork.

    `timeout` is the overall deadline of one request in seconds; connecting may take a third of
    it. `pool_size` is how many connections a thread keeps alive.

    Every method raises `SumeError`: `OutcomeUnknown` (no clear answer), `BackOff` (everybody
    waits), `Paused` (key or account refused), `Rejected` (this request never passes).
    """

    def __init__(
        self, api_key: str, base_url: str, *, timeout: float = 30.0, pool_size: int = 10
    ) -> None:
        self._api_key = api_key.strip()
        self.base_url = base_url.strip().rstrip("/").removesuffix("/v1").rstrip("/")
        self.timeout = timeout
        self.pool_size = pool_size
        self._local = threading.local()

    def __repr__(self) -> str:
        return f"SumeClient({self.base_url!r})"

    def submit(self, path: str, body: str, idempotency_key: str) -> replies.Accepted:
        """POST `body` (JSON text, sent byte for byte) to `path`, for instance /v1/images."""
        payload = self._call("POST", path, body=body, idempotency_key=idempotency_key)
        accepted = replies.read_accepted(payload)
        if accepted is None:
            raise OutcomeUnknown("Sume's reply names no job.", code="unreadable_reply")
        return accepted

    def status(self, job_id: str) -> replies.JobStatus:
        """GET the job's status. Raises `NotFound` too."""
        status = replies.read_status(self._call("GET", self._job(job_id, "/status")))
        if status is None:
            raise OutcomeUnknown("Sume's reply names no status.", code="unreadable_reply")
        return status

    def result(self, job_id: str) -> replies.JobResult:
        """GET the finished job's artifacts. Raises `NotReady` for 404 and 409 too."""
        try:
            return replies.read_result(self._call("GET", self._job(job_id, "/result")))
        except SumeError as error:
            if error.status not in {404, 409}:
                raise
            raise NotReady(str(error), **about(error)) from None

    def record_fault(self, job_id: str) -> replies.SumeFault:
        """GET the job record and return why it failed. Raises `NotFound` too."""
        return replies.read_record_fault(self._call("GET", self._job(job_id)))

    def cancel(self, job_id: str, idempotency_key: str) -> None:
        """Ask Sume to cancel; returns if it did.

        Raises `Rejected` with Sume's code if it is too late, `NotFound` too.
        """
        try:
            self._call(
                "POST", self._job(job_id, "/cancel"), body="{}", idempotency_key=idempotency_key
            )
        except OutcomeUnknown as error:
            if error.status != 409:
                raise
            raise Rejected(str(error), **about(error)) from None

    @staticmethod
    def _job(job_id: str, what: str = "") -> str:
        return f"/v1/jobs/{quote(job_id, safe='')}{what}"

    @property
    def _session(self) -> requests.Session:
        """One session per process and thread: sockets shared over a fork mix up replies."""
        local = self._local
        if getattr(local, "pid", None) != os.getpid():
            session = requests.Session()
            session.trust_env = False  # a .netrc or proxy variable must not change who is asked
            session.headers.update(
                {
                    "Authorization": f"Bearer {self._api_key}",
                    "Accept": "application/json",
                    "User-Agent": USER_AGENT,
                }
            )
            adapter = HTTPAdapter(pool_maxsize=self.pool_size)
            session.mount("http://", adapter)
            session.mount("https://", adapter)
            local.session, local.pid = session, os.getpid()
        return local.session

    def _call(
        self,
        method: str,
        path: str,
        *,
        body: str | None = None,
        idempotency_key: str | None = None,
    ) -> Any:
        """Send one request and return the JSON of a 2xx reply; raise `SumeError` otherwise."""
        if not (self._api_key.isascii() and self._api_key.isprintable() and self._api_key):
            raise Paused(
                "No usable API key is set; put Sume's key into SUME_API_KEY.", code="bad_api_key"
            )
        headers = {"Content-Type": "application/json"} if body is not None else {}
        if idempotency_key:
            headers["Idempotency-Key"] = idempotency_key
        deadline = time.monotonic() + self.timeout
        try:
            with self._session.request(
                method,
                self.base_url + path,
                data=None if body is None else body.encode(),
                headers=headers,
                timeout=(self.timeout / 3, self.timeout),
                allow_redirects=False,
                stream=True,
            ) as response:
                content = _read(response, deadline)
        except (requests.RequestException, HTTPError, OSError) as error:
            # Only the kind of error: its text can hold the URL and its chain the headers.
            raise OutcomeUnknown(
                f"No answer from Sume ({type(error).__name__}).", code="no_answer"
            ) from None
        # Some servers repeat the key in their error texts.
        payload = _json(content.replace(self._api_key.encode(), b"[API key]"))
        if 200 <= response.status_code < 300:
            if payload is None:
                raise OutcomeUnknown("Sume's reply is no JSON.", code="unreadable_reply")
            return payload
        raise classify(
            response.status_code,
            replies.read_error(payload, response.headers.get("x-sume-request-id")),
            parse_retry_after(response.headers.get("Retry-After"), datetime.now(UTC)),
        )


def classify(status: int, fault: replies.SumeFault, retry_after: float | None) -> SumeError:
    """What a reply that is no success means. What is not known here is *unknown outcome*.

    `retry_after` in seconds. Source: the table of replies in Sume's API notes.
    """
    message = fault.message or f"Sume answered with HTTP status {status}."
    refused = fault.retryable is False
    kind: type[SumeError] = OutcomeUnknown
    if status == 503 or (status == 429 and not refused):
        kind = BackOff
    elif status in {401, 402, 403}:
        kind = Paused
    elif status == 404:
        kind = NotFound
    elif status == 409 and not refused and not any(word in fault.code for word in CONFLICT_WORDS):
        kind = OutcomeUnknown  # the first request with this key may still be at work
    elif refused or (400 <= status < 500 and status != 408):
        kind = Rejected
    error = kind(
        message, code=fault.code or f"http_{status}", status=status, request_id=fault.request_id
    )
    if isinstance(error, BackOff):
        error.retry_after = retry_after
    return error


def about(error: SumeError) -> dict[str, Any]:
    """What names an error, to give to another one."""
    return {"code": error.code, "status": error.status, "request_id": error.request_id}


def _read(response: requests.Response, deadline: float) -> bytes:
    """The whole body, or an error: a reply that trickles in must not outlive the deadline."""
    content = bytearray()
    while True:
        left = deadline - time.monotonic()
        if left <= 0:
            raise requests.Timeout
        socket = getattr(response.raw.connection, "sock", None)
        if socket is not None:
            socket.settimeout(left)
        chunk = response.raw.read1(65_536, decode_content=True)
        if not chunk:
            return bytes(content)
        content += chunk
        if len(content) > MAX_REPLY_BYTES:
            raise requests.exceptions.ContentDecodingError


def _json(content: bytes) -> Any:
    try:
        return json.loads(content)
    except (ValueError, RecursionError):
        return None


def download(url: str, target: BinaryIO, *, timeout: float, max_bytes: int) -> None:
    """Write what lies at `url` (http or https, no redirects, no API key) to `target`.

    `timeout` in seconds for the whole. Raises `MediaError`; its text never holds the URL, which
    can be signed.
    """
    deadline = time.monotonic() + timeout
    written = 0
    try:
        with requests.Session() as session:
            session.trust_env = False
            with session.get(
                url, timeout=timeout / 3, allow_redirects=False, stream=True
            ) as response:
                if response.status_code != 200:
                    raise MediaError(f"Its server answered with status {response.status_code}.")
                for chunk in response.iter_content(65_536):
                    target.write(chunk)
                    written += len(chunk)
                    if written > max_bytes:
                        raise MediaError(f"It is larger than {max_bytes:,} bytes.")
                    if time.monotonic() > deadline:
                        raise MediaError(f"It took longer than {timeout:.0f} s.")
    except (requests.RequestException, HTTPError, OSError, ValueError) as error:
        raise MediaError(f"It could not be downloaded ({type(error).__name__}).") from None
