"""How monitors prove who they are: by the token of `METRICS_TOKEN`."""

from hmac import compare_digest

from django.http import HttpRequest

from renders.conf import conf
from renders.hiding import Hidden


def shows_token(request: HttpRequest) -> bool | None:
    """Whether the bearer token of the request is that of monitors; None if it brings none."""
    # Nothing in clear in a variable: a traceback that shows these would show the token.
    scheme, _, given = map(Hidden, request.headers.get("Authorization", "").partition(" "))
    if scheme.lower() != "bearer":
        return None
    known, given = Hidden(conf.METRICS_TOKEN), Hidden(given.strip())
    return bool(known) and compare_digest(known.encode(), given.encode())
