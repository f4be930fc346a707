"""How many renders may be sent now: free slots at Sume, POSTs left in the minute, one probe.

A claim calls `load`, `free` and `entered` under one lock of the workspace's gate, so that two
workers can't take the same slot. After a refusal, one render at a time is sent as a probe.
"""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from django.utils import timezone

from renders.conf import conf
from renders.conf.workspaces import Workspace
from renders.limits.gate import WINDOW_SECONDS, shut, trying
from renders.models import Gate, RenderEvent, RenderJob
from renders.models.gates import key_of
from renders.states import RequestType, Status

# Sume's report of its free queue slots counts as old after this time.
READING_SECONDS = 60.0
MOST_CAPACITY = 1_000_000
# One write in 20 is reserved for cancels.
CANCELS_SHARE = 20


@dataclass(frozen=True)
class Usage:
    """Jobs in flight and recent POSTs, counted under the gate's lock and only up to the limits."""

    in_flight: int
    """Jobs at Sume. Counting stops at the limit; 0 without a limit."""
    unsure: int
    """Renders put back that Sume may hold: each has a slot and may use it. Counted likewise."""
    writes: int
    """POSTs of the last `gate.WINDOW_SECONDS`. Counting stops at the limit."""
    full_since: datetime | None = None
    """When the POST was sent that used up the minute's quota for renders; None if any is left."""


@dataclass(frozen=True)
class Capacity:
    """How many renders may be sent now.

    `fresh` ones were never sent. `any` includes unsure ones: sent before without a clear answer,
    so Sume may have the job.
    """

    fresh: int = 0
    any: int = 0
    opens_at: datetime | None = None
    """When capacity returns by itself; None if something else has to happen first."""
    probe: bool = False
    """The next render tests whether a refusal of the key or account is over."""


def load(limits: Workspace, now: datetime) -> Usage:
    """The usage that counts against the limits now. Call it under the lock of the gate."""
    slots = limits.max_in_flight or 0
    posts = writes(limits, now)
    most = most_sent(limits)
    sent = count(posts, limits.writes_per_minute)
    # The newest `most` POSTs fill the minute: quota returns when the oldest of them leaves it.
    full = posts.values_list("at", flat=True)[most - 1 : most] if sent >= most else []
    return Usage(
        in_flight=in_flight(limits.name, now, slots),
        unsure=count(RenderJob.objects.filter(workspace=limits.name).unsure(), slots),
        writes=sent,
        full_since=next(iter(full), None),
    )


def free(workspace: Workspace, gate: Gate, load: Usage, now: datetime) -> Capacity:
    """How many renders may be sent now, by every limit but the budgets."""
    if closed := shut(gate, now):
        return Capacity(opens_at=closed.until)
    if gate.refusals and trying(gate, now):
        return Capacity(opens_at=gate.probe_until)
    if load.full_since:
        return Capacity(opens_at=load.full_since + timedelta(seconds=WINDOW_SECONDS))
    left = most_sent(workspace) - load.writes
    opens_at = None
    if gate.capacity is not None and gate.capacity_at is not None:
        reported, old_at = gate.capacity, gate.capacity_at + timedelta(seconds=READING_SECONDS)
        if reported <= 0 and old_at > now:
            opens_at = old_at
        left = min(left, reported if opens_at else max(reported, 1))
    if gate.refusals:
        left = min(left, 1)
    fresh = left
    if workspace.max_in_flight is not None:
        slots = workspace.max_in_flight - load.in_flight
        fresh, left = min(left, slots - load.unsure), min(left, slots)
    return Capacity(max(0, fresh), max(0, left), opens_at, probe=gate.refusals > 0)


def entered(gate: Gate, count: int, probe: bool, now: datetime) -> None:
    """Note that `count` renders were claimed for sending. Call it under the lock of the gate."""
    if not probe and (not count or gate.capacity is None):
        return  # nothing to note
    if count and gate.capacity is not None:
        gate.capacity -= count
        if gate.capacity <= 0:  # used up, or a submit probes whether an old report still holds
            gate.capacity, gate.capacity_at = 0, now
    if probe:
        gate.probe_until = now + timedelta(seconds=conf.grace_seconds)
    gate.save(update_fields=["capacity", "capacity_at", "probe_until"])


def accepted(workspace: str, capacity: int | None, on_their_way: int) -> None:
    """Store the queue capacity that Sume reported. Call it under the lock of the gate.

    `on_their_way` is the number of submits in flight that the report may not include yet.
    """
    left = None if capacity is None else max(0, min(capacity, MOST_CAPACITY) - on_their_way)
    now = timezone.now()
    gates = Gate.objects.filter(pk=key_of(workspace, RequestType.WRITES))
    gates.update(capacity=left, capacity_at=now, back_offs=0)


def freed(workspace: str) -> None:
    """A job ended. If Sume reported a full queue, allow one submit to probe it."""
    full = Gate.objects.filter(pk=key_of(workspace, RequestType.WRITES), capacity__lte=0)
    full.update(capacity=1, capacity_at=timezone.now())


def wakes(gate: Gate | None, at: datetime, now: datetime) -> bool:
    """Whether a delayed message will start the next claim by `at`."""
    soon = now + timedelta(seconds=0.05)  # the caller may be that message, run slightly early
    return bool(gate and gate.wake_at and soon < gate.wake_at <= at)


def to_wake(gate: Gate, at: datetime, now: datetime) -> bool:
    """Whether the caller must send a message for `at`; False if one is already scheduled.

    Call it under the lock of the gate.
    """
    if wakes(gate, at, now):
        return False
    gate.wake_at = at
    gate.save(update_fields=["wake_at"])
    return True


def minute_is_full(limits: Workspace, now: datetime) -> bool:
    """Whether no POST may be sent now."""
    return writes_left(limits, now) <= 0


def writes_left(limits: Workspace, now: datetime) -> int:
    """How many POSTs may be sent now."""
    most = limits.writes_per_minute
    return most - count(writes(limits, now), most)


def most_sent(workspace: Workspace) -> int:
    """How many renders may be sent in a minute. The other POSTs are reserved for cancels."""
    return workspace.writes_per_minute - workspace.writes_per_minute // CANCELS_SHARE


def writes(limits: Workspace, now: datetime) -> Any:
    """The workspace's POSTs that count now, newest first."""
    return RenderEvent.objects.writes_around(now, WINDOW_SECONDS, limits.name)


def in_flight(workspace: str, now: datetime, most: int | None = None) -> int:
    """How many renders of a workspace occupy a slot at Sume. Counting stops at `most`."""
    renders = RenderJob.objects.filter(workspace=workspace)
    # An overdue job may never end: it no longer counts here, and Sume itself reports a full queue.
    hours = conf.OVERDUE_HOURS
    sent_after = now - timedelta(hours=hours) if hours else datetime.min.replace(tzinfo=UTC)
    # Each status has an index of its own.
    submitting = count(renders.filter(status=Status.SUBMITTING), most)
    submitted = renders.filter(status=Status.SUBMITTED, submitted_at__gt=sent_after)
    return submitting + count(submitted, None if most is None else most - submitting)


def count(rows: Any, most: int | None) -> int:
    """The number of rows. Counting stops at `most`."""
    return 0 if most == 0 else rows.order_by()[:most].count()
