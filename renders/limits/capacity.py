"""How many renders may be sent now? Places at Sume, writes a minute, one at a time after a refusal.

All of it is asked and noted by whoever holds the lock of the workspace's gate, so that no two
workers take one place.


What of a workspace is on its way, and what it has sent in the last minute: what limits it.
"""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from django.utils import timezone

from renders.conf import conf
from renders.conf.workspaces import Workspace
from renders.limits import gate
from renders.limits.gate import WINDOW_SECONDS, shut, trying
from renders.models import Gate, RenderEvent, RenderJob
from renders.models.gates import key_of
from renders.states import RequestType, Status

# What Sume told about its queue counts as old after this time.
READING_SECONDS = 60.0
MOST_CAPACITY = 1_000_000
# One write in so many is kept for cancels.
CANCELS_SHARE = 20


@dataclass(frozen=True)
class Usage:
    """What is on its way, counted by whoever holds the lock of the gate, as far as it matters."""

    in_flight: int
    """No more is counted than may be, here and in the next; nothing where there is no limit."""
    unsure: int
    """Renders put back of which Sume may hold the job: they have a place, and may take it."""
    writes: int
    """The POSTs of the last `gate.WINDOW_SECONDS`; no more is counted than may be sent."""
    full_since: datetime | None = None
    """When the POST was sent that took the minute's last place for a render."""


@dataclass(frozen=True)
class Capacity:
    """How many renders may be sent now: `fresh` ones, and `any` with those that have a place."""

    fresh: int = 0
    any: int = 0
    opens_at: datetime | None = None
    """When there is room by itself; None where something else has to happen first."""
    probe: bool = False


def most_sent(workspace: Workspace) -> int:
    """How many renders may be sent in a minute: some POSTs are left for cancels."""
    return workspace.writes_per_minute - workspace.writes_per_minute // CANCELS_SHARE


def room(workspace: Workspace, gate: Gate, load: Usage, now: datetime) -> Capacity:
    """How many renders may be sent now, by all that limits them but money."""
    if closed := shut(gate, now):
        return Capacity(opens_at=closed.until)
    if gate.refusals and trying(gate, now):
        return Capacity(opens_at=gate.probe_until)
    if load.full_since:
        return Capacity(opens_at=load.full_since + timedelta(seconds=WINDOW_SECONDS))
    left = most_sent(workspace) - load.writes
    opens_at = None
    if gate.capacity is not None and gate.capacity_at is not None:
        told, old_at = gate.capacity, gate.capacity_at + timedelta(seconds=READING_SECONDS)
        if told <= 0 and old_at > now:
            opens_at = old_at
        left = min(left, told if opens_at else max(told, 1))
    if gate.refusals:
        left = min(left, 1)
    fresh = left
    if workspace.max_in_flight is not None:
        places = workspace.max_in_flight - load.in_flight
        fresh, left = min(left, places - load.unsure), min(left, places)
    return Capacity(max(0, fresh), max(0, left), opens_at, probe=gate.refusals > 0)


def entered(gate: Gate, count: int, probe: bool, now: datetime) -> None:
    """Note, under the lock, that so many renders are on their way."""
    if not probe and (not count or gate.capacity is None):
        return  # nothing to note
    if count and gate.capacity is not None:
        gate.capacity -= count
        if gate.capacity <= 0:  # taken, or asked whether an old word still holds
            gate.capacity, gate.capacity_at = 0, now
    if probe:
        gate.probe_until = now + timedelta(seconds=conf.grace_seconds)
    gate.save(update_fields=["capacity", "capacity_at", "probe_until"])


def wakes(gate: Gate | None, at: datetime, now: datetime) -> bool:
    """Whether a message that is on its way goes on with the line by that time."""
    soon = now + timedelta(seconds=0.05)  # this may be that message, come a little early
    return bool(gate and gate.wake_at and soon < gate.wake_at <= at)


def to_wake(gate: Gate, at: datetime, now: datetime) -> bool:
    """Whether a message shall wait for that time, under the lock; False if one does already."""
    if wakes(gate, at, now):
        return False
    gate.wake_at = at
    gate.save(update_fields=["wake_at"])
    return True


def accepted(workspace: str, capacity: int | None, on_their_way: int) -> None:
    """Note what Sume told about its queue; `on_their_way` are submits it may not have counted."""
    left = None if capacity is None else max(0, min(capacity, MOST_CAPACITY) - on_their_way)
    now = timezone.now()
    gates = Gate.objects.filter(pk=key_of(workspace, RequestType.WRITES))
    gates.update(capacity=left, capacity_at=now, back_offs=0)


def freed(workspace: str) -> None:
    """A job has ended: where no place was left, one may ask again."""
    full = Gate.objects.filter(pk=key_of(workspace, RequestType.WRITES), capacity__lte=0)
    full.update(capacity=1, capacity_at=timezone.now())


def load(limits: Workspace, now: datetime) -> Usage:
    """What is on its way, as far as it matters; call it under the lock of the gate."""
    places = limits.max_in_flight or 0
    posts = writes(limits, now)
    most = most_sent(limits)
    sent = count(posts, limits.writes_per_minute)
    # The newest so many fill the minute: it has room again when the first of these is old.
    full = posts.values_list("at", flat=True)[most - 1 : most] if sent >= most else []
    return Usage(
        in_flight=in_flight(limits.name, now, places),
        unsure=count(RenderJob.objects.filter(workspace=limits.name).unsure(), places),
        writes=sent,
        full_since=next(iter(full), None),
    )


def in_flight(workspace: str, now: datetime, most: int | None = None) -> int:
    """How many of a workspace have a place at Sume; counting ends at `most`."""
    renders = RenderJob.objects.filter(workspace=workspace)
    # What is overdue may never end: from then on, Sume itself says when it is full.
    hours = conf.OVERDUE_HOURS
    sent_after = now - timedelta(hours=hours) if hours else datetime.min.replace(tzinfo=UTC)
    # Each status has an index of its own.
    submitting = count(renders.filter(status=Status.SUBMITTING), most)
    submitted = renders.filter(status=Status.SUBMITTED, submitted_at__gt=sent_after)
    return submitting + count(submitted, None if most is None else most - submitting)


def minute_is_full(limits: Workspace, now: datetime) -> bool:
    """Whether no POST may be sent just now."""
    return writes_left(limits, now) <= 0


def writes_left(limits: Workspace, now: datetime) -> int:
    """How many POSTs may be sent just now."""
    most = limits.writes_per_minute
    return most - count(writes(limits, now), most)


def writes(limits: Workspace, now: datetime) -> Any:
    """The workspace's POSTs that count now, the newest first."""
    return RenderEvent.objects.writes_around(now, gate.WINDOW_SECONDS, limits.name)


def count(rows: Any, most: int | None) -> int:
    """How many there are; counting ends at `most`."""
    return 0 if most == 0 else rows.order_by()[:most].count()
