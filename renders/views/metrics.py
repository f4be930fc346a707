"""Metrics for Prometheus, summed over all processes."""

from django.contrib.auth.decorators import login_not_required
from django.db.utils import Error as DatabaseError
from django.http import HttpRequest, HttpResponse
from django.views.decorators.http import require_safe

from renders.models.querysets import sees_all
from renders.reports import figures, prometheus
from renders.telemetry import store
from renders.views.policy import shows_token

PLAIN = "text/plain; charset=utf-8"
DOWN = "# The database does not answer.\nrenders_up 0\n"


@login_not_required
@require_safe
def metrics(request: HttpRequest) -> HttpResponse:
    """The metrics page, for requests with the token and for staff who see all renders."""
    if status := _refused(request):
        response = HttpResponse("Permission denied.\n", status=status, content_type=PLAIN)
        if status == 401:
            response["WWW-Authenticate"] = 'Bearer realm="renders metrics"'
    else:
        response = _figures(request)
    response["Cache-Control"] = "no-store"
    return response


def _figures(request: HttpRequest) -> HttpResponse:
    try:
        standing = figures.standing_in_time()
        store.flush()
        totals = store.totals()
    except DatabaseError:
        return HttpResponse(DOWN, status=503, content_type=PLAIN)
    body, content_type = prometheus.text(standing, totals, request.headers.get("Accept", ""))
    return HttpResponse(body, content_type=content_type)


def _refused(request: HttpRequest) -> int:
    """The status to refuse the request with; 0 if it is allowed."""
    shown = shows_token(request)
    if shown is not None:
        return 0 if shown else 401
    if not request.user.is_authenticated:
        return 401
    return 0 if sees_all(request.user) else 403
