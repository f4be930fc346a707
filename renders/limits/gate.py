"""May Sume be asked now? One answer for all workers: pauses, and what ends them.

The database decides, so neither an empty Redis nor a killed worker makes anybody forget. Redis
spares it: a pause is read there by everybody who comes while it lasts.

Each workspace has a gate for its reads and one for its writes, and none of them holds up
another's. After a refusal of the key or the account (401, 402, 403) one
request at a time tries whether it is mended; the pauses between them grow.
"""

import json
import logging
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from typing import Literal

from django.db import transaction
from django.db.models import QuerySet
from django.utils import timezone

from renders.conf import conf, workspaces
from renders.coordination.connections import REDIS_DOWN, redis_client, uses_redis
from renders.exceptions import BackOff, Closed, Paused, SumeError
from renders.models import Gate
from renders.models.gates import key_of
from renders.states import RequestType
from renders.sume.timing import back_off

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


def closed(workspace: str, sort: RequestType, now: datetime) -> Closed | None:
    """The pause that holds now, or None. A quick look, without a lock."""
    if unknown := workspaces.missing(workspace):
        return unknown
    told = kept(workspace, sort, now)
    return told if isinstance(told, Closed) else shut(row_of(workspace, sort), now)


def kept(workspace: str, sort: RequestType, now: datetime) -> Closed | Open | None:
    """What Redis knows: a pause, or that a moment ago there was none; None if it knows nothing."""
    if not uses_redis():
        return None
    try:
        told = redis_client().get(KEY + key_of(workspace, sort))
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


def pause(
    workspace: str, sort: RequestType, error: SumeError, seconds: float | None = None
) -> datetime:
    """Close the gate for everybody, and say until when; a pause that lasts longer stays.

    Without `seconds`, for as long as Sume asks, else for a span that doubles while it goes on.
    """
    with transaction.atomic():
        gate = lock(workspace, sort)
        now = timezone.now()
        # Of those that were on their way when a pause began, nobody knows with which key.
        mark = gate.key_mark if gate.paused_until and gate.paused_until > now else ""
        if seconds is None:
            seconds = _span(gate, error, now)
        until = now + timedelta(seconds=min(seconds, conf.MAX_PAUSE_SECONDS))
        gate.probe_until = None
        if error.code == QUEUE_FULL:
            gate.capacity, gate.capacity_at = 1, now  # after the pause, one asks again
        if not gate.paused_until or gate.paused_until < until:
            gate.paused_until, gate.code, gate.reason = until, error.code[:100], str(error)[:500]
            known = workspaces.find(workspace) if isinstance(error, Paused) else None
            gate.key_mark = (mark or known.key_mark) if known else ""  # a 429 is no word about it
            logger.warning(
                "%s pause until %s, for all workers. Sume says: %s (%s)",
                gate, f"{until:%T}", error, error.code,
            )  # fmt: skip
        gate.save()
    _tell(gate, now)
    if not shut(row_of(workspace, sort), now):
        _forget(gate.key)  # resumed between the commit and Redis
    return gate.paused_until


def _span(gate: Gate, error: SumeError, now: datetime) -> float:
    """How long to pause for this, in seconds, counted in the gate's row."""
    # Others that were on their way when a pause began are no reason to make it longer.
    again = gate.paused_until is not None and gate.paused_until > now
    if isinstance(error, BackOff):
        if error.retry_after:
            return max(SHORTEST_PAUSE_SECONDS, error.retry_after)
        lately = now - timedelta(seconds=conf.MAX_PAUSE_SECONDS)
        if gate.paused_until and gate.paused_until < lately:
            gate.back_offs = 0  # that was an earlier outage
        gate.back_offs += not (again and gate.back_offs)
        return back_off(gate.back_offs, base=BACK_OFF_SECONDS, longest=conf.MAX_PAUSE_SECONDS)
    gate.refusals += not (again and gate.refusals)
    return conf.PAUSE_SECONDS * 2.0 ** min(gate.refusals - 1, 30)


def passed(workspace: str, sort: RequestType) -> None:
    """The request that tried was answered: everybody may go on."""
    # Not `paused_until`: that pause was over when the try began; a later one is another's.
    _rows(workspace, sort).update(refusals=0, probe_until=None)
    logger.warning("Sume answers again: %s go on.", key_of(workspace, sort))


def failed(workspace: str, sort: RequestType) -> None:
    """The request that tried got no clear answer: somebody else may try."""
    _rows(workspace, sort).update(probe_until=None)


def hold(workspace: str, user: object) -> None:
    """A person pauses the sending of renders; cancels and reads go on."""
    with transaction.atomic():
        lock(workspace, RequestType.WRITES)
        _rows(workspace, RequestType.WRITES).update(held_at=timezone.now(), held_by=user)


def resume(workspace: str) -> None:
    """A person lifts every pause. After a refusal one request tries first, as ever."""
    for sort in RequestType:
        rows = _rows(workspace, sort)
        rows.update(held_at=None, held_by=None, paused_until=None, probe_until=None)
        _forget(key_of(workspace, sort))


def try_new_key(workspace: str) -> bool:
    """Where another key was refused than the one there is now, have this one tried at once."""
    known, lifted = workspaces.find(workspace), False
    for sort in RequestType if known else ():
        refused = _rows(workspace, sort).filter(refusals__gt=0, paused_until__gt=timezone.now())
        for gate in refused.exclude(key_mark__in=["", known.key_mark if known else ""]):
            # Not what was paused anew since.
            same = refused.filter(key_mark=gate.key_mark)
            lifted |= bool(same.update(paused_until=None, probe_until=None))
            _forget(gate.key)
            logger.warning("%s: another key than the refused one is there; it is tried.", gate)
    return lifted


def tell_open(workspace: str, sort: RequestType) -> None:
    """Let nobody ask the database for a moment; a pause that somebody tells of goes before."""
    if uses_redis():
        with suppress(*REDIS_DOWN):
            redis_client().set(KEY + key_of(workspace, sort), OPEN, nx=True, px=OPEN_MILLISECONDS)


def _tell(gate: Gate, now: datetime) -> None:
    """Let everybody find the pause in Redis, for as long as it lasts."""
    if not uses_redis():
        return
    assert gate.paused_until is not None  # noqa: S101 (just set)
    left = (gate.paused_until - now).total_seconds()
    kept = json.dumps([gate.paused_until.timestamp(), gate.code, gate.reason])
    try:
        redis_client().set(KEY + gate.key, kept, px=max(1, int(left * 1000)))
    except REDIS_DOWN as error:
        logger.warning("Redis unreachable (%s): the database tells.", type(error).__name__)


def _forget(key: str) -> None:
    if not uses_redis():
        return
    try:
        redis_client().delete(KEY + key)
    except REDIS_DOWN as error:
        logger.warning("Redis unreachable (%s): a pause in it ends in time.", type(error).__name__)


# --- The row -----------------------------------------------------------------------------


def note(workspace: str) -> None:
    """Have a row for a workspace that is not configured: so people are shown that it is missing."""
    Gate.objects.bulk_create(
        [Gate(key=key_of(workspace, RequestType.WRITES))], ignore_conflicts=True
    )


def row_of(workspace: str, sort: RequestType) -> Gate | None:
    """The gate's row, without a lock; None as long as there was nothing to note."""
    return _rows(workspace, sort).first()


def _rows(workspace: str, sort: RequestType) -> QuerySet[Gate]:
    return Gate.objects.filter(pk=key_of(workspace, sort))


def lock(workspace: str, sort: RequestType) -> Gate:
    """The gate's row, locked until the transaction that this is called in ends."""
    gates = _rows(workspace, sort).select_for_update()
    gate = gates.first()
    if gate is None:
        Gate.objects.bulk_create([Gate(key=key_of(workspace, sort))], ignore_conflicts=True)
        gate = gates.get()
    return gate
