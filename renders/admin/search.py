"""Finding renders: by words, by names, and by the first characters of an id."""

import re
from typing import Any
from uuid import UUID

from django.contrib import admin
from django.contrib.auth import get_user_model
from django.db.models import QuerySet
from django.http import HttpRequest

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
