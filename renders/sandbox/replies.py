"""What goes back to the client: replies and the error envelope. Knows no socket."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Reply:
    """An HTTP reply: a JSON `payload`, or, where that is None, the raw `body`."""

    status: int
    payload: Any = None
    body: bytes = b""
    content_type: str = "application/json"
    headers: Mapping[str, str] = field(default_factory=dict)

    def content(self) -> bytes:
        """The body's bytes. JSON is pure ASCII, so NUL and lone surrogates travel as escapes."""
        return self.body if self.payload is None else json.dumps(self.payload).encode("ascii")


class ApiError(Exception):
    """A refusal in Sume's error envelope.

    `retryable` None leaves the field out; `errors` are (path, message) pairs; `retry_after`
    is the header's text (seconds or an HTTP date).
    """

    def __init__(
        self,
        status: int,
        code: str,
        message: str,
        *,
        retryable: bool | None = None,
        errors: Sequence[tuple[str, str]] = (),
        retry_after: str | None = None,
    ) -> None:
        super().__init__(message)
        self.status = status
        self.code = code
        self.message = message
        self.retryable = retryable
        self.errors = tuple(errors)
        self.retry_after = retry_after

    def reply(self, request_id: str) -> Reply:
        """This refusal as a reply; `request_id` names the HTTP request, not the job."""
        error: dict[str, Any] = {"code": self.code, "message": self.message}
        if self.errors:
            error["details"] = {"errors": [{"path": p, "message": m} for p, m in self.errors]}
        if self.retryable is not None:
            error["retryable"] = self.retryable
        error["request_id"] = request_id
        headers = {} if self.retry_after is None else {"Retry-After": self.retry_after}
        return Reply(self.status, {"error": error, "request_id": request_id}, headers=headers)


def html_page(status: int, title: str) -> Reply:
    """A page such as a proxy in between answers with."""
    page = (
        f"<!doctype html><html><head><title>{title}</title></head>"
        f"<body><h1>{title}</h1><hr>sandbox proxy</body></html>\n"
    )
    return Reply(status, body=page.encode(), content_type="text/html; charset=utf-8")


def job_not_found() -> ApiError:
    """The refusal for a job id that is unknown or expired."""
    return ApiError(404, "job_not_found", "There is no such job, or it has expired.")


def result_not_ready(status: int) -> ApiError:
    """The refusal for a result that is read too soon. `status` is 404 or 409."""
    message = "The result is not ready yet."
    return ApiError(status, "result_not_ready", message, retryable=True)
