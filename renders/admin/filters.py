"""Filters of the list of renders that no field gives."""

from typing import Any

from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest

from renders import standing
from renders.models import RenderJob


class OverdueFilter(admin.SimpleListFilter):
    """What a person should look into."""

    title = "standing"
    parameter_name = "standing"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        return [("overdue", "Overdue at Sume"), ("unhandled", "Ended, not handled")]

    def queryset(self, request: HttpRequest, queryset: Any) -> QuerySet[RenderJob]:
        if self.value() == "overdue":
            return standing.overdue(queryset)
        if self.value() == "unhandled":
            return queryset.unhandled()
        return queryset
