"""A render's page in the admin: its buttons, and links to related pages."""

from dataclasses import dataclass
from typing import Any
from uuid import UUID

from django.contrib import admin
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseBase
from django.shortcuts import redirect
from django.urls import NoReverseMatch, path, reverse
from django.utils import timezone

from renders.conf import conf
from renders.models import RenderJob
from renders.models.querysets import HELD, HOLDABLE
from renders.states import Status
from renders.templatetags.render_facts import can_cancel, can_retry, lacks_media


@dataclass(frozen=True)
class Button:
    """One of the list's actions, for a single render. A warning asks for confirmation."""

    action: str
    label: str
    warning: str = ""


@dataclass(frozen=True)
class PageLink:
    """A link to another page."""

    label: str
    url: str


CANCEL = Button("cancel", "Cancel it")
RETRY = Button(
    "retry", "Retry it as a new render", "A retry is a new render with a new bill. Make it?"
)
RESEND = Button("resend", "Send it again with the same key")
STORE = Button("store_media", "Store its media again")
CHECK = Button("check_now", "Ask Sume about it now")
HOLD = Button("hold", "Hold it: do not send it")
RELEASE = Button("release", "Release it: send it in its turn")
ALL = (CANCEL, RESEND, STORE, RETRY, CHECK, HOLD, RELEASE)
BUTTONS = {button.action: button for button in ALL}


class RenderButtons(admin.ModelAdmin):
    """The buttons and links above a render's facts. Each button is a permitted list action."""

    def get_urls(self) -> list[Any]:
        view = self.admin_site.admin_view(self.act_view)
        return [path("<uuid:pk>/act/", view, name="renders_renderjob_act"), *super().get_urls()]

    def act_view(self, request: HttpRequest, pk: UUID) -> HttpResponseBase:
        """Apply a list action to one render, then show the render."""
        render = self.get_object(request, str(pk))
        if not self.has_view_permission(request, render):
            raise PermissionDenied
        if render is None:
            raise Http404
        page = redirect("admin:renders_renderjob_change", pk)
        if request.method != "POST":
            return page  # after a login in between: the user presses again
        action = request.POST.get("action", "")
        if action not in BUTTONS or action not in self.get_actions(request):
            raise PermissionDenied
        renders = self.get_queryset(request).filter(pk=pk)
        response: HttpResponseBase | None = getattr(self, action)(request, renders)
        return response or page

    def change_view(
        self,
        request: HttpRequest,
        object_id: str,
        form_url: str = "",
        extra_context: dict[str, Any] | None = None,
    ) -> HttpResponse:
        render = self.get_object(request, object_id)
        extra: dict[str, Any] = {}
        if render is not None and self.has_view_permission(request, render):
            extra = {
                "buttons": self._buttons(request, render),
                "links": self._links(request, render),
                # A retry confirmed on this page needs no second confirmation.
                "shown_at": timezone.now().isoformat(),
                "act_url": reverse("admin:renders_renderjob_act", args=[render.pk]),
            }
        return super().change_view(request, object_id, form_url, extra | (extra_context or {}))

    def _buttons(self, request: HttpRequest, render: RenderJob) -> list[Button]:
        renders = RenderJob.objects.filter(pk=render.pk)
        fits = {
            CANCEL: can_cancel(render),
            RESEND: renders.resendable().exists(),
            STORE: lacks_media(render),
            RETRY: can_retry(render) and not render.retries.exists(),
            CHECK: render.status == Status.SUBMITTED,
            HOLD: renders.filter(HOLDABLE).exists(),
            RELEASE: renders.filter(HELD).exists(),
        }
        allowed = self.get_actions(request)
        return [button for button in BUTTONS.values() if fits[button] and button.action in allowed]

    def _links(self, request: HttpRequest, render: RenderJob) -> list[PageLink]:
        links = []
        if self.has_add_permission(request) and not render.erased_at:
            add = reverse("admin:renders_renderjob_add")
            links.append(PageLink("New from this", f"{add}?from={render.pk}"))
        if render.retry_of_id:
            links.append(PageLink("The render that it retries", _change_url(render.retry_of_id)))
        retries = self.get_queryset(request).filter(retry_of=render)
        links += [PageLink("Its retry", _change_url(retry.pk)) for retry in retries]
        if request.user.has_perm("django_celery_results.view_taskresult"):
            try:
                results = reverse("admin:django_celery_results_taskresult_changelist")
            except NoReverseMatch:
                pass  # another result backend is used
            else:
                links.append(PageLink("Task results", f"{results}?q={render.pk}"))
        if conf.FLOWER_URL:
            # Flower puts `name:` before the word, and searches for both.
            query = f"name=renders.tasks%20args:{render.pk}"
            links.append(
                PageLink("Tasks in Flower", f"{conf.FLOWER_URL.rstrip('/')}/tasks?{query}")
            )
        return links


def _change_url(pk: Any) -> str:
    return reverse("admin:renders_renderjob_change", args=[pk])
