"""The admin: add a render, look at it, ask for cancel or retry. Nothing is edited or deleted."""

from typing import Any
from uuid import UUID

from django import forms
from django.contrib import admin, messages
from django.contrib.admin.utils import flatten_fieldsets
from django.contrib.admin.views.main import ChangeList
from django.db.models import QuerySet
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import redirect

from renders import access, attention, choosing, kind_fields, workspaces
from renders.admin.actions import RenderActions
from renders.admin.bulk import AddMany
from renders.admin.buttons import RenderButtons
from renders.admin.columns import RenderColumns
from renders.admin.filters import (
    AttentionFilter,
    EndedFilter,
    StatusFilter,
    UserFilter,
    WorkspaceFilter,
)
from renders.admin.forms import RenderAdminForm
from renders.admin.listing import ByPeriod, RenderList, RenderPages
from renders.admin.search import RenderSearch
from renders.forms import start_of
from renders.models import RenderJob
from renders.states import OVER_BUDGET
from renders.validation import REQUEST_FIELDS

ORDER = "Order and name"
ASKED = [*kind_fields.BEFORE, "prompt", *kind_fields.AFTER, *kind_fields.SELDOM, "model", "params"]
ASKED_FIELDSET: Any = (None, {"fields": ["token", "kind", *ASKED]})
FIRST: list[Any] = [("badge", "standing"), "trouble", "pictures", "whole_prompt"]
FIELDSETS: Any = [
    (
        "Who and when",
        {
            "fields": [
                ("created_by", "created_at"),
                ("submitted_at", "finished_at", "handled_at"),
                ("waited", "rendered"),
            ]
        },
    ),
    ("At Sume", {"fields": [("sume_job_id", "sume_status"), ("cost", "idempotency_hit")]}),
    (
        "Inner workings",
        {
            "classes": ["collapse"],
            "fields": [
                ("id", "idempotency_key", "retry_of"),
                ("submit_attempts", "not_before", "claimed_at", "outcome_unknown_at"),
                ("poll_count", "failed_reads", "last_polled_at", "next_poll_at"),
                ("cancel_requested_at", "cancel_answered_at"),
                ("media_removed_at", "erased_at"),
            ],
        },
    ),
]


@admin.register(RenderJob)
class RenderJobAdmin(AddMany, RenderActions, RenderButtons, RenderColumns, RenderSearch):
    """Adds through the services; all else is read-only, since what was sent cannot be edited."""

    form = RenderAdminForm
    list_display = ["thumbnail", "badge_and_kind", "short_prompt", "added", "times", "cost"]
    list_display_links = ["thumbnail", "short_prompt"]
    list_filter = [StatusFilter, AttentionFilter, "kind", UserFilter, "created_at", EndedFilter]
    list_select_related = ["created_by"]
    date_hierarchy = "created_at"
    paginator = RenderPages
    show_full_result_count = False  # a count of all rows, for a number beside the other
    show_facets = admin.ShowFacets.NEVER  # a count of all rows for each choice of each filter

    class Media:
        css = {"all": ["renders/admin.css"]}

    # --- Who may do what ------------------------------------------------------------------

    def has_view_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return request.user.has_perm("renders.view_renderjob")

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False  # a bill's row stays

    def get_queryset(self, request: HttpRequest) -> QuerySet[RenderJob]:
        return ByPeriod(RenderJob).visible_to(request.user)

    def get_object(self, request: HttpRequest, *args: Any, **kwargs: Any) -> Any:
        render: Any = super().get_object(request, *args, **kwargs)
        if render is not None:
            render.attention = attention.reason(render)
        return render

    def get_list_filter(self, request: HttpRequest) -> Any:
        """Of workspaces nobody reads where there is one."""
        return [*self.list_filter, *([WorkspaceFilter] if workspaces.several() else [])]

    def get_changelist(self, request: HttpRequest, **kwargs: Any) -> type[ChangeList]:
        return RenderList

    # --- Adding ---------------------------------------------------------------------------

    def get_fieldsets(self, request: HttpRequest, obj: Any = None) -> Any:
        if obj is None:
            fields = ["priority"] if access.may_prioritize(request.user) else []
            fields += ["reference", *(["workspace"] if choosing.choices(request.user) else [])]
            return [ASKED_FIELDSET, (ORDER, {"fields": fields})]
        missing = set()
        # Why it waits for a budget, "Now" says.
        if obj.error_code == OVER_BUDGET or not (obj.error_code or obj.error_message):
            missing.add("trouble")
        if not obj.artifacts:
            missing.add("pictures")
        first = [name for name in FIRST if name not in missing]
        request_facts = ["kind", *(["model"] if obj.model else []), "priority"]
        asked = ("Request", {"fields": [tuple(request_facts), "params_json", "reference"]})
        if workspaces.several() or obj.workspace != workspaces.DEFAULT:
            first.append("workspace")
        return [(None, {"fields": first}), asked, *FIELDSETS]

    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> list[str]:
        return flatten_fieldsets(self.get_fieldsets(request, obj)) if obj else []

    def get_form(
        self, request: HttpRequest, obj: Any = None, change: bool = False, **kwargs: Any
    ) -> Any:
        kwargs["form"] = forms.ModelForm if obj else RenderAdminForm
        if obj is None:
            hidden = set() if access.may_prioritize(request.user) else {"priority"}
            # The workspace's is the form's own.
            kwargs["fields"] = ["token", *(name for name in REQUEST_FIELDS if name not in hidden)]
        form: Any = super().get_form(request, obj, change=change, **kwargs)
        form.user = request.user
        return form

    def add_view(
        self, request: HttpRequest, form_url: str = "", extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        extra = {"title": "Add a render", "show_save_and_continue": False}
        return super().add_view(request, form_url, extra | (extra_context or {}))

    def get_changeform_initial_data(self, request: HttpRequest) -> dict[str, Any]:
        """`?from=<id>` begins with what another render asks for."""
        if request.GET.get("from"):
            try:
                row = access.visible(request.user, UUID(request.GET["from"]))
            except ValueError:
                raise Http404("There is no such render.") from None
            return start_of(row, request.GET.get("kind", ""))
        return super().get_changeform_initial_data(request)

    def save_form(self, request: HttpRequest, form: Any, change: bool) -> RenderJob:
        """A valid form has made its render, which is sent once this transaction commits."""
        request._render_repeated = form.repeated  # type: ignore[attr-defined]
        render: RenderJob = form.made
        return render

    def save_model(self, *args: Any) -> None:
        """Stored already, by the form."""

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
            messages.success(request, "Added. It is sent to Sume in its turn.")
        if "_addanother" in request.POST:
            return HttpResponseRedirect(request.path)
        if self.has_view_permission(request, obj):
            return redirect("admin:renders_renderjob_change", obj.pk)
        return HttpResponseRedirect(obj.get_absolute_url())

    def view_on_site(self, obj: RenderJob) -> str:
        """The render's page, with its buttons."""
        return obj.get_absolute_url()
