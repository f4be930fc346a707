"""The list of renders in the API: filters, paging and limits, parsed strictly from the query.

A page ends at a row (creation time and id), and the next page starts after it. So new renders
move nothing: no page repeats or skips a row.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from uuid import UUID

from django.core import signing
from django.db.models import Q
from django.http import QueryDict

from renders.exceptions import InvalidRender
from renders.models import RenderJob
from renders.models.querysets import RenderQuerySet, standing_in
from renders.presentation.problems import Problem
from renders.states import Kind, Status

DEFAULT_LIMIT, MAX_LIMIT = 50, 200
MOST_CHARACTERS = 200
MOMENT = re.compile(
    r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)", re.ASCII | re.IGNORECASE
)
SALT = "renders.api.cursor"


@dataclass
class Listing:
    """A parsed query: the filters, the page's size and its start."""

    limit: int = DEFAULT_LIMIT
    where: Q = field(default_factory=Q)
    after: tuple[datetime, UUID] | None = None

    def page(self, renders: RenderQuerySet) -> tuple[list[RenderJob], str]:
        """The rows, newest first, and the next page's cursor, or "" on the last page."""
        matching = renders.filter(self.where)
        if self.after:
            at, pk = self.after
            # The first condition is redundant, but lets the database start at the right place.
            matching = matching.filter(created_at__lte=at).exclude(created_at=at, pk__gte=pk)
        rows = list(matching.order_by("-created_at", "-id")[: self.limit + 1])
        more = len(rows) > self.limit
        return rows[: self.limit], cursor_of(rows[self.limit - 1]) if more else ""


def read_listing(query: QueryDict) -> Listing:
    """The parsed query. Raises `Problem` with every invalid parameter."""
    listing, errors = Listing(), []
    for name, values in query.lists():
        try:
            if name not in PARAMETERS:
                raise InvalidRender(name, f"Unknown; there are: {', '.join(PARAMETERS)}.")
            if len(values) > 1:
                raise InvalidRender(name, "Given more than once.")
            PARAMETERS[name](listing, name, values[0])
        except InvalidRender as error:
            errors.append(error)
    if errors:
        raise Problem(422, "The query is not acceptable.", errors)
    return listing


def cursor_of(render: RenderJob) -> str:
    """The position after this row. It is signed, so that callers cannot rely on its content."""
    return signing.dumps([render.created_at.isoformat(), str(render.pk)], salt=SALT)


def _cursor(listing: Listing, name: str, value: str) -> None:
    try:
        at, pk = signing.loads(value, salt=SALT)
    except (signing.BadSignature, ValueError):
        raise InvalidRender(name, "Not a cursor of this API; begin without one.") from None
    listing.after = datetime.fromisoformat(at), UUID(pk)


def _limit(listing: Listing, name: str, value: str) -> None:
    if not (value.isascii() and value.isdecimal() and 1 <= int(value[:9]) <= MAX_LIMIT):
        raise InvalidRender(name, f"A whole number from 1 to {MAX_LIMIT}.")
    listing.limit = int(value)


def _status(listing: Listing, name: str, value: str) -> None:
    listing.where &= standing_in(_words(name, value, Status.values))


def _kind(listing: Listing, name: str, value: str) -> None:
    listing.where &= Q(kind__in=_words(name, value, Kind.values))


def _workspace(listing: Listing, name: str, value: str) -> None:
    listing.where &= Q(workspace=_text(name, value))


def _reference(listing: Listing, name: str, value: str) -> None:
    listing.where &= Q(reference=_text(name, value))


def _q(listing: Listing, name: str, value: str) -> None:
    listing.where &= Q(prompt__icontains=_text(name, value))


def _created_after(listing: Listing, name: str, value: str) -> None:
    listing.where &= Q(created_at__gt=_moment(name, value))


def _created_before(listing: Listing, name: str, value: str) -> None:
    listing.where &= Q(created_at__lt=_moment(name, value))


PARAMETERS: dict[str, Callable[[Listing, str, str], None]] = {
    "status": _status,
    "kind": _kind,
    "workspace": _workspace,
    "reference": _reference,
    "q": _q,
    "created_after": _created_after,
    "created_before": _created_before,
    "limit": _limit,
    "cursor": _cursor,
}


def _words(name: str, value: str, allowed: list[str]) -> set[str]:
    words = set(value.split(","))
    if not words <= set(allowed):
        raise InvalidRender(name, f"One or more, with commas between, of: {', '.join(allowed)}.")
    return words


def _text(name: str, value: str) -> str:
    if not 1 <= len(value) <= MOST_CHARACTERS or "\x00" in value:
        raise InvalidRender(name, f"1 to {MOST_CHARACTERS} characters, and no NUL.")
    return value


def _moment(name: str, value: str) -> datetime:
    try:
        if MOMENT.fullmatch(value):
            return datetime.fromisoformat(value.upper()).astimezone(UTC)
    except (ValueError, OverflowError):
        pass
    raise InvalidRender(
        name, "A time like 2026-01-31T09:30:00Z is needed (RFC 3339); write + as %2B."
    )
