"""May Sume be asked now? One answer for all workers: pauses, and what ends them.

The database decides, so neither an empty Redis nor a killed worker makes anybody forget. Redis
spares it: a pause is read there by everybody who comes while it lasts.

Reads and writes have a gate each. After a refusal of the key or the account (401, 402, 403) one
request at a time tries whether it is mended; the pauses between them grow.
"""

import json
import logging
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from typing import Literal

from django.db import transaction
from django.utils import timezone

from renders.conf import conf
from renders.connections import REDIS_DOWN, redis_client, uses_redis
from renders.exceptions import BackOff, Closed, SumeError
from renders.models import Gate
from renders.pacing import back_off
from renders.states import Sort

logger = logging.getLogger(__name__)

KEY = "sume:gate:"
# A minute, longer by the time that a request may need to arrive.
WINDOW_SECONDS = 60.0 + 2.0
QUEUE_FULL = "queue_full"
# The pause after a 429 or 503 that names no time.
BACK_OFF_SECONDS = 5.0
SHORTEST_PAUSE_SECONDS = 1.0
# What stands in Redis instead of a pause, and for how long.
Open = Literal[b"open"]
OPEN: Open = b"open"
OPEN_MILLISECONDS = 1000


# --- Pauses ---------------------------------------------------------------------------------


def closed(sort: Sort, now: datetime) -> Closed | None:
    """The pause that holds now, or None. A quick look, without a lock."""
    told = kept(sort, now)
    return told if isinstance(told, Closed) else shut(Gate.objects.filter(pk=sort).first(), now)


def kept(sort: Sort, now: datetime) -> Closed | Open | None:
    """What Redis knows: a pause, or that a moment ago there was none; None if it knows nothing."""
    if not uses_redis():
        return None
    try:
        told = redis_client().get(KEY + sort)
    except REDIS_DOWN as error:
        logger.warning("Redis unreachable (%s): the database is asked.", type(error).__name__)
        return None
    if not told:
        return None
    if told == OPEN:
        return OPEN
    until, code, reason = json.loads(told)
    if until <= now.timestamp():
        return None
    return Closed(reason, code=code, until=datetime.fromtimestamp(until, UTC))


def shut(gate: Gate | None, now: datetime) -> Closed | None:
    """The pause that its row tells of."""
    if gate is None:
        return None
    if gate.held_at:
        return Closed("Paused by a person, until resumed in the admin.", code="held", until=None)
    if gate.paused_until and gate.paused_until > now:
        return Closed(gate.reason, code=gate.code, until=gate.paused_until)
    return None


def trying(gate: Gate, now: datetime) -> bool:
    """Whether somebody tries just now; a time too far ahead is that of a clock put back since."""
    longest = now + timedelta(seconds=2 * conf.grace_seconds)
    return bool(gate.probe_until and now < gate.probe_until <= longest)


def pause(sort: Sort, error: SumeError, seconds: float | None = None) -> datetime:
    """Close the gate for everybody, and say until when; a pause that lasts longer stays.

    Without `seconds`, for as long as Sume asks, else for a span that doubles while it goes on.
    """
    with transaction.atomic():
        gate = lock(sort)
        now = timezone.now()
        if seconds is None:
            seconds = _span(gate, error, now)
        until = now + timedelta(seconds=min(seconds, conf.MAX_PAUSE_SECONDS))
        gate.probe_until = None
        if error.code == QUEUE_FULL:
            gate.capacity, gate.capacity_at = 1, now  # after the pause, one asks again
        if not gate.paused_until or gate.paused_until < until:
            gate.paused_until, gate.code, gate.reason = until, error.code[:100], str(error)[:500]
            logger.warning(
                "%s pause until %s, for all workers. Sume says: %s (%s)",
                gate, f"{until:%T}", error, error.code,
            )  # fmt: skip
        gate.save()
    _tell(gate, now)
    if not shut(Gate.objects.filter(pk=sort).first(), now):
        _forget(sort)  # resumed between the commit and Redis
    return gate.paused_until


def _span(gate: Gate, error: SumeError, now: datetime) -> float:
    """How long to pause for this, in seconds, counted in the gate's row."""
    # Others that were on their way when a pause began are no reason to make it longer.
    again = gate.paused_until is not None and gate.paused_until > now
    if isinstance(error, BackOff):
        if error.retry_after:
            return max(SHORTEST_PAUSE_SECONDS, error.retry_after)
        gate.back_offs += not (again and gate.back_offs)
        return back_off(gate.back_offs, base=BACK_OFF_SECONDS, longest=conf.MAX_PAUSE_SECONDS)
    gate.refusals += not (again and gate.refusals)
    return conf.PAUSE_SECONDS * 2.0 ** min(gate.refusals - 1, 30)


def passed(sort: Sort) -> None:
    """The request that tried was answered: everybody may go on."""
    # Not `paused_until`: that pause was over when the try began; a later one is another's.
    Gate.objects.filter(pk=sort).update(refusals=0, probe_until=None)
    logger.warning("Sume answers again: %s go on.", sort)


def failed(sort: Sort) -> None:
    """The request that tried got no clear answer: somebody else may try."""
    Gate.objects.filter(pk=sort).update(probe_until=None)


def hold(user: object) -> None:
    """A person pauses the sending of renders; cancels and reads go on."""
    with transaction.atomic():
        lock(Sort.WRITES)
        Gate.objects.filter(pk=Sort.WRITES).update(held_at=timezone.now(), held_by=user)


def resume() -> None:
    """A person lifts every pause. After a refusal one request tries first, as ever."""
    Gate.objects.update(held_at=None, held_by=None, paused_until=None, probe_until=None)
    for sort in Sort:
        _forget(sort)


def tell_open(sort: Sort) -> None:
    """Let nobody ask the database for a moment; a pause that somebody tells of goes before."""
    if uses_redis():
        with suppress(*REDIS_DOWN):
            redis_client().set(KEY + sort, OPEN, nx=True, px=OPEN_MILLISECONDS)


def _tell(gate: Gate, now: datetime) -> None:
    """Let everybody find the pause in Redis, for as long as it lasts."""
    if not uses_redis():
        return
    assert gate.paused_until is not None  # noqa: S101 (just set)
    left = (gate.paused_until - now).total_seconds()
    kept = json.dumps([gate.paused_until.timestamp(), gate.code, gate.reason])
    try:
        redis_client().set(KEY + gate.sort, kept, px=max(1, int(left * 1000)))
    except REDIS_DOWN as error:
        logger.warning("Redis unreachable (%s): the database tells.", type(error).__name__)


def _forget(sort: Sort) -> None:
    if not uses_redis():
        return
    try:
        redis_client().delete(KEY + sort)
    except REDIS_DOWN as error:
        logger.warning("Redis unreachable (%s): a pause in it ends in time.", type(error).__name__)


# --- The row -----------------------------------------------------------------------------


def lock(sort: Sort) -> Gate:
    """The gate's row, locked until the transaction that this is called in ends."""
    gates = Gate.objects.select_for_update().filter(pk=sort)
    gate = gates.first()
    if gate is None:
        Gate.objects.bulk_create([Gate(sort=sort)], ignore_conflicts=True)
        gate = gates.get()
    return gate
