"""How long a render may wait to be sent, by a clock that stands still while its line is held up.

It stands still during a person's pause, while Sume refuses the key or the account (credit spent),
while the budget is spent, and while the workspace is not configured. The gate's row keeps when
that was. A resend after an unknown outcome gets no such time: Sume may forget a key.
"""

from datetime import UTC, datetime, timedelta

from django.db import transaction

from renders.conf import conf, workspaces
from renders.limits import gate, spending
from renders.models import Gate
from renders.models.querysets import RenderQuerySet
from renders.states import RequestType

# Most standstills that are kept: before that, the two oldest become one.
MOST_SPANS = 100

Spans = list[list[float | None]]
"""Begin and end of each standstill, in seconds since 1970, the oldest first.

The last one has no end while it lasts.
"""


def note(workspace: str, now: datetime) -> None:
    """Note whether the clock of this workspace stands still.

    Called by each sweep, and before and after a person's pause is lifted. Between two calls that
    see a standstill, it counts as one.
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
    """Those of one workspace that have waited for too long, by its gate's row."""
    limits = _limits(row, now)
    return rows.expired(*limits) if limits else rows.none()


def unexpired(rows: RenderQuerySet, row: Gate | None, now: datetime) -> RenderQuerySet:
    """Those of one workspace that have time left, by its gate's row."""
    limits = _limits(row, now)
    return rows.unexpired(*limits) if limits else rows


def noted(spans: Spans, begin: float, end: float | None) -> Spans:
    """The standstills with one more that begins; with an end, that of the last one instead."""
    spans = [*spans[:-1], [spans[-1][0], end]] if end is not None else [*spans, [begin, None]]
    if len(spans) > MOST_SPANS:
        spans[:2] = [[spans[0][0], spans[1][1]]]
    return spans


def started(spans: Spans, now: float, seconds: float) -> float:
    """When a clock that shows `seconds` now was started, if it stood still in these spans."""
    for begin, end in reversed(spans):
        ran = 0.0 if end is None else now - min(end, now)
        if ran >= seconds:
            break
        seconds, now = seconds - ran, min(begin or 0.0, now)
    return now - seconds


def _limits(row: Gate | None, now: datetime) -> tuple[datetime, datetime] | None:
    """What was made, and what was tried without a clear answer, before these has expired."""
    hours = conf.SUBMIT_DEADLINE_HOURS
    if not hours:
        return None
    spans = row.standstills if row else []
    if row and row.held_at:  # also before a sweep has seen it
        spans = [*spans, [row.held_at.timestamp(), None]]
    made = started(spans, now.timestamp(), hours * 3600)
    return datetime.fromtimestamp(made, UTC), now - timedelta(hours=hours)


def _stands_still(workspace: str, row: Gate, now: datetime) -> bool:
    limits = workspaces.find(workspace)
    if limits is None or row.held_at or row.refusals:
        return True
    return spending.closed(limits, now) is not None
