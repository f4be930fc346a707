"""The gallery: a user's renders, newest first. It refreshes itself while something runs."""

import re
from collections.abc import Iterator
from typing import Any

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.utils import timezone
from django.utils.safestring import SafeString
from django.utils.text import Truncator
from django.views.decorators.http import require_safe

from renders.models import RenderJob
from renders.models.querysets import sees_all
from renders.presentation.filters import FilterForm
from renders.presentation.paging import count_of, page_of
from renders.presentation.titles import title_of, with_openings
from renders.services import allowances
from renders.templatetags.render_facts import changes_soon
from renders.views.live import Live, for_pollers, part, place
from renders.views.policy import for_people

PAGE_SIZE = 24
MOST_NEWS = 3


class Gallery(Live):
    """One filtered page of renders: two queries, plus some for budgets if there are any."""

    def __init__(self, request: HttpRequest) -> None:
        self.filters = FilterForm(request.GET, user=request.user)
        before, after = (request.GET.get(name, "") for name in ("before", "after"))
        here = self.filters.query(before=before, after=after)
        super().__init__(request, reverse("renders:gallery_live") + here)
        visible = RenderJob.objects.visible_to(request.user)
        renders = self.filters.apply(visible).select_related("created_by")
        # Prompts can be long, and cards show only their beginning.
        renders = with_openings(renders.defer("request_body"), 200)
        page = page_of(renders, PAGE_SIZE, before=before, after=after)

        self.rows: list[Any] = page.rows
        self.filtered = self.filters.active or bool(page.newer)
        self.moving = any(changes_soon(row) for row in self.rows)
        self.add("count", "count", count=count_of(renders), filtered=self.filters.active)
        self.add("empty", "empty", rows=self.rows, filtered=self.filters.active, page=page)
        self.add("budget", "budget", allowance=self._allowance())
        newer, older = (
            self.filters.query(**{name: mark}) if mark else ""
            for name, mark in (("after", page.newer), ("before", page.older))
        )
        self.add("pages", "pages", newer=newer, older=older)
        for row in self.rows:
            self.versions[_name("card", row)] = row.status
            self.add(_name("frame", row), "frame", render=row)
            self.add(_name("facts", row), "facts", render=row)

    def _allowance(self) -> list[tuple[str, bool]]:
        user = self.request.user
        workspace = self.filters.cleaned_data.get("workspace", "")
        return allowances.in_words(user, workspace, timezone.now(), sees_all=sees_all(user))

    def card(self, row: Any) -> SafeString:
        """A complete card."""
        card, frame, facts = (_name(word, row) for word in ("card", "frame", "facts"))
        return part(
            "card",
            render=row,
            card=card,
            frame={"name": frame, "html": self.parts[frame]},
            facts={"name": facts, "html": self.parts[facts]},
        )

    def changes(self, shown: dict[str, str]) -> Iterator[SafeString]:
        """Removed and new cards at their places, changed parts of the others, and a news line."""
        gone = [name for name in shown if name.startswith("card-") and name not in self.versions]
        for name in gone:
            if re.fullmatch(r"card-[0-9a-f]{8}", name):
                yield place(f"delete:#{name}")
        where = "afterbegin:#cards"
        for row in self.rows:
            if _name("card", row) not in shown:
                yield place(where, self.card(row))
            where = f"afterend:#{_name('card', row)}"
        yield from self.changed(shown)
        news = [
            f"{Truncator(title_of(row)).chars(60)}: {row.get_status_display().lower()}."
            for row in self.rows
            if shown.get(_name("card", row)) != row.status
        ]
        if len(news) > MOST_NEWS:
            news[MOST_NEWS:] = [f"And {len(news) - MOST_NEWS} more."]
        if news:
            yield place("innerHTML:#news", " ".join(news))


@for_people
@require_safe
def gallery(request: HttpRequest) -> HttpResponse:
    """The gallery's page."""
    now = Gallery(request)
    context = {"live": now, "cards": [now.card(row) for row in now.rows], "filters": now.filters}
    return render(request, "renders/gallery.html", context)


@for_pollers
@require_safe
def gallery_live(request: HttpRequest) -> HttpResponse:
    """The changes in the gallery; 304 if there are none."""
    now = Gallery(request)
    return now.unchanged() or now.reply(now.changes(now.shown()))


def _name(part: str, row: RenderJob) -> str:
    return f"{part}-{row.pk.hex[:8]}"
