"""For Prometheus: the figures of all processes."""

from hmac import compare_digest

from django.db.utils import Error as DatabaseError
from django.http import HttpRequest, HttpResponse
from django.views.decorators.http import require_safe

from renders import exposition, measuring, tallies
from renders.conf import conf
from renders.hiding import Hidden
from renders.queries import sees_all

PLAIN = "text/plain; charset=utf-8"
DOWN = "# The database does not answer.\nrenders_up 0\n"


@require_safe
def metrics(request: HttpRequest) -> HttpResponse:
    """The page; for whoever has the token, and for staff who may view renders."""
    if status := _refused(request):
        response = HttpResponse("Not for you.\n", status=status, content_type=PLAIN)
        if status == 401:
            response["WWW-Authenticate"] = 'Bearer realm="renders metrics"'
    else:
        response = _figures(request)
    response["Cache-Control"] = "no-store"
    return response


def _figures(request: HttpRequest) -> HttpResponse:
    try:
        standing = measuring.standing_in_time()
        tallies.flush()
        totals = tallies.totals()
    except DatabaseError:
        return HttpResponse(DOWN, status=503, content_type=PLAIN)
    body, content_type = exposition.text(standing, totals, request.headers.get("Accept", ""))
    return HttpResponse(body, content_type=content_type)


def _refused(request: HttpRequest) -> int:
    """The status to refuse with; 0 for those who may look."""
    # Nothing in clear in a variable: a traceback that shows these would show the token.
    scheme, _, given = map(Hidden, request.headers.get("Authorization", "").partition(" "))
    if scheme.lower() == "bearer":
        known, given = Hidden(conf.METRICS_TOKEN), Hidden(given.strip())
        same = compare_digest(known.encode(), given.encode())
        return 0 if known and same else 401
    if not request.user.is_authenticated:
        return 401
    return 0 if sees_all(request.user) else 403
