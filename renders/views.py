"""The pages: gallery, one render, its media. They read queries and call services."""

from contextlib import suppress
from pathlib import PurePosixPath
from typing import Any
from uuid import UUID

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.core.exceptions import PermissionDenied
from django.core.files.storage import default_storage
from django.core.paginator import Paginator
from django.db.utils import Error as DatabaseError
from django.http import (
    FileResponse,
    Http404,
    HttpRequest,
    HttpResponse,
    HttpResponseRedirect,
    JsonResponse,
)
from django.http.response import HttpResponseBase
from django.shortcuts import get_object_or_404, redirect, render
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from renders import services, standing
from renders.exceptions import InvalidRender
from renders.forms import RenderForm
from renders.models import RenderJob
from renders.templatetags.render_facts import IMAGES, VIDEOS, changes_soon, media_type

PAGE_SIZE = 24
REFRESH_SECONDS = 3

# What is stored came from elsewhere: it may be shown, and nothing in it may run.
ARTIFACT_POLICY = (
    "default-src 'none'; img-src 'self'; media-src 'self'; style-src 'unsafe-inline'; sandbox"
)


@login_required
@require_http_methods(["GET", "HEAD", "POST"])
def gallery(request: HttpRequest) -> HttpResponse:
    """A person's renders, newest first, and the form that adds one.

    The page refreshes while something on it runs. What a person is typing would be lost then,
    so the form and the refresh are never on it together: `?add` shows the form.
    """
    form = RenderForm(request.POST if request.method == "POST" else None, user=request.user)
    if form.is_bound and form.is_valid():
        row = form.save_render()
        if form.repeated:
            messages.info(request, "This was added before; nothing was added again.")
        else:
            messages.success(request, f"Added: {row.get_kind_display().lower()}. It starts soon.")
        return redirect("renders:gallery")

    renders = RenderJob.objects.visible_to(request.user).defer("request_body")
    page = Paginator(renders.select_related("created_by"), PAGE_SIZE).get_page(
        request.GET.get("page")
    )
    moving = any(changes_soon(row) for row in page)
    adding = form.is_bound or "add" in request.GET
    context = {
        "form": form if adding or not moving else None,
        "page": page,
        "moving": moving,
        "refresh": REFRESH_SECONDS if moving and not adding else None,
    }
    return render(request, "renders/gallery.html", context)


@login_required
@require_safe
def detail(request: HttpRequest, pk: UUID) -> HttpResponse:
    """One render: its media, its facts, its timeline."""
    row = _visible(request, pk)
    context = {
        "render": row,
        "events": row.events.all(),
        "retries": RenderJob.objects.visible_to(request.user).filter(retry_of=row),
        "may_act": _may_act(request.user, row),
        "refresh": REFRESH_SECONDS if changes_soon(row) else None,
    }
    return render(request, "renders/detail.html", context)


@login_required
@require_safe
def artifact(request: HttpRequest, pk: UUID, index: int) -> HttpResponseBase:
    """The stored file of one artifact, or the way to it where none is stored."""
    row = _visible(request, pk)
    if index >= len(row.artifacts):
        raise Http404("This render has no such artifact.")
    found = row.artifacts[index]
    if found.get("file"):
        with suppress(FileNotFoundError):
            return _stored(row, index, found["file"], media_type(found))
    url = found.get("url") or ""
    if not url.lower().startswith(("http://", "https://")):
        raise Http404("This artifact is neither stored nor linked.")
    try:
        response = HttpResponseRedirect(url)
    except ValueError:
        raise Http404("The address of this artifact cannot be read.") from None
    response["Cache-Control"] = "no-store"
    response["Referrer-Policy"] = "no-referrer"
    return response


def _stored(row: RenderJob, index: int, name: str, content_type: str) -> FileResponse:
    shown = content_type in IMAGES | VIDEOS
    response = FileResponse(
        default_storage.open(name),
        as_attachment=not shown,
        filename=f"render-{str(row.pk)[:8]}-{index + 1}{PurePosixPath(name).suffix}",
        content_type=content_type if shown else "application/octet-stream",
    )
    response["X-Content-Type-Options"] = "nosniff"
    response["Content-Security-Policy"] = ARTIFACT_POLICY
    response["Cache-Control"] = "private, max-age=86400"
    return response


@login_required
@require_POST
def cancel(request: HttpRequest, pk: UUID) -> HttpResponse:
    """Ask for a render to be canceled."""
    row = _actionable(request, pk)
    if not services.cancel_render(row):
        messages.info(request, "It has ended, or its cancel was requested before.")
    elif row.is_terminal:
        messages.success(request, "Canceled before it was sent; nothing is billed.")
    else:
        messages.success(request, "Cancel requested. Sume decides whether it still can.")
    return redirect(row)


@login_required
@require_POST
def retry(request: HttpRequest, pk: UUID) -> HttpResponse:
    """Make a new render from one that failed or was canceled, once."""
    row = _actionable(request, pk)
    try:
        new, made = services.retry_once(row, request.user)
    except InvalidRender as error:
        messages.error(request, error.message)
        return redirect(row)
    if made:
        messages.success(request, "Retried as a new render, which is billed anew.")
    else:
        messages.info(request, "It was retried before: this is the new render.")
    return redirect(new)


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


def _visible(request: HttpRequest, pk: UUID) -> RenderJob:
    renders = RenderJob.objects.visible_to(request.user)
    return get_object_or_404(renders.select_related("created_by", "retry_of"), pk=pk)


def _actionable(request: HttpRequest, pk: UUID) -> RenderJob:
    row = _visible(request, pk)
    if not _may_act(request.user, row):
        raise PermissionDenied("You may see this render, but not change it.")
    return row


def _may_act(user: Any, row: RenderJob) -> bool:
    """The owner may, and staff who may change renders."""
    return bool(
        row.created_by_id == user.pk
        or (user.is_staff and user.has_perm("renders.change_renderjob"))
    )
