"""Who is sent next: the first in line, as far as there is room.

A render's message says that there is something to send, not what: whoever comes takes the render
named if its turn has come, else whoever's turn it is. Each claim has the next one started while
there is room, so a long line needs one message at a time, and one that waits where the gate is
closed.
"""

from collections import Counter
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

from django.db import transaction
from django.utils import timezone

from renders import admission, gate
from renders.admission import Load, Room
from renders.conf import conf
from renders.exceptions import Closed
from renders.models import Gate, RenderJob
from renders.queries import RenderQueries
from renders.states import CANCELING, SENDING, Sort, Status
from renders.steps import Step

# Shortest wait of the message that goes on with the line: several places open meanwhile.
SHORTEST_WAKE_SECONDS = 1.0
# From the claim to the POST; below the margin in `gate.WINDOW_SECONDS`.
LATEST_SECONDS = 1.0


@dataclass(frozen=True)
class Claim:
    """What a worker holds now, and the steps to take at once, before it sends."""

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
    if closed := gate.closed(Sort.WRITES, now):
        return Claim(steps=_wake_after(closed))
    if not line(now).exists():
        return Claim()
    with transaction.atomic():
        row = gate.lock(Sort.WRITES)
        now = timezone.now()  # others may have held the lock for a while
        room = admission.room(row, load(now), now)
        pks = _take(named, now, room, limit)
        if pks:
            admission.entered(row, len(pks), room.probe, now)
        last = len(pks) >= room.any
        following = line(now).pks(1)
        steps = [Step("submit", pk) for pk in following if pks and not last]
        if following and not pks and room.opens_at:
            steps = _wake(row, following[0], room.opens_at, now)
    return Claim(pks, now, room.probe, last or room.probe, steps)


def in_time(pk: UUID, claim: Claim) -> bool:
    """Whether it may be sent now: a worker that stalled since it claimed takes a POST anew."""
    if 0 <= (timezone.now() - claim.at).total_seconds() < LATEST_SECONDS:
        return True
    with transaction.atomic():
        row = gate.lock(Sort.WRITES)
        now = timezone.now()
        if gate.shut(row, now) or _minute_is_full(now):
            return False
        RenderJob.objects.log(pk, SENDING)
    return True


def next_in_line() -> list[Step]:
    """The step to take where a place may be free: the first in line, if any, is sent."""
    now = timezone.now()
    if closed := gate.closed(Sort.WRITES, now):
        return _wake_after(closed)
    return [Step("submit", pk) for pk in line(now).pks(1)]


def claim_cancel(pk: UUID) -> Claim:
    """Take one POST from the minute to have a job canceled, and note it in the timeline.

    It holds no render where no POST may be sent now.
    """
    with transaction.atomic():
        row = gate.lock(Sort.WRITES)
        now = timezone.now()
        probe = row.refusals > 0
        if probe and gate.trying(row, now):
            return Claim()
        if row.paused_until and row.paused_until > now:
            return Claim()
        if _minute_is_full(now):
            return Claim()
        admission.entered(row, 0, probe, now)
        RenderJob.objects.log(pk, CANCELING)
    return Claim([pk], now, probe)


def cancels_left() -> int:
    """How many may be asked of Sume just now; a quick look, without the lock."""
    now = timezone.now()
    row = Gate.objects.filter(pk=Sort.WRITES).first()
    if row and row.paused_until and row.paused_until > now:
        return 0
    return conf.writes_per_minute - _count(_writes(now), conf.writes_per_minute)


def line(now: datetime) -> RenderQueries:
    """All that may be sent now, the first in line first."""
    hours = conf.SUBMIT_DEADLINE_HOURS
    return RenderJob.objects.due(now, made_after=now - timedelta(hours=hours) if hours else None)


def load(now: datetime) -> Load:
    """What is on its way, as far as it matters; call it under the lock of the gate."""
    places = conf.max_in_flight or 0
    writes = _writes(now)
    most = admission.most_sent()
    sent = _count(writes, conf.writes_per_minute)
    # The newest so many fill the minute: it has room again when the first of these is old.
    full = writes.values_list("at", flat=True)[most - 1 : most] if sent >= most else []
    return Load(
        in_flight=in_flight(now, places),
        unsure=_count(RenderJob.objects.unsure(), places),
        writes=sent,
        full_since=next(iter(full), None),
    )


def in_flight(now: datetime, most: int | None = None) -> int:
    """How many have a place at Sume; counting ends at `most`."""
    renders = RenderJob.objects
    # What is overdue may never end: from then on, Sume itself says when it is full.
    hours = conf.OVERDUE_HOURS
    sent_after = now - timedelta(hours=hours) if hours else datetime.min.replace(tzinfo=UTC)
    # Each status has an index of its own.
    submitting = _count(renders.filter(status=Status.SUBMITTING), most)
    submitted = renders.filter(status=Status.SUBMITTED, submitted_at__gt=sent_after)
    return submitting + _count(submitted, None if most is None else most - submitting)


def _minute_is_full(now: datetime) -> bool:
    return _count(_writes(now), conf.writes_per_minute) >= conf.writes_per_minute


def _writes(now: datetime) -> Any:
    return RenderJob.objects.writes_around(now, gate.WINDOW_SECONDS)


def _count(rows: Any, most: int | None) -> int:
    return 0 if most == 0 else rows.order_by()[:most].count()


def _take(named: UUID, now: datetime, room: Room, limit: int) -> list[UUID]:
    """Claim within the room; where no fresh one may go, one that has a place may."""
    waiting, places = line(now), room.fresh
    if room.probe:  # what was refused itself lets the others try first
        waiting = waiting.order_by("submit_attempts", "-priority", "created_at")
    if not places and room.any:
        waiting, places = waiting.unsure(), room.any
    if not places:
        return []
    if not conf.FAIR:
        return RenderJob.objects.claim_next(waiting, now, named, within=places, limit=limit)
    taken: list[UUID] = []
    served: Counter[Any] = Counter()
    turns = waiting.turns()
    while turns and len(taken) < min(limit, places):
        user = min(turns, key=lambda user: (served[user], turns[user]))
        theirs = waiting.filter(created_by=user)
        pks = RenderJob.objects.claim_next(theirs, now, named, within=places, limit=1)
        if not pks:
            del turns[user]
        taken += pks
        served[user] += 1
    return taken


def _wake(row: Gate, pk: UUID, at: datetime, now: datetime) -> list[Step]:
    """One message, whoever asks, that goes on with the line at that time."""
    at = max(at, now + timedelta(seconds=SHORTEST_WAKE_SECONDS))
    at = min(at, now + timedelta(seconds=conf.MAX_POLL_SECONDS))
    wait = (at - now).total_seconds()
    return [Step("submit", pk, wait)] if admission.to_wake(row, at, now) else []


def _wake_after(closed: Closed) -> list[Step]:
    """The one message that goes on with the line when the pause is over."""
    if closed.until is None:
        return []
    now = timezone.now()
    until = max(closed.until, now)
    if admission.wakes(Gate.objects.filter(pk=Sort.WRITES).first(), until, now):
        return []  # without the lock: this is what a long line behind a closed gate costs
    following = line(until).pks(1)
    if not following:
        return []
    with transaction.atomic():
        return _wake(gate.lock(Sort.WRITES), following[0], until, now)
