"""Finding renders: by words, by names, and by the first characters of an id.

The list of renders, also where there are millions: nothing in it counts or reads them all.

The admin: add a render, look at it, ask for cancel or retry. Nothing is edited or deleted.
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


class RenderSearch(admin.ModelAdmin):
    """The list's search box."""

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
        """What looks like an id and is one, is that; all else is looked for as words."""
        start = search_term.strip().replace("-", "")
        if START_OF_ID.fullmatch(start):
            known = queryset.filter(pk__range=(_id(start, "0"), _id(start, "f")))
            if known.exists():
                return known, False
        # Each word is a condition of its own, and databases bear only so many.
        words = " ".join(search_term.split()[:MOST_WORDS])
        return super().get_search_results(request, queryset, words)


def _id(start: str, filling: str) -> UUID:
    return UUID(start.ljust(32, filling))


# Nobody reads on for longer: filters find what lies further back.
MOST_COUNTED = 10_000
LONGEST_DAYS = {"year": 366, "month": 31, "day": 1}


class AtLeast(int):
    """A number at which counting ended."""

    def __str__(self) -> str:
        return f"{int(self):,}+"


class RenderPages(Paginator):
    """Counts as far as somebody may read on."""

    @cached_property
    def count(self) -> int:
        found: Any = self.object_list
        number = found.order_by()[: MOST_COUNTED + 1].count()
        return number if number <= MOST_COUNTED else AtLeast(MOST_COUNTED)


class ByPeriod(RenderQuerySet):
    """What the list's line of years, months or days asks for."""

    def datetimes(self, field_name: str, kind: str, *args: Any, **kwargs: Any) -> Any:
        """When those periods began in which there are some: one look into the index for each."""
        found: list[datetime] = []
        rows = self.order_by(field_name).values_list(field_name, flat=True)
        moment = rows.first()
        while moment:
            start = _start(timezone.localtime(moment), kind)
            found.append(start)
            following = _start(start + timedelta(days=LONGEST_DAYS[kind], hours=2), kind)
            moment = rows.filter(**{f"{field_name}__gte": following}).first()
        return found


class RenderList(ChangeList):
    """Reads no more than a page of the list shows: prompts and requests can be long."""

    def get_filters(self, request: HttpRequest) -> Any:
        given = [value for values in self.get_filters_params().values() for value in values]
        if "\0" in "".join(given):  # PostgreSQL cannot even compare it
            raise IncorrectLookupParameters
        return super().get_filters(request)

    def get_queryset(self, request: HttpRequest, *args: Any, **kwargs: Any) -> Any:
        # Dates of what is filtered otherwise could only be found by reading all.
        others = [name for name in self.get_filters_params() if not name.startswith("created_at__")]
        if others or self.query:
            self.date_hierarchy = None
        return super().get_queryset(request, *args, **kwargs)

    def get_results(self, request: HttpRequest) -> None:
        super().get_results(request)
        rows = attention.with_reason(self.result_list)
        self.result_list = with_openings(rows.defer("request_body", "error_message"), 100)


def _start(moment: datetime, kind: str) -> datetime:
    """When the year, month or day of this moment began, by the clock on the wall."""
    month = 1 if kind == "year" else moment.month
    day = moment.day if kind == "day" else 1
    return timezone.make_aware(datetime(moment.year, month, day))  # noqa: DTZ001 (made aware)


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
            fields = ["priority"] if permissions.may_prioritize(request.user) else []
            fields += [
                "reference",
                *(["workspace"] if workspace_choice.choices(request.user) else []),
            ]
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
            hidden = set() if permissions.may_prioritize(request.user) else {"priority"}
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
                row = permissions.visible(request.user, UUID(request.GET["from"]))
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
