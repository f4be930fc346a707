"""Claims the renders that are sent next: the first in line, up to the free capacity.

A submit message names a render, but it is only a hint that something waits. The worker claims the
named render if its turn has come, else the first in line of the same workspace. Each workspace has
its own line, gate and limits. While capacity is free, each claim starts the next one. So a long
line needs one message at a time, and one delayed message while the gate is closed.
"""

from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from uuid import UUID

from django.db import transaction
from django.utils import timezone

from renders import transitions
from renders.conf import conf, workspaces
from renders.conf.workspaces import Workspace
from renders.exceptions import Closed
from renders.lifecycle.steps import Step
from renders.limits import capacity, gate, over_budget, spending, submit_deadline
from renders.limits.capacity import Capacity
from renders.limits.spending import Funds
from renders.models import Gate, RenderJob
from renders.models.querysets import RenderQuerySet
from renders.states import CANCELING, SENDING, RequestType

# Shortest delay of the message that restarts the line: several slots become free meanwhile.
SHORTEST_WAKE_SECONDS = 1.0
# Longest time from the claim to the POST; below the margin in `gate.WINDOW_SECONDS`.
LATEST_SECONDS = 1.0


@dataclass(frozen=True)
class Claim:
    """The renders that a worker has claimed, and the steps that continue the line meanwhile."""

    workspace: str
    """The workspace of all claimed renders."""
    renders: list[UUID] = field(default_factory=list)
    at: datetime = field(default_factory=timezone.now)
    probe: bool = False
    """True if this claim tests whether a refusal is over."""
    last: bool = False
    """True if it used the last free slot: its worker starts the next claim when it is done."""
    steps: list[Step] = field(default_factory=list)


def claim(named: UUID, limit: int = 1) -> Claim:
    """Claim up to `limit` renders, `named` first if its turn has come."""
    now = timezone.now()
    # The render was deleted: its message serves the default workspace's line.
    workspace = RenderJob.objects.workspace_of(named) or workspaces.DEFAULT
    limits = workspaces.find(workspace)
    why = closed(workspace, now)
    if limits is None or why:
        return Claim(workspace, steps=_wake_after(workspace, why) if why else [])
    if not line(workspace, now).exists():
        return Claim(workspace)
    with transaction.atomic():
        row = gate.lock(workspace, RequestType.WRITES)
        now = timezone.now()  # waiting for the lock may have taken a while
        funds = spending.Funds(limits, now) if spending.limited(limits) else None
        available = _available(limits, row, now, funds)
        waiting = submit_deadline.unexpired(line(workspace, now), row, now)
        pks, over = _take(waiting, workspace, named, now, available, limit, funds)
        if pks:
            capacity.entered(row, len(pks), available.probe, now)
        last = len(pks) >= available.any
        following = waiting.pks(1)
        steps = [Step("submit", pk) for pk in following if (pks and not last) or over]
        if following and not steps and not pks and available.opens_at:
            steps = _wake(row, following[0], available.opens_at, now)
    return Claim(workspace, pks, now, available.probe, last or available.probe, steps)


def in_time(pk: UUID, claim: Claim) -> bool:
    """True if this claimed render may be sent now.

    If its worker stalled since the claim, the POST is counted again, in the current minute.
    """
    if 0 <= (timezone.now() - claim.at).total_seconds() < LATEST_SECONDS:
        return True
    limits = workspaces.find(claim.workspace)
    if limits is None:
        return False
    with transaction.atomic():
        row = gate.lock(limits.name, RequestType.WRITES)
        now = timezone.now()
        if gate.shut(row, now) or capacity.minute_is_full(limits, now):
            return False
        transitions.log_post(pk, SENDING, limits.name)
    return True


def next_in_line(workspace: str) -> list[Step]:
    """The step that sends the first in line, if any: call it when a slot may be free."""
    now = timezone.now()
    if why := closed(workspace, now):
        return _wake_after(workspace, why)
    return [Step("submit", pk) for pk in line(workspace, now).pks(1)]


def next_in_lines() -> list[Step]:
    """As `next_in_line`, for every workspace in which renders wait."""
    waiting = RenderJob.objects.waiting().their_workspaces()
    return [step for workspace in waiting for step in next_in_line(workspace)]


def closed(workspace: str, now: datetime) -> Closed | None:
    """Why no render is sent now: the gate, or the month's budget. Quick: takes no lock."""
    if why := gate.closed(workspace, RequestType.WRITES, now):
        return why
    limits = workspaces.find(workspace)
    why = spending.closed(limits, now) if limits else None
    # A render that Sume may hold already is sent all the same: Sume forgets its key after a while.
    return why if why and not line(workspace, now).unsure().exists() else None


def claim_cancel(pk: UUID, workspace: str) -> Claim:
    """Take one POST from the minute's quota to cancel a job, and log it in the timeline.

    The claim holds no render if no POST may be sent now.
    """
    limits = workspaces.find(workspace)
    if limits is None:
        return Claim(workspace)
    with transaction.atomic():
        row = gate.lock(workspace, RequestType.WRITES)
        now = timezone.now()
        probe = row.refusals > 0
        if probe and gate.trying(row, now):
            return Claim(workspace)
        if row.paused_until and row.paused_until > now:
            return Claim(workspace)
        if capacity.minute_is_full(limits, now):
            return Claim(workspace)
        capacity.entered(row, 0, probe, now)
        transitions.log_post(pk, CANCELING, workspace)
    return Claim(workspace, [pk], now, probe)


def cancels_left(workspace: str) -> int:
    """Number of cancellations that Sume may be asked for now. Quick: takes no lock."""
    now = timezone.now()
    limits, row = workspaces.find(workspace), gate.row_of(workspace, RequestType.WRITES)
    if limits is None or (row and row.paused_until and row.paused_until > now):
        return 0
    return capacity.writes_left(limits, now)


def line(workspace: str, now: datetime) -> RenderQuerySet:
    """The renders of a workspace that wait to be sent, the first in line first.

    Renders past their submit deadline are included until the sweep gives them up.
    """
    return RenderJob.objects.filter(workspace=workspace).due(now)


def _available(limits: Workspace, row: Gate, now: datetime, funds: Funds | None) -> Capacity:
    """The free capacity under all limits."""
    available = capacity.free(limits, row, capacity.load(limits, now), now)
    why = funds.closed() if funds and available.fresh else None
    # A render that Sume may hold already goes on: it is counted, and its key shows its outcome.
    return (
        replace(available, fresh=0, opens_at=available.opens_at or why.until) if why else available
    )


def _take(
    waiting: RenderQuerySet,
    workspace: str,
    named: UUID,
    now: datetime,
    available: Capacity,
    limit: int,
    funds: Funds | None,
) -> tuple[list[UUID], int]:
    """Claim up to the free capacity; returns also how many did not fit into a budget.

    If no new render fits, take one that Sume may hold already: it is counted there anyway.
    """
    free = available.fresh
    only_unsure = not free and available.any > 0
    if only_unsure:
        waiting, free = waiting.unsure(), available.any
    if available.probe:  # renders that were refused themselves come last
        untried = waiting.filter(submit_attempts=0)
        fewest = waiting.order_by("submit_attempts", "-priority", "turn", "created_at")
        waiting = untried if untried.exists() else fewest
    if funds and free and not only_unsure:
        return over_budget.claim_first_that_fits(waiting, workspace, funds, now)
    if not free:
        return [], 0
    pks = transitions.claim_next(waiting, now, named, workspace=workspace, within=free, limit=limit)
    return pks, 0


def _wake(row: Gate, pk: UUID, at: datetime, now: datetime) -> list[Step]:
    """The delayed message that restarts the line at that time; none if one is scheduled already."""
    at = max(at, now + timedelta(seconds=SHORTEST_WAKE_SECONDS))
    at = min(at, now + timedelta(seconds=conf.MAX_POLL_SECONDS))
    wait = (at - now).total_seconds()
    return [Step("submit", pk, wait)] if capacity.to_wake(row, at, now) else []


def _wake_after(workspace: str, closed: Closed) -> list[Step]:
    """The delayed message that restarts the line when the pause is over."""
    if closed.until is None:
        return []
    now = timezone.now()
    until = max(closed.until, now)
    if capacity.wakes(gate.row_of(workspace, RequestType.WRITES), until, now):
        return []  # checked without the lock, since every message at a closed gate comes here
    following = line(workspace, until).pks(1)
    if not following:
        return []
    with transaction.atomic():
        return _wake(gate.lock(workspace, RequestType.WRITES), following[0], until, now)
