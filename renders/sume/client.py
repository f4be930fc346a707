"""HTTP to Sume. Knows nothing of models or settings; nothing else imports `requests`.

Writes go through `requests`; reads, of which there are many, over `renders.sume.http`.

The facts about the API (paths, headers, what each status means) are those of Sume's public
clients and documents.
"""

import json
import os
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from typing import Any
from urllib.parse import quote

import requests
from requests.adapters import HTTPAdapter
from urllib3 import BaseHTTPResponse
from urllib3.exceptions import HTTPError

from renders.exceptions import (
    KeyTaken,
    NotReady,
    OutcomeUnknown,
    Paused,
    Rejected,
    SumeError,
    Unreachable,
)
from renders.redaction import Hidden, without
from renders.sume import replies
from renders.sume.classification import about, classify
from renders.sume.http import POOLS, Connections, deadline, was_sent
from renders.sume.timing import parse_date, parse_retry_after

MAX_REPLY_BYTES = 4 * 1024 * 1024
USER_AGENT = "renders (Django)"
# Codes of a 409 to a cancel that say nothing about the job: a proxy's, or of the request itself.
STILL_AT_WORK = ("http_409", "idempotency", "in_progress")
# Told of each request: what it was, its seconds, and Sume's id of it.
OnReply = Callable[[str, float, str], None]


@dataclass(frozen=True)
class _Reply:
    """A reply; its content, which can hold signatures, stays out of tracebacks."""

    status: int
    retry_after: float | None
    request_id: str
    payload: Any = field(repr=False)
    date: datetime | None = None


class _Adapter(HTTPAdapter):
    """Keeps the deadline of each request."""

    def init_poolmanager(self, *args: Any, **kwargs: Any) -> None:
        super().init_poolmanager(*args, **kwargs)
        self.poolmanager.pool_classes_by_scheme = POOLS


class _Session(requests.Session):
    """Follows nothing and obeys no environment: who is asked is who was named."""

    def __init__(self) -> None:
        super().__init__()
        self.trust_env = False  # no .netrc, no proxy variable
        self.mount("http://", _Adapter(pool_maxsize=1))
        self.mount("https://", _Adapter(pool_maxsize=1))

    def get_redirect_target(self, resp: requests.Response) -> None:
        """None: even unfollowed, `requests` would read and parse where a redirect leads."""
        return


class SumeClient:
    """One API key at one place. Safe to share between threads and across a fork.

    `timeout` is the overall deadline of one request in seconds; connecting may take a third of
    it. `pool_size` is how many connections for reads a process keeps alive. `on_reply` is told
    after each request what it was, how many seconds it took and Sume's id of it ("" without a
    reply).

    Every method raises `SumeError`: `OutcomeUnknown` (no clear answer), `Unreachable` (it never
    left), `BackOff` (everybody waits), `Paused` (key or account refused), `Rejected` (this request
    never passes).
    """

    def __init__(
        self,
        api_key: str,
        base_url: str,
        *,
        timeout: float = 30.0,
        pool_size: int = 10,
        on_reply: OnReply = lambda what, seconds, request_id: None,
    ) -> None:
        self._api_key = Hidden(api_key.strip())
        self.base_url = base_url.strip().rstrip("/").removesuffix("/v1").rstrip("/")
        self.timeout = timeout
        self._on_reply = on_reply
        self._headers = {
            "Authorization": Hidden(f"Bearer {self._api_key}"),
            "Accept": "application/json",
            "User-Agent": USER_AGENT,
        }
        self._reads = Connections(self.base_url, pool_size)
        self._local = threading.local()

    def __repr__(self) -> str:
        return f"SumeClient({self.base_url!r})"

    def submit(self, path: str, body: str, idempotency_key: str) -> replies.Accepted:
        """POST `body` (JSON text, sent byte for byte) to `path`, for instance /v1/images.

        A conflict that names the job which Sume has for this very request is an answer, too.
        """
        reply = self._exchange("submit", path, body, idempotency_key)
        try:
            payload = _payload(reply)
        except OutcomeUnknown:
            known = replies.read_named_job(reply.payload) if reply.status == 409 else None
            if known is None:
                raise
            return known
        accepted = replies.read_accepted(payload)
        if accepted is None:
            raise OutcomeUnknown("Sume's reply names no job.", code="unreadable_reply")
        return accepted

    def status(self, job_id: str) -> replies.JobStatus:
        """GET the job's status. Raises `NotFound` too."""
        payload = self._about("status", job_id, "/status")
        status = replies.read_status(payload)
        if status is None:
            raise OutcomeUnknown("Sume's reply names no status.", code="unreadable_reply")
        return status

    def result(self, job_id: str) -> replies.JobResult:
        """GET the finished job's artifacts. Raises `NotReady` for 404 and 409 too."""
        try:
            result = replies.read_result(self._about("result", job_id, "/result"))
        except SumeError as error:
            if error.status not in {404, 409}:
                raise
            raise NotReady(str(error), **about(error)) from None
        if result is None:
            raise NotReady("Sume's reply holds no result.", code="unreadable_reply")
        return result

    def record_fault(self, job_id: str) -> replies.SumeFault:
        """GET the job record and return why it failed. Raises `NotFound` too."""
        return replies.read_record_fault(self._about("record", job_id))

    def cancel(self, job_id: str, idempotency_key: str) -> None:
        """Ask Sume to cancel; returns if it did.

        Raises `Rejected` with Sume's code if it is too late, `NotFound` too.
        """
        try:
            payload = self._about("cancel", job_id, "/cancel", "{}", idempotency_key)
        except KeyTaken as error:  # of a cancel, there is but one body
            raise OutcomeUnknown(str(error), **about(error)) from None
        except OutcomeUnknown as error:
            if error.status != 409 or any(word in error.code for word in STILL_AT_WORK):
                raise
            raise Rejected(str(error), **about(error)) from None
        if replies.read_canceled(payload) is False:
            raise Rejected("Sume did not cancel it.", code="not_canceled")

    def ready_avatars(self, limit: int) -> list[str]:
        """GET the handles of up to `limit` avatars that can be used."""
        path = f"/v1/avatars?status=ready&limit={limit}"
        handles = replies.read_ready_avatars(_payload(self._exchange("avatars", path)))
        if handles is None:
            raise OutcomeUnknown("Sume's reply holds no list of avatars.", code="unreadable_reply")
        return handles

    def jobs(self, limit: int) -> list[replies.ListedJob]:
        """GET the newest jobs, at most `limit`."""
        jobs = replies.read_jobs(_payload(self._exchange("jobs", f"/v1/jobs?limit={limit}")))
        if jobs is None:
            raise OutcomeUnknown("Sume's reply holds no list of jobs.", code="unreadable_reply")
        return jobs[:limit]

    def balance(self) -> replies.Balance:
        """GET what is left to spend: free, and tells whether the key is taken."""
        reply = self._exchange("balance", "/v1/balance")
        return replies.Balance(replies.read_balance(_payload(reply)), reply.date)

    @staticmethod
    def _job(job_id: str, what: str = "") -> str:
        return f"/v1/jobs/{quote(job_id, safe='')}{what}"

    @property
    def _session(self) -> requests.Session:
        """One session per process and thread: sockets shared over a fork mix up replies."""
        local = self._local
        if getattr(local, "pid", None) != os.getpid():
            session = _Session()
            session.headers.update(self._headers)
            local.session, local.pid = session, os.getpid()
        return local.session

    def _about(self, what: str, job_id: str, path: str = "", *post: str) -> Any:
        """The JSON of a 2xx reply about this job. Raises `SumeError`."""
        payload = _payload(self._exchange(what, self._job(job_id, path), *post))
        if not replies.is_about(payload, job_id):
            raise OutcomeUnknown("Sume's reply is about another job.", code="another_job")
        return payload

    def _exchange(
        self, what: str, path: str, body: str | None = None, idempotency_key: str | None = None
    ) -> _Reply:
        """Send one request, a POST with a body; `on_reply` is told of it as `what`.

        Raises `SumeError` where there is no reply.
        """
        if not (self._api_key.isascii() and self._api_key.isprintable() and self._api_key):
            raise Paused(
                "No usable API key is set; put Sume's key into SUME_API_KEY.", code="bad_api_key"
            )
        began = time.monotonic()
        reply = self._get(path) if body is None else self._post(path, body, idempotency_key or "")
        request_id = "" if isinstance(reply, str) else reply.request_id
        self._on_reply(what, time.monotonic() - began, request_id)
        if isinstance(reply, str):
            if was_sent():
                raise OutcomeUnknown(f"No answer from Sume ({reply}).", code="no_answer")
            raise Unreachable(
                f"Sume cannot be reached ({reply}): nothing was sent.", code="unreachable"
            )
        return reply

    def _get(self, path: str) -> _Reply | str:
        """The reply, or the kind of error: its text can hold the URL, its chain the headers."""
        try:
            with (
                deadline(self.timeout),
                self._reads.get(path, self._headers, self.timeout) as response,
            ):
                return _reply(response, self._api_key)
        except (HTTPError, OSError, ValueError) as error:
            return type(error).__name__

    def _post(self, path: str, body: str, idempotency_key: str) -> _Reply | str:
        """As `_get`; `body` goes out byte for byte."""
        try:
            with (
                deadline(self.timeout),
                self._session.post(
                    self.base_url + path,
                    data=body.encode(),
                    headers={
                        "Content-Type": "application/json",
                        "Idempotency-Key": idempotency_key,
                    },
                    timeout=(self.timeout / 3, self.timeout),
                    allow_redirects=False,
                    stream=True,
                ) as response,
            ):
                return _reply(response.raw, self._api_key)
        except (requests.RequestException, HTTPError, OSError) as error:
            return type(error).__name__


def _payload(reply: _Reply) -> Any:
    """The JSON of a 2xx reply. Raises `SumeError` for any other."""
    if 200 <= reply.status < 300:
        if reply.payload is None:
            raise OutcomeUnknown("Sume's reply is no JSON.", code="unreadable_reply")
        return reply.payload
    raise classify(
        reply.status,
        replies.read_error(reply.payload, reply.request_id),
        reply.retry_after,
        readable=isinstance(reply.payload, dict),
    )


def _read(response: BaseHTTPResponse) -> bytes:
    """The whole body, or an error where it is endless."""
    content = bytearray()
    while chunk := response.read1(65_536, decode_content=True):
        content += chunk
        if len(content) > MAX_REPLY_BYTES:
            raise HTTPError("The reply is too long.")
    return bytes(content)


def _reply(response: BaseHTTPResponse, key: str) -> _Reply:
    """What is read of a response, without the key in any text (before texts are cut short)."""
    try:
        payload = json.loads(_read(response), object_hook=partial(without, key))
    except (ValueError, RecursionError):
        payload = None
    except (HTTPError, OSError):
        if response.status < 400:
            raise
        payload = None  # too long, or without an end: an error is judged by its head
    request_id = without(key, response.headers.get("x-sume-request-id", ""))
    date = parse_date(response.headers.get("Date"))
    # A time to come back at is one of Sume's clock, which may be off.
    retry_after = parse_retry_after(response.headers.get("Retry-After"), date or datetime.now(UTC))
    return _Reply(response.status, retry_after, request_id, payload, date)
