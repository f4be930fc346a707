"""Access to pages: a login and a content policy for people, a token for monitors."""

from collections.abc import Callable
from functools import wraps
from hmac import compare_digest
from typing import Any

from django.contrib.auth.decorators import login_required
from django.http import HttpRequest
from django.http.response import HttpResponseBase

from renders.conf import conf
from renders.redaction import Hidden

# Images and media may come from any host: artifacts that are not stored are redirects.
PAGE_POLICY = (
    "default-src 'none'; script-src 'self'; connect-src 'self'; style-src 'self' 'unsafe-inline'; "
    "img-src 'self' data: https: http:; media-src 'self' https: http:; font-src 'self'; "
    "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
View = Callable[..., HttpResponseBase]


def for_people(view: View) -> View:
    """A decorator for pages: requires a login, allows only this site's scripts, sets `no-cache`."""

    @wraps(view)
    def guarded(*args: Any, **kwargs: Any) -> HttpResponseBase:
        response = keep_to_site(view(*args, **kwargs))
        response.headers.setdefault("Cache-Control", "private, no-cache")
        return response

    return login_required(guarded)


def for_anybody(view: View) -> View:
    """A decorator like `for_people`, but without a login."""

    @wraps(view)
    def guarded(*args: Any, **kwargs: Any) -> HttpResponseBase:
        return keep_to_site(view(*args, **kwargs))

    return guarded


def keep_to_site(response: HttpResponseBase) -> HttpResponseBase:
    """Add a policy to the response, so that only this site's own scripts run on the page."""
    response.headers.setdefault("Content-Security-Policy", PAGE_POLICY)
    return response


def shows_token(request: HttpRequest) -> bool | None:
    """Whether the request's bearer token is `METRICS_TOKEN`; None without a bearer token."""
    # `Hidden`, because a traceback that shows variables would show the token.
    scheme, _, given = map(Hidden, request.headers.get("Authorization", "").partition(" "))
    if scheme.lower() != "bearer":
        return None
    right, given = Hidden(conf.METRICS_TOKEN), Hidden(given.strip())
    return bool(right) and compare_digest(right.encode(), given.encode())
