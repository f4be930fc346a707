"""The page that adds a render, once per display of its form."""

from typing import Any
from uuid import UUID

from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_http_methods

from renders.presentation.forms import RenderForm, start_of
from renders.services import permissions
from renders.states import Kind
from renders.views.policy import for_people


@for_people
@require_http_methods(["GET", "HEAD", "POST"])
def new(request: HttpRequest) -> HttpResponse:
    """The page. `?kind=` preselects a kind; `?from=<id>` copies another render's request."""
    if not permissions.may_add(request.user):
        raise PermissionDenied
    if request.method == "POST":
        form = RenderForm(request.POST, user=request.user)
        if form.is_valid():
            if form.repeated:
                messages.info(request, "This was added before; nothing was added again.")
            else:
                what = form.made.get_kind_display().lower()
                messages.success(request, f"Added: {what}. It starts soon.")
            return redirect("renders:gallery")
    else:
        form = RenderForm(user=request.user, initial=_start(request))
    return render(request, "renders/new.html", {"form": form})


def _start(request: HttpRequest) -> dict[str, Any]:
    """The fields' initial values."""
    kind = request.GET.get("kind", "")
    if request.GET.get("from"):
        try:
            row = permissions.visible(request.user, UUID(request.GET["from"]))
        except ValueError:
            raise Http404("There is no such render.") from None
        return start_of(row, kind)
    return {"kind": kind} if kind in Kind.values else {}
