"""How long a render may wait to be sent, by a clock that stands still while its line is held up.

It stands still during a person's pause, while Sume refuses the key or the account (credit spent),
while the budget is spent, and while the workspace is not configured. The gate's row keeps when
that was. A resend after an unknown outcome gets no such time: Sume may forget a key.
"""

from datetime import UTC, datetime, timedelta

from django.db import transaction

from renders import gate, spending, workspaces
from renders.conf import conf
from renders.models import Gate
from renders.queries import RenderQueries
from renders.states import Sort

# Two sweeps that are less than so many of their periods apart saw one standstill.
SWEEPS_APART = 10
# Most standstills that are kept: before that, the two oldest become one.
MOST_SPANS = 100

Spans = list[list[float]]
"""Begin and end of each standstill, in seconds since 1970, the oldest first."""


def note(workspace: str, now: datetime) -> None:
    """Note that the clock of this workspace stands still now, if it does.

    To be called by each sweep, and before a person's pause is lifted.
    """
    with transaction.atomic():
        row = gate.lock(workspace, Sort.WRITES)
        if not conf.SUBMIT_DEADLINE_HOURS or not _stands_still(workspace, row, now):
            return
        spans, at = row.standstills, now.timestamp()
        begin = at
        if row.held_at:
            begin = min(at, row.held_at.timestamp())
        elif spans and at - spans[-1][1] <= SWEEPS_APART * conf.SWEEP_SECONDS:
            begin = spans[-1][1]
        oldest = _hours_ago(spans, now).timestamp()
        row.standstills = [span for span in joined(spans, begin, at) if span[1] >= oldest]
        row.save(update_fields=["standstills"])


def expired(rows: RenderQueries, row: Gate | None, now: datetime) -> RenderQueries:
    """Those of one workspace that have waited for too long, by its gate's row."""
    limits = _limits(row, now)
    return rows.expired(*limits) if limits else rows.none()


def unexpired(rows: RenderQueries, row: Gate | None, now: datetime) -> RenderQueries:
    """Those of one workspace that have time left, by its gate's row."""
    limits = _limits(row, now)
    return rows.unexpired(*limits) if limits else rows


def joined(spans: Spans, begin: float, end: float) -> Spans:
    """The standstills with one more, which is no earlier than the last of them."""
    spans = [*map(list, spans), [begin, max(begin, end)]]
    if len(spans) > 1 and (spans[-1][0] <= spans[-2][1] or len(spans) > MOST_SPANS):
        first = -2 if spans[-1][0] <= spans[-2][1] else 0
        one, other = spans[first], spans[first + 1]
        one[:] = min(one[0], other[0]), max(one[1], other[1])
        del spans[first + 1]
    return spans


def started(spans: Spans, now: float, seconds: float) -> float:
    """When a clock that shows `seconds` now was started, if it stood still in these spans."""
    for begin, end in reversed(spans):
        ran = now - min(end, now)
        if ran >= seconds:
            break
        seconds, now = seconds - ran, min(begin, now)
    return now - seconds


def _limits(row: Gate | None, now: datetime) -> tuple[datetime, datetime] | None:
    """What was made, and what was tried without a clear answer, before these has expired."""
    hours = conf.SUBMIT_DEADLINE_HOURS
    if not hours:
        return None
    spans = row.standstills if row else []
    if row and row.held_at:
        spans = joined(spans, row.held_at.timestamp(), now.timestamp())
    return _hours_ago(spans, now), now - timedelta(hours=hours)


def _hours_ago(spans: Spans, now: datetime) -> datetime:
    hours = timedelta(hours=conf.SUBMIT_DEADLINE_HOURS)
    return datetime.fromtimestamp(started(spans, now.timestamp(), hours.total_seconds()), UTC)


def _stands_still(workspace: str, row: Gate, now: datetime) -> bool:
    limits = workspaces.find(workspace)
    if limits is None or row.held_at or row.refusals:
        return True
    return spending.closed(limits, now) is not None
