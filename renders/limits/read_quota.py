"""How many reads may be sent now: pauses, the quota of GETs per minute, one probe after a refusal.

Each workspace has its own quota. It is asked before each read, or once for many. Redis counts the
reads and caches for a moment that the gate is open. If Redis is unreachable or not used, the
database decides and counts.
"""

import logging
import math
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import Any, TypeGuard, TypeVar

from django.db import transaction
from django.utils import timezone

from renders.conf import conf, workspaces
from renders.conf.workspaces import Workspace
from renders.coordination.connections import REDIS_DOWN, redis_client, uses_redis
from renders.exceptions import (
    BackOff,
    Closed,
    NotReady,
    Paused,
    Rejected,
    SumeError,
    UnknownWorkspace,
)
from renders.limits.gate import (
    KEY,
    WINDOW_SECONDS,
    failed,
    kept,
    lock,
    passed,
    pause,
    row_of,
    shut,
    tell_open,
    trying,
)
from renders.models import Gate
from renders.models.gates import key_of
from renders.states import RequestType

T = TypeVar("T")
logger = logging.getLogger(__name__)

# The code of `Closed` if only this span's quota of reads is used up.
USED_UP = "read_budget"

# Takes up to ARGV[2] of what is left of ARGV[1]; returns how many were taken.
_TAKE = """
local left = tonumber(ARGV[1]) - tonumber(redis.call('GET', KEYS[1]) or '0')
local taken = math.max(0, math.min(left, tonumber(ARGV[2])))
if taken > 0 then
  redis.call('INCRBY', KEYS[1], taken)
  redis.call('EXPIRE', KEYS[1], ARGV[3])
end
return taken
"""


@dataclass(frozen=True)
class Admission:
    """How many reads may be sent now. `closed` says why none may; it is None if any may."""

    count: int = 0
    probe: bool = False
    """The one read is a probe of whether a refusal is over: pass any outcome to `answered`."""
    closed: Closed | None = None


def read(workspace: str, ask: Callable[[], T]) -> T:
    """Send one read to Sume, if reads may be sent now. Raises `Closed`, and what `ask` raises."""
    admission = admit(workspace, 1)
    if admission.closed:
        raise admission.closed
    try:
        answer = ask()
    except SumeError as error:
        answered(workspace, admission.probe, error)
        raise
    answered(workspace, admission.probe, None)
    return answer


def admit(workspace: str, wanted: int) -> Admission:
    """Take up to `wanted` reads from the workspace's quota, if reads may be sent now."""
    now = timezone.now()
    limits = workspaces.find(workspace)
    if limits is None:
        return Admission(closed=UnknownWorkspace(workspace))
    cached = kept(workspace, RequestType.READS, now)
    if isinstance(cached, Closed):
        return Admission(closed=cached)
    gate = None
    if cached is None:
        gate = row_of(workspace, RequestType.READS)
        if pausing := shut(gate, now):
            return Admission(closed=pausing)
        if gate is None or not gate.refusals:
            tell_open(workspace, RequestType.READS)
    probe = gate is not None and gate.refusals > 0
    probing = Closed("Somebody tries whether Sume answers again.", code="probe", until=now)
    if gate and probe and trying(gate, now):
        return Admission(closed=probing)
    count = _take(limits, 1 if probe else wanted, now)
    if not count:
        closed = Closed(
            "More reads than Sume allows in a minute.",
            code=USED_UP,
            until=_next_span(limits, now),
        )
        return Admission(closed=closed)
    if gate is None or not probe:
        return Admission(count)
    before, until = gate.probe_until, now + timedelta(seconds=conf.grace_seconds)
    free = Gate.objects.filter(pk=key_of(workspace, RequestType.READS), probe_until=before)
    won = free.update(probe_until=until)
    return Admission(1, probe=True) if won else Admission(closed=probing)


def answered(workspace: str, probe: bool, error: SumeError | None) -> None:
    """Update the gate after a read: a refusal closes it for all workers, a probe may open it."""
    if holds_all(error):
        pause(workspace, RequestType.READS, error)
    elif probe and (error is None or isinstance(error, Rejected | NotReady)):
        passed(workspace, RequestType.READS)  # an answer: the key is accepted
    elif probe:
        failed(workspace, RequestType.READS)


def holds_all(error: SumeError | None) -> TypeGuard[SumeError]:
    """Whether this error concerns every read: key or account refused, or too many requests."""
    return isinstance(error, Paused) or (isinstance(error, BackOff) and error.status == 429)


# --- The quota -------------------------------------------------------------------------------


def _take(limits: Workspace, wanted: int, now: datetime) -> int:
    """Take up to `wanted` reads from the quota; returns how many it could take.

    The quota is spread over the minute: a share for each second, or for the span that allows one.
    """
    span, key = _span(limits), key_of(limits.name, RequestType.READS)
    most = int(limits.reads_per_minute * span // WINDOW_SECONDS)
    number = int(now.timestamp() // span)
    if uses_redis():
        try:
            script = _script(redis_client())
            return int(script(keys=[f"{KEY}{key}:{number}"], args=[most, wanted, span + 5]))
        except REDIS_DOWN as error:
            logger.warning("Redis unreachable (%s): the database counts.", type(error).__name__)
    with transaction.atomic():
        gate = lock(limits.name, RequestType.READS)
        taken = gate.span_taken if gate.span == number else 0
        count = max(0, min(wanted, most - taken))
        Gate.objects.filter(pk=key).update(span=number, span_taken=taken + count)
    return count


def _span(limits: Workspace) -> int:
    """The seconds over which reads are counted."""
    return max(1, math.ceil(WINDOW_SECONDS / limits.reads_per_minute))


def _next_span(limits: Workspace, now: datetime) -> datetime:
    """When the next share of the quota is available."""
    span = _span(limits)
    return datetime.fromtimestamp((now.timestamp() // span + 1) * span, UTC)


@lru_cache(maxsize=8)
def _script(client: Any) -> Any:
    return client.register_script(_TAKE)
