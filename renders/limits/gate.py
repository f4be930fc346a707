"""The gate: pauses of all requests to Sume, shared by all workers, and what ends them.

The database is the truth, so a pause survives an empty Redis and a killed worker. Redis is a cache
of it: while a pause lasts, all workers read it there.

Each workspace has one gate for reads and one for writes, and they are independent. After a refusal
of the key or the account (401, 402, 403), one request at a time is sent as a probe, and the pauses
between probes grow.
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
# A minute, plus the time that a request may need to arrive.
WINDOW_SECONDS = 60.0 + 2.0
QUEUE_FULL = "queue_full"
# The pause after a 429 or 503 that names no time.
BACK_OFF_SECONDS = 5.0
SHORTEST_PAUSE_SECONDS = 1.0
# Cached in Redis when there is no pause, and for how long.
Open = Literal[b"open"]
OPEN: Open = b"open"
OPEN_MILLISECONDS = 1000


# --- Pauses ---------------------------------------------------------------------------------


def closed(workspace: str, sort: RequestType, now: datetime) -> Closed | None:
    """The pause in force now, or None; read without a lock."""
    if unknown := workspaces.missing(workspace):
        return unknown
    cached = kept(workspace, sort, now)
    return cached if isinstance(cached, Closed) else shut(row_of(workspace, sort), now)


def kept(workspace: str, sort: RequestType, now: datetime) -> Closed | Open | None:
    """The state cached in Redis: a pause, or `OPEN`; None if nothing is cached."""
    if not uses_redis():
        return None
    try:
        cached = redis_client().get(KEY + key_of(workspace, sort))
    except REDIS_DOWN as error:
        logger.warning("Redis unreachable (%s): the database is asked.", type(error).__name__)
        return None
    if not cached:
        return None
    if cached == OPEN:
        return OPEN
    until, code, reason = json.loads(cached)
    if until <= now.timestamp():
        return None
    return Closed(reason, code=code, until=datetime.fromtimestamp(until, UTC))


def shut(gate: Gate | None, now: datetime) -> Closed | None:
    """The pause recorded in the gate's row, or None."""
    if gate is None:
        return None
    if gate.held_at:
        return Closed("Paused by a person, until resumed in the admin.", code="held", until=None)
    if gate.paused_until and gate.paused_until > now:
        return Closed(gate.reason, code=gate.code, until=gate.paused_until)
    return None


def trying(gate: Gate, now: datetime) -> bool:
    """Whether a probe is running; a time too far ahead is from a clock put back since."""
    longest = now + timedelta(seconds=2 * conf.grace_seconds)
    return bool(gate.probe_until and now < gate.probe_until <= longest)


def pause(
    workspace: str, sort: RequestType, error: SumeError, seconds: float | None = None
) -> datetime:
    """Close the gate for all workers; returns until when. A longer pause stays.

    Without `seconds`, it lasts as long as Sume asks, else a time that doubles with each pause.
    """
    with transaction.atomic():
        gate = lock(workspace, sort)
        now = timezone.now()
        # A request in flight when the pause began may have used the old key: its refusal does not
        # change the mark that was recorded then.
        mark = gate.key_mark if gate.paused_until and gate.paused_until > now else ""
        if seconds is None:
            seconds = _span(gate, error, now)
        until = now + timedelta(seconds=min(seconds, conf.MAX_PAUSE_SECONDS))
        gate.probe_until = None
        if error.code == QUEUE_FULL:
            # After the pause, one submit may probe the queue.
            gate.capacity, gate.capacity_at = 1, now
        if not gate.paused_until or gate.paused_until < until:
            gate.paused_until, gate.code, gate.reason = until, error.code[:100], str(error)[:500]
            account = workspaces.find(workspace) if isinstance(error, Paused) else None
            gate.key_mark = (mark or account.key_mark) if account else ""  # a 429 is not about it
            logger.warning(
                "%s pause until %s, for all workers. Sume says: %s (%s)",
                gate, f"{until:%T}", error, error.code,
            )  # fmt: skip
        gate.save()
    _tell(gate, now)
    if not shut(row_of(workspace, sort), now):
        _forget(gate.key)  # resumed between the commit and Redis
    return gate.paused_until


def passed(workspace: str, sort: RequestType) -> None:
    """The probe was answered: open the gate for all workers."""
    # Keep `paused_until`: the probe began after that pause, so a later time is a new pause.
    _rows(workspace, sort).update(refusals=0, probe_until=None)
    logger.warning("Sume answers again: %s go on.", key_of(workspace, sort))


def failed(workspace: str, sort: RequestType) -> None:
    """The probe got no clear answer: allow another one."""
    _rows(workspace, sort).update(probe_until=None)


def hold(workspace: str, user: object) -> None:
    """A person pauses the sending of renders; cancels and reads go on."""
    with transaction.atomic():
        lock(workspace, RequestType.WRITES)
        _rows(workspace, RequestType.WRITES).update(held_at=timezone.now(), held_by=user)


def resume(workspace: str) -> None:
    """A person lifts every pause. After a refusal, one request still goes first as a probe."""
    for sort in RequestType:
        rows = _rows(workspace, sort)
        rows.update(held_at=None, held_by=None, paused_until=None, probe_until=None)
        _forget(key_of(workspace, sort))


def try_new_key(workspace: str) -> bool:
    """End the pauses caused by another key than the present one; True if there were any.

    The present key is then probed at once.
    """
    account, lifted = workspaces.find(workspace), False
    for sort in RequestType if account else ():
        refused = _rows(workspace, sort).filter(refusals__gt=0, paused_until__gt=timezone.now())
        for gate in refused.exclude(key_mark__in=["", account.key_mark if account else ""]):
            # Not a pause that began since.
            same = refused.filter(key_mark=gate.key_mark)
            lifted |= bool(same.update(paused_until=None, probe_until=None))
            _forget(gate.key)
            logger.warning("%s: the refused key was replaced; the new key is tried.", gate)
    return lifted


def tell_open(workspace: str, sort: RequestType) -> None:
    """Cache "open" in Redis for a second, unless a pause is cached."""
    if uses_redis():
        with suppress(*REDIS_DOWN):
            redis_client().set(KEY + key_of(workspace, sort), OPEN, nx=True, px=OPEN_MILLISECONDS)


def _span(gate: Gate, error: SumeError, now: datetime) -> float:
    """How long to pause for this error, in seconds; counts it in the gate's row."""
    # Errors of other requests in flight when a pause began do not make it longer.
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


def _tell(gate: Gate, now: datetime) -> None:
    """Cache the pause in Redis for as long as it lasts."""
    if not uses_redis():
        return
    assert gate.paused_until is not None  # noqa: S101 (just set)
    left = (gate.paused_until - now).total_seconds()
    cached = json.dumps([gate.paused_until.timestamp(), gate.code, gate.reason])
    try:
        redis_client().set(KEY + gate.key, cached, px=max(1, int(left * 1000)))
    except REDIS_DOWN as error:
        logger.warning("Redis unreachable (%s): the database tells.", type(error).__name__)


def _forget(key: str) -> None:
    """Remove a pause from the cache."""
    if not uses_redis():
        return
    try:
        redis_client().delete(KEY + key)
    except REDIS_DOWN as error:
        logger.warning(
            "Redis unreachable (%s): a pause cached there expires by itself.", type(error).__name__
        )


# --- The row -----------------------------------------------------------------------------


def note(workspace: str) -> None:
    """Make the row of an unconfigured workspace, so that pages show that it is missing."""
    Gate.objects.bulk_create(
        [Gate(key=key_of(workspace, RequestType.WRITES))], ignore_conflicts=True
    )


def row_of(workspace: str, sort: RequestType) -> Gate | None:
    """The gate's row, without a lock; None until something is recorded."""
    return _rows(workspace, sort).first()


def _rows(workspace: str, sort: RequestType) -> QuerySet[Gate]:
    return Gate.objects.filter(pk=key_of(workspace, sort))


def lock(workspace: str, sort: RequestType) -> Gate:
    """The gate's row, locked until the caller's transaction ends; made if missing."""
    gates = _rows(workspace, sort).select_for_update()
    gate = gates.first()
    if gate is None:
        Gate.objects.bulk_create([Gate(key=key_of(workspace, sort))], ignore_conflicts=True)
        gate = gates.get()
    return gate
