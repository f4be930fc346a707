"""How monitors prove who they are: by the token of `METRICS_TOKEN`.

What holds for every page for people: a login, and scripts from this site alone.
"""

from collections.abc import Callable
from functools import wraps
from hmac import compare_digest
from typing import Any

from django.contrib.auth.decorators import login_required
from django.http import HttpRequest
from django.http.response import HttpResponseBase

from renders.conf import conf
from renders.redaction import Hidden


def shows_token(request: HttpRequest) -> bool | None:
    """Whether the bearer token of the request is that of monitors; None if it brings none."""
    # Nothing in clear in a variable: a traceback that shows these would show the token.
    scheme, _, given = map(Hidden, request.headers.get("Authorization", "").partition(" "))
    if scheme.lower() != "bearer":
        return None
    known, given = Hidden(conf.METRICS_TOKEN), Hidden(given.strip())
    return bool(known) and compare_digest(known.encode(), given.encode())


# An artifact that is not stored is shown by way of a redirect to where it lives.
PAGE_POLICY = (
    "default-src 'none'; script-src 'self'; connect-src 'self'; style-src 'self' 'unsafe-inline'; "
    "img-src 'self' data: https: http:; media-src 'self' https: http:; font-src 'self'; "
    "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)

View = Callable[..., HttpResponseBase]


def keep_to_site(response: HttpResponseBase) -> HttpResponseBase:
    """Let nothing but this site's own files run on the page."""
    response.headers.setdefault("Content-Security-Policy", PAGE_POLICY)
    return response


def for_anybody(view: View) -> View:
    """As `for_people`, before the login."""

    @wraps(view)
    def guarded(*args: Any, **kwargs: Any) -> HttpResponseBase:
        return keep_to_site(view(*args, **kwargs))

    return guarded


def for_people(view: View) -> View:
    """Ask strangers to log in; let nothing but this site's own files run on the page."""

    @wraps(view)
    def guarded(*args: Any, **kwargs: Any) -> HttpResponseBase:
        response = keep_to_site(view(*args, **kwargs))
        response.headers.setdefault("Cache-Control", "private, no-cache")
        return response

    return login_required(guarded)
