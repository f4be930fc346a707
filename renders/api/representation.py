"""Renders as the API's JSON. Media have this app's addresses, never Sume's."""

from datetime import datetime
from typing import Any

from django.http import HttpRequest
from django.urls import reverse

from renders.models import RenderJob
from renders.presentation.media_links import media
from renders.redaction import is_erased
from renders.services.allowances import Allowance
from renders.states import takes_model


def represent(request: HttpRequest, render: RenderJob) -> dict[str, Any]:
    """A render as JSON."""
    error = None
    if render.is_terminal and render.error_code:
        error = {"code": render.error_code, "message": render.error_message}
    return {
        "id": str(render.pk),
        "workspace": render.workspace,
        "kind": render.kind,
        "model": render.model if takes_model(render.kind) else None,
        "prompt": render.prompt,
        "params": render.params,
        "priority": render.priority,
        "reference": None if is_erased(render.reference) else render.reference,
        "status": render.status,
        "sume_status": render.sume_status,
        "created_at": _moment(render.created_at),
        "submitted_at": _moment(render.submitted_at),
        "cancel_requested_at": _moment(render.cancel_requested_at),
        "finished_at": _moment(render.finished_at),
        "erased_at": _moment(render.erased_at),
        "error": error,
        "waiting_reason": _waiting_reason(render),
        "artifacts": [
            {
                "type": item.type,
                "content_type": item.content_type,
                "url": _address(request, "api_artifact", render.pk, item.index),
            }
            for item in media(render)
        ],
        "cost_usd_micros": render.cost_usd_micros,
        "retry_of": render.retry_of_id and str(render.retry_of_id),
        "url": _address(request, "api_detail", render.pk),
        "html_url": _address(request, "detail", render.pk),
    }


def represent_allowance(allowance: Allowance) -> dict[str, Any]:
    """A workspace's budgets as JSON."""
    return {
        "workspace": allowance.workspace,
        "budget_usd_micros": allowance.budget,
        "left_usd_micros": allowance.left,
        "user_budget_usd_micros": allowance.user_budget,
        "user_left_usd_micros": allowance.user_left,
    }


def _waiting_reason(render: RenderJob) -> dict[str, str] | None:
    if not render.awaits_budget:
        return None
    return {"code": render.error_code, "message": render.error_message}


def _address(request: HttpRequest, name: str, *args: Any) -> str:
    return request.build_absolute_uri(reverse(f"renders:{name}", args=args))


def _moment(moment: datetime | None) -> str | None:
    """RFC 3339 with microseconds, so that callers can filter by the exact time."""
    return moment.isoformat().replace("+00:00", "Z") if moment else None
