"""Authentication of API callers: by token, or by session.

With a token, cookies are ignored, so the request needs no CSRF token. Nothing redirects to a
login page, since a program could not use it.
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
    """True if a token authenticates the caller, False if a session does; sets `request.user`.

    Raises `Problem`.
    """
    # `Hidden`, because a traceback that shows variables would show the token.
    given = Hidden(request.headers.get("Authorization", ""))
    if given.partition(" ")[0].lower() == "bearer":
        _by_token(request, Hidden(given[7:].strip()))
        return True
    # Other schemes are ignored: a proxy may use them.
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
