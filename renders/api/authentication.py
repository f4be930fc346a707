"""Who calls: the bearer of a token, or a person with a session.

A request that brings a token is judged by the token alone; its cookies count for nothing, so it
needs no CSRF token. Nothing here redirects: a program cannot log in on a page.
"""

from django.http import HttpRequest
from django.utils import timezone

from renders.api import throttling
from renders.models import ApiToken
from renders.presentation.problems import Problem
from renders.redaction import Hidden

REALM = 'Bearer realm="renders"'
REFUSED = f'{REALM}, error="invalid_token"'


def authenticate(request: HttpRequest) -> bool:
    """Set `request.user`; returns whether a token did it. Raises `Problem`."""
    # Nothing in clear in a variable: a traceback that shows these would show the token.
    given = Hidden(request.headers.get("Authorization", ""))
    if given.partition(" ")[0].lower() == "bearer":
        _by_token(request, Hidden(given[7:].strip()))
        return True
    # Another scheme is somebody else's: that of a proxy, for instance.
    if not request.user.is_authenticated:
        raise Problem(
            401, "Send a token (Authorization: Bearer …) or log in.", WWW_Authenticate=REALM
        )
    return False


def _by_token(request: HttpRequest, clear: str) -> None:
    now = timezone.now()
    token = ApiToken.objects.of(clear, now)
    if token is None:
        throttling.count_refusal(str(request.META.get("REMOTE_ADDR") or ""))
        raise Problem(
            401,
            "This token is unknown, expired or revoked, or its user may not log in.",
            code="invalid_token",
            WWW_Authenticate=REFUSED,
        )
    token.note_use(now)
    request.user = token.user
