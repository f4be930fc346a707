"""What a workspace has spent this month, and whether that is all it may.

A month is one of the calendar, in UTC. Counted are the costs of what has ended in it (where Sume
named none yet, the usual price), and the usual price of what is under way; what failed or was
canceled is refunded, unless Sume says that it has taken the money, or nobody knows. With its
budget spent a workspace sends nothing new until the next month, or until the budget is raised;
what Sume may hold already is followed to its end.
"""

import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

from django.db.models import BigIntegerField, Case, Q, Sum, Value, When
from django.db.models.functions import Coalesce

from renders import workspaces
from renders.exceptions import Closed
from renders.models import RenderJob
from renders.states import IN_FLIGHT, Status
from renders.workspaces import MICROS, Workspace

CODE = "budget_spent"
# Failed or canceled, but not free: Sume captured the money, or the cost is unknown.
NOT_FREE = Q(status__in=[Status.FAILED, Status.CANCELED]) & ~Q(cost_usd_micros=0)
# A quick look, by those who hold no lock, may be so old.
LOOK_SECONDS = 2.0
# What ended more than an hour ago hardly changes any more: its sum may be so old.
EARLIER_SECONDS = 5.0


def closed(workspace: Workspace, now: datetime, *, exact: bool = False) -> Closed | None:
    """Why nothing new may be sent: the budget is spent. None if it is not, or there is none.

    `exact` is for whoever holds the lock of the workspace's gate, and so lets nobody else spend.
    """
    budget = workspace.budget_usd_micros
    if not budget:
        return None
    look = ("look", workspace.name, _month(now))
    micros = _kept(look, 0.0 if exact else LOOK_SECONDS, lambda: spent(workspace, now))
    if micros < budget:
        return None
    return Closed(
        f"The month's budget is spent: ${micros / MICROS:,.2f} of ${budget / MICROS:,.2f}, with "
        "what is under way. It goes on next month, or when the budget is raised.",
        code=CODE,
        until=_next_month(now),
    )


def spent(workspace: Workspace, now: datetime) -> int:
    """Millionths of a dollar this month, with what is under way."""
    # What ends in between is counted twice rather than never.
    return _under_way(workspace) + _ended(workspace, now)


def counted(now: datetime) -> Q:
    """The rows of which this month's budgets count the costs; none where there is no budget."""
    limited = [
        one.name
        for one in map(workspaces.find, workspaces.names())
        if one and one.budget_usd_micros
    ]
    if not limited:
        return Q(pk__in=[])
    made = Q(status=Status.COMPLETED) | NOT_FREE
    return made & Q(workspace__in=limited, finished_at__gte=_month(now))


def _under_way(workspace: Workspace) -> int:
    """By their prices: what is with Sume, or may be."""
    unsure = Q(status=Status.PENDING, outcome_unknown_at__isnull=False)
    total = 0
    for where in (*(Q(status=status) for status in IN_FLIGHT), unsure) if workspace.prices else ():
        rows = RenderJob.objects.filter(where, workspace=workspace.name).order_by()
        total += rows.aggregate(price=Sum(_price(workspace)))["price"] or 0
    return total


def _ended(workspace: Workspace, now: datetime) -> int:
    month = _month(now)
    hour = now.astimezone(UTC).replace(minute=0, second=0, microsecond=0)
    # Who ended one may write it down a while later.
    lately = max(month, hour - timedelta(hours=1))
    prices = tuple(sorted(workspace.prices.items()))
    key = ("earlier", workspace.name, lately, prices)
    earlier = _kept(key, EARLIER_SECONDS, lambda: _between(workspace, month, lately))
    return earlier + _between(workspace, lately, None)


def _between(workspace: Workspace, start: datetime, end: datetime | None) -> int:
    ended = RenderJob.objects.filter(workspace=workspace.name, finished_at__gte=start).order_by()
    if end:
        ended = ended.filter(finished_at__lt=end)
    cost = Sum(Coalesce("cost_usd_micros", _price(workspace)))
    # Each has an index of its own.
    sums = [
        ended.filter(where).aggregate(cost=cost)["cost"]
        for where in (Q(status=Status.COMPLETED), NOT_FREE)
    ]
    return sum(int(micros or 0) for micros in sums)


def _price(workspace: Workspace) -> Any:
    number = BigIntegerField()
    known = [When(kind=kind, then=Value(price)) for kind, price in workspace.prices.items()]
    return Case(*known, default=Value(0), output_field=number)


def _month(now: datetime) -> datetime:
    """When this month began."""
    return now.astimezone(UTC).replace(day=1, hour=0, minute=0, second=0, microsecond=0)


def _next_month(now: datetime) -> datetime:
    return _month(_month(now) + timedelta(days=32))


# Sums of this process: until when (monotonic clock), and how much.
_sums: dict[Any, tuple[float, int]] = {}


def _kept(key: Any, seconds: float, add_up: Callable[[], int]) -> int:
    """A sum that is at most so old."""
    now = time.monotonic()
    at, micros = _sums.get(key, (float("-inf"), 0))
    if at + seconds <= now:
        micros = add_up()
        if len(_sums) > 1000:
            _sums.clear()
        _sums[key] = now, micros
    return micros


def forget() -> None:
    """Keep no sum any longer: for tests, which change rows themselves."""
    _sums.clear()
