"""Pages that refresh themselves.

A page consists of parts. Each has a name (the `id` of its element) and a version. A small
element on the page, the poller, sends the versions that the page shows. The reply has the parts
that differ, which htmx puts into their places, and a new poller. If nothing differs, the server
answers 304 without a body, and htmx keeps the page and polls again. So a clip keeps playing, and
focus and typed text stay, while another part of the page changes.
"""

import hashlib
import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import wraps
from typing import Any

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.shortcuts import resolve_url
from django.template.loader import render_to_string
from django.utils.cache import get_conditional_response
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString, mark_safe

REFRESH_SECONDS = 3


class Live:
    """The current parts of one page, for one user."""

    def __init__(self, request: HttpRequest, url: str) -> None:
        self.request = request
        self.url = url
        self.moving = False  # Whether to ask again soon.
        self.parts: dict[str, SafeString] = {}
        self.versions: dict[str, str] = {}

    def add(self, name: str, template: str, **context: Any) -> None:
        """Add a part: the content of the element with the id `name`."""
        html = part(template, user=self.request.user, **context)
        self.parts[name] = html
        # A form's CSRF token is masked differently each time.
        self.versions[name] = _digest(html.replace(str(context.get("csrf_token", "")), ""))

    @property
    def etag(self) -> str:
        """The page's ETag. It is weak, because replies have only the differences."""
        return f'W/"{_digest(f"{self._versions()} {self.moving}", 20)}"'

    @property
    def poller(self) -> SafeString:
        """The element that polls for changes."""
        return part(
            "poller",
            url=self.url,
            seconds=REFRESH_SECONDS if self.moving else None,
            headers=json.dumps({"If-None-Match": self.etag}),
            values=json.dumps({"shown": self._versions()}),
        )

    def shown(self) -> dict[str, str]:
        """The versions of the parts on the requesting page, by name."""
        pairs = (pair.partition("~") for pair in self.request.GET.get("shown", "").split("."))
        return {name: version for name, _, version in pairs if version}

    def changed(self, shown: Mapping[str, str]) -> Iterator[SafeString]:
        """The new content of changed elements that the requesting page has."""
        for name, html in self.parts.items():
            if shown.get(name, self.versions[name]) != self.versions[name]:
                yield place(f"innerHTML:#{name}", html)

    def unchanged(self) -> HttpResponse | None:
        """A 304 reply if the requesting page is up to date, else None."""
        reply = get_conditional_response(self.request, etag=self.etag)
        return reply if isinstance(reply, HttpResponse) else None

    def reply(self, changes: Iterable[SafeString]) -> HttpResponse:
        """A reply with the changes and a new poller."""
        whole = format_html_join("\n", "{}", ((html,) for html in [*changes, self.poller]))
        return HttpResponse(whole, headers={"ETag": self.etag})

    def _versions(self) -> str:
        return ".".join(f"{name}~{version}" for name, version in self.versions.items())


def part(template: str, **context: Any) -> SafeString:
    """The HTML of a part of a page."""
    html = render_to_string(f"renders/parts/{template}.html", context)
    return mark_safe(html.strip())  # noqa: S308 (a template made it)


def place(where: str, html: str = "") -> SafeString:
    """An htmx out-of-band swap: puts the HTML where `where` says, beside the poller's own swap."""
    return format_html('<div hx-swap-oob="{}">{}</div>', where, html)


def for_pollers(view: Callable[..., HttpResponse]) -> Callable[..., HttpResponse]:
    """A decorator for pollers. After a logout, the page says so, stays, and stops polling."""

    @wraps(view)
    def guarded(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        if request.user.is_authenticated:
            response = view(request, *args, **kwargs)
        else:
            response = HttpResponse(part("logged_out", login_url=resolve_url(settings.LOGIN_URL)))
        response.headers["Cache-Control"] = "private, no-cache"
        return response

    return guarded


def _digest(text: str, length: int = 6) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:length]
