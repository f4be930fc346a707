"""The pages: gallery, one render and its buttons. They read queries and call services."""

from uuid import UUID

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.core.exceptions import PermissionDenied
from django.core.paginator import Paginator
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from renders import access, services
from renders.exceptions import InvalidRender
from renders.forms import RenderForm
from renders.models import RenderJob
from renders.templatetags.render_facts import changes_soon

PAGE_SIZE = 24
REFRESH_SECONDS = 3


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
    row = access.visible(request.user, pk)
    context = {
        "render": row,
        "events": row.events.all(),
        "retries": RenderJob.objects.visible_to(request.user).filter(retry_of=row),
        "may_cancel": access.may_cancel(request.user, row),
        "may_retry": access.may_retry(request.user, row),
        "refresh": REFRESH_SECONDS if changes_soon(row) else None,
    }
    return render(request, "renders/detail.html", context)


@login_required
@require_POST
def cancel(request: HttpRequest, pk: UUID) -> HttpResponse:
    """Ask for a render to be canceled."""
    row = access.visible(request.user, pk)
    if not access.may_cancel(request.user, row):
        raise PermissionDenied("You may see this render, but not cancel it.")
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
    row = access.visible(request.user, pk)
    if not access.may_retry(request.user, row):
        raise PermissionDenied("You may see this render, but not retry it.")
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
