"""The API's errors: each is a problem document (RFC 9457)."""

from collections.abc import Iterable
from typing import Any

from django.core.exceptions import RequestDataTooBig
from django.http import JsonResponse

from renders.exceptions import InvalidRender

CONTENT_TYPE = "application/problem+json"
MOST_ERRORS = 100

# The statuses in use, each with a code for programs and a title for people.
STATUSES = {
    400: ("bad_request", "Bad Request"),
    401: ("not_authenticated", "Unauthorized"),
    403: ("not_allowed", "Forbidden"),
    404: ("not_found", "Not Found"),
    405: ("method_not_allowed", "Method Not Allowed"),
    409: ("conflict", "Conflict"),
    413: ("too_large", "Content Too Large"),
    415: ("not_json", "Unsupported Media Type"),
    422: ("not_acceptable", "Unprocessable Content"),
    429: ("too_many_requests", "Too Many Requests"),
    500: ("internal_error", "Internal Server Error"),
}


class Problem(Exception):
    """The request cannot be served; carries the reply's body and headers."""

    def __init__(
        self,
        status: int,
        detail: str,
        errors: Iterable[InvalidRender] = (),
        *,
        code: str = "",
        **headers: str,
    ) -> None:
        super().__init__(detail)
        usual, title = STATUSES[status]
        self.body: dict[str, Any] = {
            "type": "about:blank",
            "title": title,
            "status": status,
            "code": code or usual,
            "detail": detail,
        }
        fields = [{"field": error.field, "message": error.message} for error in errors]
        if fields:
            self.body["errors"] = fields[:MOST_ERRORS]
        self.headers = {name.replace("_", "-"): value for name, value in headers.items()}

    def response(self) -> JsonResponse:
        """The problem as a reply."""
        return JsonResponse(
            self.body,
            status=self.body["status"],
            content_type=CONTENT_TYPE,
            headers=self.headers,
        )


def unacceptable(error: Exception) -> Problem:
    """For requests that Django refuses. Django's own message names settings, so it is not shown."""
    if isinstance(error, RequestDataTooBig):
        return Problem(413, "The body is larger than this site takes.")
    return Problem(400, "The host, the headers or the query of this request are not acceptable.")


def unexpected() -> Problem:
    """For a fault of the server."""
    return Problem(500, "This is a fault of the server, and it was noted. Try again later.")
