"""For monitors: does this process answer, and what should a person know."""

from django.db.utils import Error as DatabaseError
from django.http import HttpRequest, JsonResponse
from django.views.decorators.http import require_safe

from renders import standing
from renders.models import RenderJob


@require_safe
def healthz(request: HttpRequest) -> JsonResponse:
    """Whether this process answers and reaches its database; and what a monitor should know.

    A closed gate is no fault of this process: the status stays 200.
    """
    try:
        gates = {
            gate.sort: {"open": not gate.closed, "why": gate.code, "until": gate.until}
            for gate in standing.gates()
        }
        overdue = standing.overdue(RenderJob.objects.all()).count()
    except DatabaseError:
        reply = {"status": "unavailable", "detail": "The database does not answer."}
        return JsonResponse(reply, status=503)
    return JsonResponse({"status": "ok", "gate": gates, "overdue": overdue})
