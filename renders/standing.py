"""How it stands, in figures for people: the gates, the minute, the line."""

from dataclasses import dataclass
from datetime import datetime, timedelta

from django.utils import timezone

from renders import claims, gate
from renders.conf import conf
from renders.models import Gate, RenderJob
from renders.queries import RenderQueries
from renders.states import Sort


@dataclass(frozen=True)
class GateStanding:
    """Whether one sort of requests may be sent now, and if not: why, until when."""

    sort: Sort
    closed: bool = False
    trying: bool = False
    """Open for one request at a time, after a refusal of the key or the account."""
    code: str = ""
    reason: str = ""
    until: datetime | None = None
    refusals: int = 0
    held: bool = False


@dataclass(frozen=True)
class Figures:
    """What counts against the limits now. A limit is None where there is none."""

    waiting: int
    in_flight: int
    max_in_flight: int | None
    writes: int
    writes_per_minute: int
    capacity: int | None
    capacity_at: datetime | None
    overdue: int


def gates() -> list[GateStanding]:
    """Both gates, as the database tells."""
    now = timezone.now()
    rows = {row.sort: row for row in Gate.objects.all()}
    return [_standing(sort, rows.get(sort), now) for sort in Sort]


def is_paused() -> bool:
    """Whether nothing is sent to Sume now, as the database tells: no page waits for Redis."""
    row = Gate.objects.filter(pk=Sort.WRITES).first()
    return gate.shut(row, timezone.now()) is not None


def _standing(sort: Sort, row: Gate | None, now: datetime) -> GateStanding:
    closed = gate.shut(row, now)
    if row is None or not (closed or row.refusals):
        return GateStanding(sort)
    return GateStanding(
        sort,
        closed=closed is not None,
        trying=closed is None,
        code=closed.code if closed else row.code,
        reason=str(closed) if closed else row.reason,
        until=closed.until if closed else None,
        refusals=row.refusals,
        held=row.held_at is not None,
    )


def figures() -> Figures:
    """What the limits are, and how much of them is used."""
    now = timezone.now()
    row = Gate.objects.filter(pk=Sort.WRITES).first()
    minute = RenderJob.objects.writes_around(now, 60)
    return Figures(
        waiting=RenderJob.objects.waiting().count(),
        in_flight=claims.in_flight(now),
        max_in_flight=conf.max_in_flight,
        writes=minute[: conf.writes_per_minute].count(),
        writes_per_minute=conf.writes_per_minute,
        capacity=row.capacity if row else None,
        capacity_at=row.capacity_at if row else None,
        overdue=overdue(RenderJob.objects.all()).count(),
    )


def overdue(renders: RenderQueries) -> RenderQueries:
    """Those of the renders that Sume should have ended long ago."""
    hours = conf.OVERDUE_HOURS
    late = renders.overdue(timezone.now() - timedelta(hours=hours))
    return late if hours else late.none()
