"""Health checks over HTTP, for load balancers, containers and monitors."""

from collections.abc import Callable
from typing import Any

from django.conf import settings
from django.contrib.auth.decorators import login_not_required
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.urls import NoReverseMatch, reverse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe

from renders.health import readiness
from renders.health.findings import HealthPart
from renders.health.readiness import Readiness
from renders.models.querysets import sees_all
from renders.views.policy import shows_token


@login_not_required
@never_cache
@require_safe
def healthz(request: HttpRequest) -> JsonResponse:
    """Always OK. Nothing else is checked, since restarting this process would not fix it."""
    return JsonResponse({"status": "ok"})


@login_not_required
@never_cache
@require_safe
def readyz(request: HttpRequest) -> JsonResponse:
    """Whether this process can work, and the health of the other parts.

    The status is 503 if this process cannot work; with `?all=1`, if anything is wrong. Details
    need the metrics token, or a login of staff who see all renders.
    """
    state = readiness.look()
    able = state.whole if request.GET.get("all") == "1" else state.able
    describe = _details if _may_see_details(request, state) else _outline
    reply = {"status": state.status, "parts": [describe(part) for part in state.parts]}
    response = JsonResponse(reply, status=200 if able else 503)
    # Monitors ask every few seconds: in an outage, Django would log an ERROR for each reply.
    response._has_been_logged = True  # type: ignore[attr-defined]
    return response


def _outline(part: HealthPart) -> dict[str, Any]:
    return {"name": part.name, "ok": part.ok}


def _details(part: HealthPart) -> dict[str, Any]:
    advice = " ".join(finding.advice for finding in part.findings if finding.advice)
    return {
        **_outline(part),
        "detail": part.detail,
        "next_step": advice,
        "seconds": round(part.seconds, 3),
    }


def _may_see_details(request: HttpRequest, state: Readiness) -> bool:
    if shows_token(request):
        return True
    # Sessions are in the database, so they are only read if it answers.
    logged_in = settings.SESSION_COOKIE_NAME in request.COOKIES
    return state.able and logged_in and sees_all(request.user)


def by_any_name(
    get_response: Callable[[HttpRequest], HttpResponse],
) -> Callable[[HttpRequest], HttpResponse]:
    """Middleware that accepts any host name for these two pages; it must come first.

    Load balancers use an IP address instead of a name, and the pages do not use the name. For
    other pages, `ALLOWED_HOSTS` holds.
    """

    def middleware(request: HttpRequest) -> HttpResponse:
        if request.path in _paths():
            request.get_host = lambda: "localhost"  # type: ignore[method-assign]
        return get_response(request)

    return middleware


def _paths() -> set[str]:
    try:
        return {reverse("renders:healthz"), reverse("renders:readyz")}
    except NoReverseMatch:
        return set()
