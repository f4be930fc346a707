"""Filters of the list of renders that are no plain field lookups."""

from typing import Any

from django.contrib import admin
from django.contrib.admin.options import IncorrectLookupParameters
from django.contrib.auth import get_user_model
from django.core.exceptions import ValidationError
from django.db.models import OuterRef, QuerySet
from django.http import HttpRequest

from renders.models import RenderJob
from renders.models.querysets import AWAITS_BUDGET, HELD, standing_in
from renders.reports import attention, standing
from renders.reports.attention import Reason
from renders.reports.summary import starts
from renders.states import IN_FLIGHT, Status

OVER_BUDGET = ("over_budget", "Waits for the budget")
MOST_USERS = 20
# Users are taken from this many of the newest renders.
MOST_RENDERS = 2_000


class StatusFilter(admin.SimpleListFilter):
    """Each status, and three conditions that are no status: in flight, held, over budget."""

    title = "status"
    parameter_name = "status"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        return [*Status.choices, ("in_flight", "In flight"), ("held", "Held"), OVER_BUDGET]

    def queryset(self, request: HttpRequest, queryset: Any) -> QuerySet[RenderJob]:
        match self.value():
            case None:
                return queryset
            case "in_flight":
                return queryset.filter(standing_in(IN_FLIGHT))
            case "held":
                return queryset.filter(HELD)
            case "over_budget":
                return queryset.filter(AWAITS_BUDGET)
            case status:
                return queryset.filter(standing_in([status]))


class AttentionFilter(admin.SimpleListFilter):
    """Renders that a person should look at."""

    title = "needs attention"
    parameter_name = "standing"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        return [("any", "For any reason"), *Reason.choices]

    def queryset(self, request: HttpRequest, queryset: Any) -> QuerySet[RenderJob]:
        value = self.value()
        if value == "any":
            return attention.needing(queryset)
        if value in Reason.values:
            return attention.needing(queryset, Reason(value))
        return queryset


class EndedFilter(admin.SimpleListFilter):
    """Renders that ended today or this month, in the site's time zone."""

    title = "ended"
    parameter_name = "ended"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        return [("today", "Today"), ("month", "This month")]

    def queryset(self, request: HttpRequest, queryset: Any) -> QuerySet[RenderJob]:
        since = starts().get(self.value() or "")
        return queryset.filter(finished_at__gte=since) if since else queryset


class WorkspaceFilter(admin.SimpleListFilter):
    """Renders of one workspace; shown only if there are several."""

    title = "workspace"
    parameter_name = "workspace"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        return [(name, name) for name in standing.all_workspaces()]

    def queryset(self, request: HttpRequest, queryset: Any) -> QuerySet[RenderJob]:
        return queryset.filter(workspace=self.value()) if self.value() else queryset


class UserFilter(admin.SimpleListFilter):
    """Renders of one user. Offers the users who added renders last, and the current choice."""

    title = "who"
    parameter_name = "who"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        own = RenderJob.objects.filter(created_by=OuterRef("pk")).order_by("-created_at")
        users = get_user_model()._default_manager.order_by()
        newest = RenderJob.objects.values("created_by")[:MOST_RENDERS]
        lately = users.filter(pk__in=newest).annotate(last=own.values("created_at")[:1])
        shown: list[Any] = list(lately.order_by("-last")[:MOST_USERS])
        chosen = self.value()
        if chosen and chosen not in {"nobody", *(str(user.pk) for user in shown)}:
            shown += users.filter(pk=self._key(chosen))
        names = sorted((user.get_username(), str(user.pk)) for user in shown)
        return [("nobody", "Nobody (a program)"), *((pk, name) for name, pk in names)]

    def queryset(self, request: HttpRequest, queryset: Any) -> QuerySet[RenderJob]:
        value = self.value()
        if value == "nobody":
            return queryset.filter(created_by=None)
        return queryset.filter(created_by=self._key(value)) if value else queryset

    def _key(self, value: str) -> Any:
        try:
            return get_user_model()._meta.pk.clean(value, None)
        except ValidationError:
            raise IncorrectLookupParameters from None
