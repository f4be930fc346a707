"""Renders in the admin: search, the list, the page of one render, and adding one.

Nothing is edited or deleted. The list must work with millions of rows, so nothing in it counts or
reads all of them.
"""

import re
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from django import forms
from django.contrib import admin, messages
from django.contrib.admin.options import IncorrectLookupParameters
from django.contrib.admin.utils import flatten_fieldsets
from django.contrib.admin.views.main import ChangeList
from django.contrib.auth import get_user_model
from django.core.paginator import Paginator
from django.db.models import QuerySet
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import redirect
from django.utils import timezone
from django.utils.functional import cached_property

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
from renders.conf import workspaces
from renders.models import RenderJob
from renders.models.querysets import RenderQuerySet
from renders.presentation import kind_fields
from renders.presentation.forms import start_of
from renders.presentation.titles import with_openings
from renders.reports import attention
from renders.services import permissions, workspace_choice
from renders.services.validation import REQUEST_FIELDS
from renders.states import OVER_BUDGET

MOST_WORDS = 20
START_OF_ID = re.compile(r"[0-9a-f]{8,32}", re.IGNORECASE)
# The list counts and pages no further: filters find older renders.
MOST_COUNTED = 10_000
LONGEST_DAYS = {"year": 366, "month": 31, "day": 1}
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


class RenderSearch(admin.ModelAdmin):
    """The search box of the list: words, names, ids and the start of an id."""

    search_help_text = (
        "Words of the prompt, an id or its first eight characters, how a Sume job id or a "
        "reference begins, or a user."
    )

    def get_search_fields(self, request: HttpRequest) -> list[str]:
        user = f"created_by__{get_user_model().USERNAME_FIELD}"
        return ["prompt", "^sume_job_id", "^reference", user]

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet[Any], search_term: str
    ) -> tuple[QuerySet[Any], bool]:
        """The renders with this id or start of an id, if there are any; else a word search."""
        start = search_term.strip().replace("-", "")
        if START_OF_ID.fullmatch(start):
            renders = queryset.filter(pk__range=(_id(start, "0"), _id(start, "f")))
            if renders.exists():
                return renders, False
        # Each word is a separate condition, and databases limit their number.
        words = " ".join(search_term.split()[:MOST_WORDS])
        return super().get_search_results(request, queryset, words)


def _id(start: str, filling: str) -> UUID:
    return UUID(start.ljust(32, filling))


class AtLeast(int):
    """A lower bound: counting stopped at this number."""

    def __str__(self) -> str:
        return f"{int(self):,}+"


class RenderPages(Paginator):
    """A paginator that counts at most `MOST_COUNTED` rows."""

    @cached_property
    def count(self) -> int:
        rows: Any = self.object_list
        number = rows.order_by()[: MOST_COUNTED + 1].count()
        return number if number <= MOST_COUNTED else AtLeast(MOST_COUNTED)


@admin.register(RenderJob)
class RenderJobAdmin(AddMany, RenderActions, RenderButtons, RenderColumns, RenderSearch):
    """Renders in the admin. Adding goes through services; sent requests cannot be edited."""

    form = RenderAdminForm
    list_display = ["thumbnail", "badge_and_kind", "short_prompt", "added", "times", "cost"]
    list_display_links = ["thumbnail", "short_prompt"]
    list_filter = [StatusFilter, AttentionFilter, "kind", UserFilter, "created_at", EndedFilter]
    list_select_related = ["created_by"]
    date_hierarchy = "created_at"
    paginator = RenderPages
    show_full_result_count = False  # it would count all rows
    show_facets = admin.ShowFacets.NEVER  # they would count all rows per filter choice

    class Media:
        css = {"all": ["renders/admin.css"]}

    # --- Who may do what ------------------------------------------------------------------

    def has_view_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return request.user.has_perm("renders.view_renderjob")

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False  # a billed row stays

    def get_queryset(self, request: HttpRequest) -> QuerySet[RenderJob]:
        return ByPeriod(RenderJob).visible_to(request.user)

    def get_object(self, request: HttpRequest, *args: Any, **kwargs: Any) -> Any:
        render: Any = super().get_object(request, *args, **kwargs)
        if render is not None:
            render.attention = attention.reason(render)
        return render

    def get_list_filter(self, request: HttpRequest) -> Any:
        """The filters; workspaces only if there are several."""
        return [*self.list_filter, *([WorkspaceFilter] if workspaces.several() else [])]

    def get_changelist(self, request: HttpRequest, **kwargs: Any) -> type[ChangeList]:
        return RenderList

    # --- Adding ---------------------------------------------------------------------------

    def get_fieldsets(self, request: HttpRequest, obj: Any = None) -> Any:
        if obj is None:
            fields = ["priority"] if permissions.may_prioritize(request.user) else []
            fields += [
                "reference",
                *(["workspace"] if workspace_choice.choices(request.user) else []),
            ]
            return [ASKED_FIELDSET, (ORDER, {"fields": fields})]
        missing = set()
        # If the render waits for the budget, "Now" says so.
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
            hidden = set() if permissions.may_prioritize(request.user) else {"priority"}
            # The form itself adds the workspace's field.
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
        """The initial values; `?from=<id>` copies another render's request."""
        if request.GET.get("from"):
            try:
                row = permissions.visible(request.user, UUID(request.GET["from"]))
            except ValueError:
                raise Http404("There is no such render.") from None
            return start_of(row, request.GET.get("kind", ""))
        return super().get_changeform_initial_data(request)

    def save_form(self, request: HttpRequest, form: Any, change: bool) -> RenderJob:
        """The render that the valid form has made; it is sent once this transaction commits."""
        request._render_repeated = form.repeated  # type: ignore[attr-defined]
        render: RenderJob = form.made
        return render

    def save_model(self, *args: Any) -> None:
        """Nothing to do: the form has stored the render."""

    def save_related(self, *args: Any) -> None:
        """Nothing to do: the form has no related rows."""

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


class RenderList(ChangeList):
    """The list, which reads only the columns it shows: prompts and requests can be long."""

    def get_filters(self, request: HttpRequest) -> Any:
        given = [value for values in self.get_filters_params().values() for value in values]
        if "\0" in "".join(given):  # PostgreSQL refuses to compare it
            raise IncorrectLookupParameters
        return super().get_filters(request)

    def get_queryset(self, request: HttpRequest, *args: Any, **kwargs: Any) -> Any:
        # With other filters, the date navigation would have to read all rows.
        others = [name for name in self.get_filters_params() if not name.startswith("created_at__")]
        if others or self.query:
            self.date_hierarchy = None
        return super().get_queryset(request, *args, **kwargs)

    def get_results(self, request: HttpRequest) -> None:
        super().get_results(request)
        rows = attention.with_reason(self.result_list)
        self.result_list = with_openings(rows.defer("request_body", "error_message"), 100)


class ByPeriod(RenderQuerySet):
    """The queryset for the list's date navigation (years, months, days)."""

    def datetimes(self, field_name: str, kind: str, *args: Any, **kwargs: Any) -> Any:
        """The starts of the periods that have rows: one index lookup per period."""
        starts: list[datetime] = []
        rows = self.order_by(field_name).values_list(field_name, flat=True)
        moment = rows.first()
        while moment:
            start = _start(timezone.localtime(moment), kind)
            starts.append(start)
            following = _start(start + timedelta(days=LONGEST_DAYS[kind], hours=2), kind)
            moment = rows.filter(**{f"{field_name}__gte": following}).first()
        return starts


def _start(moment: datetime, kind: str) -> datetime:
    """The local start of the year, month or day of this moment."""
    month = 1 if kind == "year" else moment.month
    day = moment.day if kind == "day" else 1
    return timezone.make_aware(datetime(moment.year, month, day))  # noqa: DTZ001 (made aware)
