"""The page of one render: its media, progress and timeline; and its buttons."""

from collections.abc import Iterator
from uuid import UUID

from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse
from django.middleware.csrf import get_token
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.safestring import SafeString
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from renders import services
from renders.conf import conf
from renders.exceptions import InvalidRender
from renders.models import RenderJob
from renders.presentation.curl import curl
from renders.reports.progress import progress_of
from renders.services import permissions
from renders.templatetags.render_facts import can_retry, changes_soon
from renders.views.live import Live, for_pollers, place
from renders.views.policy import for_people


class Detail(Live):
    """The page of one render."""

    def __init__(self, request: HttpRequest, row: RenderJob) -> None:
        super().__init__(request, reverse("renders:detail_live", args=[row.pk]))
        self.row = row
        self.moving = changes_soon(row)
        self.versions["status"] = row.status
        self.add("stage", "stage", render=row)
        self.add("standing", "standing", render=row, progress=progress_of(row))
        self.add("trouble", "trouble", render=row)
        self.add(
            "actions",
            "actions",
            render=row,
            retries=list(RenderJob.objects.visible_to(request.user).filter(retry_of=row)),
            may_cancel=permissions.may_cancel(request.user, row),
            may_retry=permissions.may_retry(request.user, row),
            csrf_token=get_token(request),
        )
        self.add("known", "known", render=row)
        self.add("timeline", "timeline", events=row.events.all())

    def changes(self, shown: dict[str, str]) -> Iterator[SafeString]:
        """The changed parts, and a news line if the status has changed."""
        yield from self.changed(shown)
        if shown.get("status") != self.row.status:
            yield place("innerHTML:#news", f"Now: {self.row.get_status_display().lower()}.")


@for_people
@require_safe
def detail(request: HttpRequest, pk: UUID) -> HttpResponse:
    """The page of one render."""
    row = permissions.visible(request.user, pk)
    api = reverse("renders:api_list")
    url = conf.PUBLIC_URL + api if conf.PUBLIC_URL else request.build_absolute_uri(api)
    context = {"render": row, "live": Detail(request, row), "curl": curl(row, url)}
    return render(request, "renders/detail.html", context)


@for_pollers
@require_safe
def detail_live(request: HttpRequest, pk: UUID) -> HttpResponse:
    """The changes on the page of one render; 304 if there are none."""
    now = Detail(request, permissions.visible(request.user, pk))
    return now.unchanged() or now.reply(now.changes(now.shown()))


@for_people
@require_POST
def cancel(request: HttpRequest, pk: UUID) -> HttpResponse:
    """Request a render's cancellation."""
    row = permissions.visible(request.user, pk)
    if not permissions.may_cancel(request.user, row):
        raise PermissionDenied("You may see this render, but not cancel it.")
    if not services.cancel_render(row):
        messages.info(request, "It has ended, or its cancel was requested before.")
    elif row.is_terminal:
        messages.success(request, "Canceled before it was sent; nothing is billed.")
    else:
        messages.success(request, "Cancel requested. Sume decides whether it still can.")
    return redirect(row)


@for_people
@require_POST
def resend(request: HttpRequest, pk: UUID) -> HttpResponse:
    """Resend a render with an unknown outcome, with the same key."""
    row = permissions.visible(request.user, pk)
    if not permissions.may_retry(request.user, row):
        raise PermissionDenied("You may see this render, but not send it again.")
    if services.resend_render(row):
        messages.success(request, "Queued to be sent again with the same key.")
    else:
        messages.info(request, "It was sent again or retried before, or its outcome is known.")
    return redirect(row)


@for_people
@require_POST
def store_media(request: HttpRequest, pk: UUID) -> HttpResponse:
    """Fetch a completed render's missing media again."""
    row = permissions.visible(request.user, pk)
    if not permissions.may_retry(request.user, row):
        raise PermissionDenied("You may see this render, but not have its media stored again.")
    if services.store_media(row):
        messages.success(request, "What is missing is fetched again. This costs nothing.")
    else:
        messages.info(request, "Nothing is missing, or it is being fetched just now.")
    return redirect(row)


@for_people
@require_http_methods(["GET", "HEAD", "POST"])
def retry(request: HttpRequest, pk: UUID) -> HttpResponse:
    """Retry a failed or canceled render as a new one. GET asks for confirmation, POST retries."""
    row = permissions.visible(request.user, pk)
    if not permissions.may_retry(request.user, row):
        raise PermissionDenied("You may see this render, but not retry it.")
    if request.method != "POST":
        if can_retry(row):
            return render(request, "renders/retry.html", {"render": row})
        words = "It was erased: what was asked for is no longer known."
        messages.error(
            request, words if row.erased_at else "Only a failed or canceled render is retried."
        )
        return redirect(row)
    try:
        new, made = services.retry_once(row, request.user)
    except InvalidRender as error:
        messages.error(request, error.message)
        return redirect(row)
    if made:
        messages.success(request, "Retried as a new render, which is billed again.")
    else:
        messages.info(request, "It was retried before: this is the new render.")
    return redirect(new)
