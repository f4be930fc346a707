"""Who is sent next: the first in line, as far as there is room.

A render's message says that there is something to send, not what: whoever comes takes the render
named if its turn has come, else whoever's turn it is in the line of the same workspace: each has
a line, a gate and limits of its own. Each claim has the next one started while there is room, so
a long line needs one message at a time, and one that waits where the gate is closed.
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

# Shortest wait of the message that goes on with the line: several places open meanwhile.
SHORTEST_WAKE_SECONDS = 1.0
# From the claim to the POST; below the margin in `gate.WINDOW_SECONDS`.
LATEST_SECONDS = 1.0


@dataclass(frozen=True)
class Claim:
    """What a worker holds now, and the steps to take at once, before it sends."""

    workspace: str
    """Whose renders they are: all of one."""
    renders: list[UUID] = field(default_factory=list)
    at: datetime = field(default_factory=timezone.now)
    probe: bool = False
    """It tries whether a refusal is over."""
    last: bool = False
    """It took the last room: when it is through, it looks who is next."""
    steps: list[Step] = field(default_factory=list)


def claim(named: UUID, limit: int = 1) -> Claim:
    """Claim up to `limit` renders, `named` first if its turn has come."""
    now = timezone.now()
    # Where the render is gone, its message serves the line that everybody has.
    workspace = RenderJob.objects.workspace_of(named) or workspaces.DEFAULT
    limits = workspaces.find(workspace)
    why = closed(workspace, now)
    if limits is None or why:
        return Claim(workspace, steps=_wake_after(workspace, why) if why else [])
    if not line(workspace, now).exists():
        return Claim(workspace)
    with transaction.atomic():
        row = gate.lock(workspace, RequestType.WRITES)
        now = timezone.now()  # others may have held the lock for a while
        funds = spending.Funds(limits, now) if spending.limited(limits) else None
        room = _room(limits, row, now, funds)
        waiting = submit_deadline.unexpired(line(workspace, now), row, now)
        pks, aside = _take(waiting, workspace, named, now, room, limit, funds)
        if pks:
            capacity.entered(row, len(pks), room.probe, now)
        last = len(pks) >= room.any
        following = waiting.pks(1)
        steps = [Step("submit", pk) for pk in following if (pks and not last) or aside]
        if following and not steps and not pks and room.opens_at:
            steps = _wake(row, following[0], room.opens_at, now)
    return Claim(workspace, pks, now, room.probe, last or room.probe, steps)


def in_time(pk: UUID, claim: Claim) -> bool:
    """Whether it may be sent now: a worker that stalled since it claimed takes a POST anew."""
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
    """The step to take where a place may be free: the first in line, if any, is sent."""
    now = timezone.now()
    if why := closed(workspace, now):
        return _wake_after(workspace, why)
    return [Step("submit", pk) for pk in line(workspace, now).pks(1)]


def next_in_lines() -> list[Step]:
    """As `next_in_line`, of every workspace in which something waits."""
    waiting = RenderJob.objects.waiting().their_workspaces()
    return [step for workspace in waiting for step in next_in_line(workspace)]


def closed(workspace: str, now: datetime) -> Closed | None:
    """Why no render is sent now: the gate, or the month's budget. A quick look, without a lock."""
    if why := gate.closed(workspace, RequestType.WRITES, now):
        return why
    limits = workspaces.find(workspace)
    why = spending.closed(limits, now) if limits else None
    # One that Sume may hold already is sent all the same: later, its key would be worth nothing.
    return why if why and not line(workspace, now).unsure().exists() else None


def claim_cancel(pk: UUID, workspace: str) -> Claim:
    """Take one POST from the minute to have a job canceled, and note it in the timeline.

    It holds no render where no POST may be sent now.
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
    """How many may be asked of Sume just now; a quick look, without the lock."""
    now = timezone.now()
    limits, row = workspaces.find(workspace), gate.row_of(workspace, RequestType.WRITES)
    if limits is None or (row and row.paused_until and row.paused_until > now):
        return 0
    return capacity.writes_left(limits, now)


def line(workspace: str, now: datetime) -> RenderQuerySet:
    """All of a workspace that wait to be sent, the first in line first.

    Those whose submit deadline is over are among them until the sweep gives them up.
    """
    return RenderJob.objects.filter(workspace=workspace).due(now)


def _room(limits: Workspace, row: Gate, now: datetime, funds: Funds | None) -> Capacity:
    """How many may be sent, by all that limits them."""
    room = capacity.room(limits, row, capacity.load(limits, now), now)
    why = funds.closed() if funds and room.fresh else None
    # What Sume may hold already goes on: it is counted, and its key tells what became of it.
    return replace(room, fresh=0, opens_at=room.opens_at or why.until) if why else room


def _take(
    waiting: RenderQuerySet,
    workspace: str,
    named: UUID,
    now: datetime,
    room: Capacity,
    limit: int,
    funds: Funds | None,
) -> tuple[list[UUID], int]:
    """Claim up to the free capacity; says also how many did not fit into a budget.

    If no new render fits, take one that Sume may hold already: it is counted there anyway.
    """
    places = room.fresh
    if room.probe:  # what was refused itself lets the others try first
        untried = waiting.filter(submit_attempts=0)
        fewest = waiting.order_by("submit_attempts", "-priority", "turn", "created_at")
        waiting = untried if untried.exists() else fewest
    if not places and room.any:
        waiting, places = waiting.unsure(), room.any
    elif funds and places:
        return over_budget.claim_first_that_fits(waiting, workspace, funds, now)
    if not places:
        return [], 0
    pks = transitions.claim_next(
        waiting, now, named, workspace=workspace, within=places, limit=limit
    )
    return pks, 0


def _wake(row: Gate, pk: UUID, at: datetime, now: datetime) -> list[Step]:
    """One message, whoever asks, that goes on with the line at that time."""
    at = max(at, now + timedelta(seconds=SHORTEST_WAKE_SECONDS))
    at = min(at, now + timedelta(seconds=conf.MAX_POLL_SECONDS))
    wait = (at - now).total_seconds()
    return [Step("submit", pk, wait)] if capacity.to_wake(row, at, now) else []


def _wake_after(workspace: str, closed: Closed) -> list[Step]:
    """The one message that goes on with the line when the pause is over."""
    if closed.until is None:
        return []
    now = timezone.now()
    until = max(closed.until, now)
    if capacity.wakes(gate.row_of(workspace, RequestType.WRITES), until, now):
        return []  # without the lock: this is what a long line behind a closed gate costs
    following = line(workspace, until).pks(1)
    if not following:
        return []
    with transaction.atomic():
        return _wake(gate.lock(workspace, RequestType.WRITES), following[0], until, now)
