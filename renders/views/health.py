"""For load balancers, containers and monitors: does this process live, can it work, is all well?"""

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
    """That this process answers; nothing else is asked, so a restart would help if it does not."""
    return JsonResponse({"status": "ok"})


@login_not_required
@never_cache
@require_safe
def readyz(request: HttpRequest) -> JsonResponse:
    """Whether this process can work, and how the other parts are.

    503 where it cannot; with `?all=1` wherever something is wrong. Details are for staff, and
    for who has the token of the metrics.
    """
    found = readiness.look()
    able = found.whole if request.GET.get("all") == "1" else found.able
    told = _details if _may_see_details(request, found) else _outline
    reply = {"status": found.status, "parts": [told(part) for part in found.parts]}
    response = JsonResponse(reply, status=200 if able else 503)
    # Asked every few seconds: Django would write an ERROR for each answer of an outage.
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


def _may_see_details(request: HttpRequest, found: Readiness) -> bool:
    if shows_token(request):
        return True
    # Who is logged in, the database knows: one that is silent is not asked.
    logged_in = settings.SESSION_COOKIE_NAME in request.COOKIES
    return found.able and logged_in and sees_all(request.user)


def by_any_name(
    get_response: Callable[[HttpRequest], HttpResponse],
) -> Callable[[HttpRequest], HttpResponse]:
    """Middleware, the first: load balancers ask for these two pages by an address, not a name.

    The pages make no use of the name; any other page is refused as ever (`ALLOWED_HOSTS`).
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
