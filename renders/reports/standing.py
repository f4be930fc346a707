"""The current state as figures for people: the gates, the limits, the line."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.utils import timezone

from renders.conf import conf, workspaces
from renders.exceptions import Closed, UnknownWorkspace
from renders.limits import gate, spending
from renders.limits.capacity import in_flight
from renders.models import Gate, RenderEvent, RenderJob
from renders.models.gates import key_of
from renders.models.querysets import RenderQuerySet
from renders.states import RequestType, Status


@dataclass(frozen=True)
class GateStanding:
    """Whether one type of request may be sent now; if not, why and until when."""

    sort: RequestType
    closed: bool = False
    trying: bool = False
    """Open for one request at a time, after Sume refused the key or the account."""
    code: str = ""
    reason: str = ""
    until: datetime | None = None
    refusals: int = 0
    held: bool = False


@dataclass(frozen=True)
class Figures:
    """What counts against the limits now. A limit is None if there is none."""

    waiting: int
    """In line to be sent."""
    in_flight: int
    max_in_flight: int | None
    writes: int
    writes_per_minute: int
    capacity: int | None
    capacity_at: datetime | None
    overdue: int
    spent: int | None = None
    """This month, in millionths of a dollar; None without a budget."""
    budget: int = 0
    user_budget: int = 0
    """What each user may spend; 0 without such a budget."""
    over_budget: int = 0
    """Renders that wait until they fit into a budget."""

    @property
    def left(self) -> int:
        """The rest of the month's budget: at least 0."""
        return max(0, self.budget - (self.spent or 0))

    @property
    def is_low(self) -> bool:
        """True if most of the month's budget is spent."""
        return self.spent is not None and spending.is_low(self.left, self.budget)


def all_gates() -> dict[str, list[GateStanding]]:
    """Both gates of each workspace, by the database.

    Workspaces that are no longer configured are included while renders wait or run in them.
    """
    rows = {row.key: row for row in Gate.objects.all()}
    configured = workspaces.names()
    gone = {row.workspace for row in rows.values()}.difference(configured)
    names = [*configured, *(name for name in sorted(gone) if _is_open(name))]
    return {name: _both(name, rows) for name in names}


def all_workspaces() -> list[str]:
    """The names of all workspaces, the default one first."""
    return list(all_gates())


def gates(workspace: str) -> list[GateStanding]:
    """Both gates of a workspace, by the database."""
    keys = [key_of(workspace, sort) for sort in RequestType]
    return _both(workspace, {row.key: row for row in Gate.objects.filter(pk__in=keys)})


def why_paused(workspace: str) -> Closed | None:
    """Why no render is sent to Sume now, by the database: no page waits for Redis."""
    row = gate.row_of(workspace, RequestType.WRITES)
    return _shut(workspace, RequestType.WRITES, row, timezone.now())


def figures(workspace: str) -> Figures:
    """The limits of a workspace, and how much of them is used."""
    now = timezone.now()
    limits, row = workspaces.find(workspace), gate.row_of(workspace, RequestType.WRITES)
    renders = RenderJob.objects.filter(workspace=workspace)
    most = limits.writes_per_minute if limits else 0
    minute = RenderEvent.objects.writes_around(now, 60, workspace)
    return Figures(
        waiting=renders.in_line().count(),
        in_flight=in_flight(workspace, now),
        max_in_flight=limits.max_in_flight if limits else None,
        writes=minute[:most].count(),
        writes_per_minute=most,
        capacity=row.capacity if row else None,
        capacity_at=row.capacity_at if row else None,
        overdue=overdue(renders).count(),
        spent=spending.about_spent(limits, now) if limits and limits.budget_usd_micros else None,
        budget=limits.budget_usd_micros if limits else 0,
        user_budget=limits.user_budget_usd_micros if limits else 0,
        over_budget=renders.over_budget().count(),
    )


def overdue(renders: RenderQuerySet) -> RenderQuerySet:
    """The renders that Sume should have ended long ago."""
    hours = conf.OVERDUE_HOURS
    late = renders.overdue(timezone.now() - timedelta(hours=hours))
    return late if hours else late.none()


def _both(workspace: str, rows: Mapping[str, Gate]) -> list[GateStanding]:
    now = timezone.now()
    sorts = [(sort, rows.get(key_of(workspace, sort))) for sort in RequestType]
    return [_standing(workspace, sort, row, now) for sort, row in sorts]


def _is_open(workspace: str) -> bool:
    renders = RenderJob.objects.filter(workspace=workspace)
    return renders.waiting().exists() or renders.filter(status=Status.SUBMITTED).exists()


def _shut(workspace: str, sort: RequestType, row: Gate | None, now: datetime) -> Closed | None:
    limits = workspaces.find(workspace)
    if limits is None:
        return UnknownWorkspace(workspace)
    closed = gate.shut(row, now)
    return closed or (spending.closed(limits, now) if sort == RequestType.WRITES else None)


def _standing(workspace: str, sort: RequestType, row: Gate | None, now: datetime) -> GateStanding:
    closed = _shut(workspace, sort, row, now)
    if not closed and not (row and row.refusals):
        return GateStanding(sort)
    return GateStanding(
        sort,
        closed=closed is not None,
        trying=closed is None,
        code=closed.code if closed else row.code if row else "",
        reason=str(closed) if closed else row.reason if row else "",
        until=closed.until if closed else None,
        refusals=row.refusals if row else 0,
        held=bool(row and row.held_at),
    )
