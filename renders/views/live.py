"""Pages that keep themselves new.

A page is made of parts, each with a name (the `id` of its element) and a version. A small
element on the page, the poller, asks for what changed: it sends the versions that are shown and
gets the parts that differ, each put in its place by htmx, and a new poller. If nothing differs
the reply is 304, without a body; htmx then keeps what it has and asks again. So a clip goes on
playing, and focus and typed text stay, while something else on the page changes.
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
    """The parts of one page as they are now, for one person."""

    def __init__(self, request: HttpRequest, url: str) -> None:
        self.request = request
        self.url = url
        self.moving = False  # Whether to ask again soon.
        self.parts: dict[str, SafeString] = {}
        self.versions: dict[str, str] = {}

    def add(self, name: str, template: str, **context: Any) -> None:
        """Add a part: the inside of the element with this id."""
        html = part(template, user=self.request.user, **context)
        self.parts[name] = html
        # The token of a form looks different each time.
        self.versions[name] = _digest(html.replace(str(context.get("csrf_token", "")), ""))

    @property
    def etag(self) -> str:
        """Changes with whatever the page shows. Weak: a reply holds the differences only."""
        return f'W/"{_digest(f"{self._versions()} {self.moving}", 20)}"'

    @property
    def poller(self) -> SafeString:
        """The element that asks for what is new."""
        return part(
            "poller",
            url=self.url,
            seconds=REFRESH_SECONDS if self.moving else None,
            headers=json.dumps({"If-None-Match": self.etag}),
            values=json.dumps({"shown": self._versions()}),
        )

    def shown(self) -> dict[str, str]:
        """The versions of the parts that the asking page shows."""
        pairs = (pair.partition("~") for pair in self.request.GET.get("shown", "").split("."))
        return {name: version for name, _, version in pairs if version}

    def changed(self, shown: Mapping[str, str]) -> Iterator[SafeString]:
        """What to put into elements that are on the asking page."""
        for name, html in self.parts.items():
            if shown.get(name, self.versions[name]) != self.versions[name]:
                yield place(f"innerHTML:#{name}", html)

    def unchanged(self) -> HttpResponse | None:
        """304 if the asking page shows what is."""
        reply = get_conditional_response(self.request, etag=self.etag)
        return reply if isinstance(reply, HttpResponse) else None

    def reply(self, changes: Iterable[SafeString]) -> HttpResponse:
        """The changes, and a poller that knows of them."""
        whole = format_html_join("\n", "{}", ((html,) for html in [*changes, self.poller]))
        return HttpResponse(whole, headers={"ETag": self.etag})

    def _versions(self) -> str:
        return ".".join(f"{name}~{version}" for name, version in self.versions.items())


def part(template: str, **context: Any) -> SafeString:
    """A part of a page."""
    html = render_to_string(f"renders/parts/{template}.html", context)
    return mark_safe(html.strip())  # noqa: S308 (a template made it)


def place(where: str, html: str = "") -> SafeString:
    """Have htmx put this where it belongs, beside what replaces the poller."""
    return format_html('<div hx-swap-oob="{}">{}</div>', where, html)


def for_pollers(view: Callable[..., HttpResponse]) -> Callable[..., HttpResponse]:
    """Whoever was logged out meanwhile reads so on the page; it stays, and asks no more."""

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
