"""An id for each web request, in its log lines and in the response, to find the lines later."""

import re
import uuid
from collections.abc import Callable

from django.http import HttpRequest
from django.http.response import HttpResponseBase

from renders.telemetry import log_context

HEADER = "X-Request-ID"
# An id from a proxy in front of this site is kept if it matches.
SANE = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:/+=-]{7,99}")


class RequestIds:
    """Middleware that sets `request.request_id`: the request's own id, else a new one."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self._get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        given = request.headers.get(HEADER, "")
        name = given if SANE.fullmatch(given) else uuid.uuid4().hex
        request.request_id = name  # type: ignore[attr-defined]
        with log_context.about(request_id=name):
            response = self._get_response(request)
        response[HEADER] = name
        return response
