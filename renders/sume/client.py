"""The HTTP client for Sume's API: independent of models and settings, the only use of `requests`.

Writes use `requests`. Reads are far more frequent and use `renders.sume.http`. Paths, headers and
the meaning of each status come from Sume's public clients and documents.
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
# Codes of a 409 to a cancel that concern a proxy or the request itself, not the job.
STILL_AT_WORK = ("http_409", "idempotency", "in_progress")
# Called after each request with its name, its duration in seconds, and Sume's request id.
OnReply = Callable[[str, float, str], None]


@dataclass(frozen=True)
class _Reply:
    """A reply. Its `repr`, which tracebacks show, omits the content: that can hold signatures."""

    status: int
    retry_after: float | None
    request_id: str
    payload: Any = field(repr=False)
    date: datetime | None = None


class _Adapter(HTTPAdapter):
    """An adapter whose connections keep the deadline of each request."""

    def init_poolmanager(self, *args: Any, **kwargs: Any) -> None:
        super().init_poolmanager(*args, **kwargs)
        self.poolmanager.pool_classes_by_scheme = POOLS


class _Session(requests.Session):
    """A session without redirects and environment variables: only the named host is asked."""

    def __init__(self) -> None:
        super().__init__()
        self.trust_env = False  # no .netrc, no proxy variable
        self.mount("http://", _Adapter(pool_maxsize=1))
        self.mount("https://", _Adapter(pool_maxsize=1))

    def get_redirect_target(self, resp: requests.Response) -> None:
        """None: otherwise `requests` reads and parses the target even of an unfollowed redirect."""
        return


class SumeClient:
    """A client for one API key and one base URL, safe to share between threads and across a fork.

    `timeout` is the overall deadline of one request in seconds; connecting may take a third of
    it. `pool_size` is how many connections for reads a process keeps alive. `on_reply` is called
    after each request with its name, its duration in seconds and Sume's request id ("" without a
    reply).

    Every method raises `SumeError`: `OutcomeUnknown` (no clear answer), `Unreachable` (the request
    never left), `BackOff` (all workers wait), `Paused` (key or account refused), `Rejected` (this
    request never succeeds).
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

        A conflict (409) that names the job of this very request counts as accepted, too.
        """
        reply = self._exchange("submit", path, body, idempotency_key)
        try:
            payload = _payload(reply)
        except OutcomeUnknown:
            named = replies.read_named_job(reply.payload) if reply.status == 409 else None
            if named is None:
                raise
            return named
        accepted = replies.read_accepted(payload)
        if accepted is None:
            raise OutcomeUnknown("Sume's reply names no job.", code="unreadable_reply")
        return accepted

    def status(self, job_id: str) -> replies.JobStatus:
        """GET the job's status. Also raises `NotFound`."""
        payload = self._about("status", job_id, "/status")
        status = replies.read_status(payload)
        if status is None:
            raise OutcomeUnknown("Sume's reply names no status.", code="unreadable_reply")
        return status

    def result(self, job_id: str) -> replies.JobResult:
        """GET the finished job's artifacts. Raises `NotReady` for 404, 409 and a missing result."""
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
        """GET the job record and return why the job failed. Also raises `NotFound`."""
        return replies.read_record_fault(self._about("record", job_id))

    def cancel(self, job_id: str, idempotency_key: str) -> None:
        """POST a cancel; returns if Sume accepted it.

        Raises `Rejected` with Sume's code if it is too late. Also raises `NotFound`.
        """
        try:
            payload = self._about("cancel", job_id, "/cancel", "{}", idempotency_key)
        except KeyTaken as error:  # every cancel has the same body
            raise OutcomeUnknown(str(error), **about(error)) from None
        except OutcomeUnknown as error:
            if error.status != 409 or any(word in error.code for word in STILL_AT_WORK):
                raise
            raise Rejected(str(error), **about(error)) from None
        if replies.read_canceled(payload) is False:
            raise Rejected("Sume did not cancel it.", code="not_canceled")

    def ready_avatars(self, limit: int) -> list[str]:
        """GET the handles of up to `limit` avatars that are ready for use."""
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
        """GET the balance: a free read that also shows whether the key is accepted."""
        reply = self._exchange("balance", "/v1/balance")
        return replies.Balance(replies.read_balance(_payload(reply)), reply.date)

    @staticmethod
    def _job(job_id: str, what: str = "") -> str:
        """The path of a job, or of what belongs to it."""
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
        """Send one request, a POST if it has a body; `what` names it for `on_reply`.

        Raises `SumeError` without a reply.
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
        """The reply, or only the error's type: its text can hold the URL, its chain the headers."""
        try:
            with (
                deadline(self.timeout),
                self._reads.get(path, self._headers, self.timeout) as response,
            ):
                return _reply(response, self._api_key)
        except (HTTPError, OSError, ValueError) as error:
            return type(error).__name__

    def _post(self, path: str, body: str, idempotency_key: str) -> _Reply | str:
        """As `_get`; `body` is sent byte for byte."""
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
    """The JSON of a 2xx reply. Raises `SumeError` for any other reply."""
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


def _reply(response: BaseHTTPResponse, key: str) -> _Reply:
    """The response as a reply; the API key is removed from all texts before they are shortened."""
    try:
        payload = json.loads(_read(response), object_hook=partial(without, key))
    except (ValueError, RecursionError):
        payload = None
    except (HTTPError, OSError):
        if response.status < 400:
            raise
        payload = None  # too long or unfinished: an error is classified by its head
    request_id = without(key, response.headers.get("x-sume-request-id", ""))
    date = parse_date(response.headers.get("Date"))
    # A date in `Retry-After` is by Sume's clock, which may be off, so `Date` is the reference.
    retry_after = parse_retry_after(response.headers.get("Retry-After"), date or datetime.now(UTC))
    return _Reply(response.status, retry_after, request_id, payload, date)


def _read(response: BaseHTTPResponse) -> bytes:
    """The whole body. Raises `HTTPError` if it is too long."""
    content = bytearray()
    while chunk := response.read1(65_536, decode_content=True):
        content += chunk
        if len(content) > MAX_REPLY_BYTES:
            raise HTTPError("The reply is too long.")
    return bytes(content)
