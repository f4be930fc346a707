"""The admin: add a render, look at it, ask for cancel or retry. Nothing is edited or deleted."""

from typing import Any

from django import forms
from django.contrib import admin, messages
from django.contrib.admin.utils import flatten_fieldsets
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import redirect
from django.template.loader import render_to_string
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.text import Truncator

from renders.admin.actions import RenderActions
from renders.admin.filters import OverdueFilter
from renders.forms import RenderAdminForm
from renders.models import RenderEvent, RenderJob
from renders.templatetags.render_facts import age, in_words, pretty_json, took, usd

ADD_FIELDSETS = [
    (None, {"fields": ["token", "kind", "prompt", "model", "params"]}),
    ("Order and name", {"fields": ["priority", "reference"]}),
]
FIELDSETS: Any = [
    (None, {"fields": [("badge", "standing"), "trouble", "pictures", "whole_prompt"]}),
    ("Request", {"fields": [("kind", "model", "priority"), "params_json", "reference"]}),
    (
        "Who and when",
        {"fields": [("created_by", "created_at"), ("submitted_at", "finished_at", "handled_at")]},
    ),
    ("At Sume", {"fields": [("sume_job_id", "sume_status"), ("cost", "idempotency_hit")]}),
    (
        "Inner workings",
        {
            "classes": ["collapse"],
            "fields": [
                ("id", "idempotency_key", "retry_of"),
                ("submit_attempts", "not_before", "claimed_at"),
                ("poll_count", "failed_reads", "last_polled_at", "next_poll_at"),
                ("cancel_requested_at", "cancel_answered_at"),
            ],
        },
    ),
]


class TimelineInline(admin.TabularInline):
    """What happened to a render; seen by whoever sees the render."""

    model = RenderEvent
    template = "renders/admin/timeline.html"
    extra = 0
    can_delete = False
    fields = ["at", "what", "detail"]
    readonly_fields = ["at", "what", "detail"]

    def has_view_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return True

    def has_add_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False


@admin.register(RenderJob)
class RenderJobAdmin(RenderActions):
    """Adds through the services; all else is read-only, since what was sent cannot be edited."""

    form = RenderAdminForm
    list_display = ["badge", "kind", "short_prompt", "who", "created", "lasted", "cost"]
    list_display_links = ["badge", "short_prompt"]
    list_filter = ["status", OverdueFilter, "kind", "created_at"]
    list_select_related = ["created_by"]
    date_hierarchy = "created_at"
    search_fields = ["prompt", "id", "sume_job_id", "reference"]
    search_help_text = "Words of the prompt, an id, a Sume job id or a reference."

    class Media:
        css = {"all": ["renders/admin.css"]}

    # --- Who may do what ------------------------------------------------------------------

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False  # a bill's row stays

    def get_queryset(self, request: HttpRequest) -> QuerySet[RenderJob]:
        return RenderJob.objects.visible_to(request.user)

    # --- Adding ---------------------------------------------------------------------------

    def get_fieldsets(self, request: HttpRequest, obj: Any = None) -> Any:
        return FIELDSETS if obj else ADD_FIELDSETS

    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> list[str]:
        return flatten_fieldsets(FIELDSETS) if obj else []

    def get_inlines(self, request: HttpRequest, obj: Any) -> list[Any]:
        return [TimelineInline] if obj else []

    def get_form(
        self, request: HttpRequest, obj: Any = None, change: bool = False, **kwargs: Any
    ) -> Any:
        kwargs["form"] = forms.ModelForm if obj else RenderAdminForm
        form: Any = super().get_form(request, obj, change=change, **kwargs)
        form.user = request.user
        return form

    def add_view(
        self, request: HttpRequest, form_url: str = "", extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        extra = {"title": "Add a render", "show_save_and_continue": False}
        return super().add_view(request, form_url, extra | (extra_context or {}))

    def save_form(self, request: HttpRequest, form: Any, change: bool) -> RenderJob:
        """The services store the row, and have it sent once this transaction commits."""
        render: RenderJob = form.save_render()
        request._render_repeated = form.repeated  # type: ignore[attr-defined]
        return render

    def save_model(self, *args: Any) -> None:
        """Stored already, by `save_form`."""

    def save_related(self, *args: Any) -> None:
        """Nothing else is on the form."""

    def log_addition(self, request: HttpRequest, obj: Any, message: Any) -> Any:
        repeated = getattr(request, "_render_repeated", False)
        return None if repeated else super().log_addition(request, obj, message)

    def response_add(
        self, request: HttpRequest, obj: RenderJob, post_url_continue: str | None = None
    ) -> HttpResponse:
        if getattr(request, "_render_repeated", False):
            text = "This form was sent before; nothing was added again. This is its render."
            messages.info(request, text)
        else:
            messages.success(request, "Added. It is sent to Sume within moments.")
        if "_addanother" in request.POST:
            return HttpResponseRedirect(request.path)
        if self.has_view_permission(request, obj):
            return redirect("admin:renders_renderjob_change", obj.pk)
        return HttpResponseRedirect(obj.get_absolute_url())

    def view_on_site(self, obj: RenderJob) -> str:
        """The render's page, with its buttons."""
        return obj.get_absolute_url()

    # --- What is shown --------------------------------------------------------------------

    @admin.display(description="Status", ordering="status")
    def badge(self, render: RenderJob) -> SafeString:
        return format_html(
            '<span class="badge badge-{}">{}</span>', render.status, render.get_status_display()
        )

    @admin.display(description="Prompt")
    def short_prompt(self, render: RenderJob) -> str:
        return Truncator(render.prompt).chars(80)

    @admin.display(description="Who", ordering="created_by")
    def who(self, render: RenderJob) -> Any:
        return render.created_by

    @admin.display(description="Created", ordering="created_at")
    def created(self, render: RenderJob) -> SafeString:
        moment = render.created_at
        return format_html('<span title="{}">{} ago</span>', f"{moment:%F %T %Z}", age(moment))

    @admin.display(description="Took", ordering="finished_at")
    def lasted(self, render: RenderJob) -> str:
        return took(render)

    @admin.display(description="Cost", ordering="cost_usd_micros")
    def cost(self, render: RenderJob) -> str:
        return usd(render.cost_usd_micros)

    @admin.display(description="Now")
    def standing(self, render: RenderJob) -> str:
        return in_words(render)

    @admin.display(description="Result")
    def pictures(self, render: RenderJob) -> str:
        if not render.artifacts:
            return "-"
        return render_to_string("renders/admin/media.html", {"render": render})

    @admin.display(description="Prompt")
    def whole_prompt(self, render: RenderJob) -> SafeString:
        return format_html('<p class="renders-prompt">{}</p>', render.prompt)

    @admin.display(description="Error")
    def trouble(self, render: RenderJob) -> str:
        return ": ".join(filter(None, [render.error_code, render.error_message])) or "-"

    @admin.display(description="Params")
    def params_json(self, render: RenderJob) -> SafeString:
        return format_html('<pre class="renders-json">{}</pre>', pretty_json(render.params) or "{}")
