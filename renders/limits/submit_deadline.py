"""The submit deadline: how long a render may wait, by a clock that stops while its line is paused.

The clock stops during a person's pause, while Sume refuses the key or the account (credit spent),
while the budget is spent, and while the workspace is not configured. The gate's row records these
standstills. For a resend after an unknown outcome the clock never stops: Sume may forget a key.
"""

from datetime import UTC, datetime, timedelta

from django.db import transaction

from renders.conf import conf, workspaces
from renders.limits import gate, spending
from renders.models import Gate
from renders.models.querysets import RenderQuerySet
from renders.states import RequestType

# Most standstills that are kept; above that, the two oldest are merged.
MOST_SPANS = 100

Spans = list[list[float | None]]
"""Begin and end of each standstill in Unix seconds, oldest first.

The last one has no end as long as it lasts.
"""


def note(workspace: str, now: datetime) -> None:
    """Record whether the clock of this workspace is stopped now.

    Each sweep calls it, and lifting a person's pause calls it before and after. If two calls in
    a row find the clock stopped, it counts as stopped for all the time between them.
    """
    with transaction.atomic():
        row = gate.lock(workspace, RequestType.WRITES)
        stands_still = _stands_still(workspace, row, now)
        lasts = bool(row.standstills) and row.standstills[-1][1] is None
        if stands_still == lasts:
            return
        begin = min(row.held_at or now, now).timestamp()
        row.standstills = noted(row.standstills, begin, None if stands_still else now.timestamp())
        row.save(update_fields=["standstills"])


def expired(rows: RenderQuerySet, row: Gate | None, now: datetime) -> RenderQuerySet:
    """The renders of one workspace past their deadline; `row` is its gate's."""
    moments = _moments(row, now)
    return rows.expired(*moments) if moments else rows.none()


def unexpired(rows: RenderQuerySet, row: Gate | None, now: datetime) -> RenderQuerySet:
    """The renders of one workspace with time left; `row` is its gate's."""
    moments = _moments(row, now)
    return rows.unexpired(*moments) if moments else rows


def noted(spans: Spans, begin: float, end: float | None) -> Spans:
    """`spans` plus a new open standstill from `begin`; if `end` is given, the last one closed."""
    spans = [*spans[:-1], [spans[-1][0], end]] if end is not None else [*spans, [begin, None]]
    if len(spans) > MOST_SPANS:
        spans[:2] = [[spans[0][0], spans[1][1]]]
    return spans


def started(spans: Spans, now: float, seconds: float) -> float:
    """The time `seconds` before `now`, not counting the standstills in `spans`. Unix seconds."""
    for begin, end in reversed(spans):
        ran = 0.0 if end is None else now - min(end, now)
        if ran >= seconds:
            break
        seconds, now = seconds - ran, min(begin or 0.0, now)
    return now - seconds


def _moments(row: Gate | None, now: datetime) -> tuple[datetime, datetime] | None:
    """The times before which a render made, or an unknown outcome, has expired; None: never."""
    hours = conf.SUBMIT_DEADLINE_HOURS
    if not hours:
        return None
    spans = row.standstills if row else []
    if row and row.held_at:  # even before a sweep has recorded it
        spans = [*spans, [row.held_at.timestamp(), None]]
    made = started(spans, now.timestamp(), hours * 3600)
    return datetime.fromtimestamp(made, UTC), now - timedelta(hours=hours)


def _stands_still(workspace: str, row: Gate, now: datetime) -> bool:
    """Whether the clock is stopped now: paused, refused, unconfigured or out of budget."""
    limits = workspaces.find(workspace)
    if limits is None or row.held_at or row.refusals:
        return True
    return spending.closed(limits, now) is not None
