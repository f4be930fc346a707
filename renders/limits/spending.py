"""What a workspace and each of its users have spent this month, and what their budgets still hold.

A month is one of the calendar, in UTC. Counted are the costs of what has ended in it (the price
where Sume named no cost yet) and the price of what is under way; what failed or was canceled is
refunded, unless Sume has taken the money, or nobody knows. Nothing new is sent that does not fit
into what is left: a render that does not fit is put aside, with the reason on its row, until it
does. What Sume may hold already is followed to its end, and counted once.
"""

import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from functools import cache
from typing import Any

from django.db.models import Count, Q, Sum

from renders.conf import workspaces
from renders.conf.workspaces import MICROS, Workspace
from renders.exceptions import Closed
from renders.limits import prices
from renders.models import RenderJob
from renders.models.querysets import RenderQuerySet
from renders.states import IN_FLIGHT, Status

CODE = "budget_spent"
# Failed or canceled, but not free: Sume captured the money, or the cost is unknown.
NOT_FREE = Q(status__in=[Status.FAILED, Status.CANCELED]) & ~Q(cost_usd_micros=0)
# A budget is low once this part of it is spent.
LOW = 0.8
# A quick look, by those who hold no lock, may be so old.
LOOK_SECONDS = 2.0
# What ended more than an hour ago hardly changes any more: its sum may be so old.
EARLIER_SECONDS = 5.0


class Funds:
    """What the budgets of a workspace hold now, in millionths of a dollar; None: no limit.

    For whoever holds the lock of the workspace's gate, and so lets nobody else spend. Each
    question is asked of the database once.
    """

    def __init__(self, workspace: Workspace, now: datetime) -> None:
        self._workspace, self._now = workspace, now
        budget = workspace.budget_usd_micros
        self.left = budget - _look(workspace, now, 0.0) if budget else None
        self._left_of_users: dict[Any, int | None] = {}
        self._price = cache(lambda kind, model: prices.counted(workspace, kind, model))

    def closed(self) -> Closed | None:
        """As the function of this name, exactly."""
        budget = self._workspace.budget_usd_micros
        return None if self.left is None else _shut(self._workspace, budget - self.left, self._now)

    def misfit(self, user: Any, kind: str, model: str) -> str:
        """Why such a render of this user's (the key) may not be sent now; empty if it may."""
        budgets = {"the month's": self.left, "its user's": self._left_of(user)}
        if set(budgets.values()) == {None}:
            return ""
        price = self._price(kind, model)
        if price is None:
            name = f"{kind}:{model}"
            return f"No price is set for {name}, so the budget cannot be kept: see RENDERS_PRICES."
        for whose, left in budgets.items():
            if left is not None and price > max(0, left):
                rest = usd(max(0, left))
                return f"It costs up to {usd(price)}, but {rest} of {whose} budget is left."
        return ""

    def fitting(self, user: Any, kind: str, model: str, most: int) -> int:
        """How many of these fit, `most` at most; takes their price out of the funds."""
        budgets = [left for left in (self.left, self._left_of(user)) if left is not None]
        if not budgets:
            return most
        price = self._price(kind, model)
        if price is None:
            return 0
        number = min([most, *(max(0, left) // price for left in budgets if price)])
        if self.left is not None:
            self.left -= number * price
        if (left := self._left_of(user)) is not None:
            self._left_of_users[user] = left - number * price
        return number

    def _left_of(self, user: Any) -> int | None:
        if user not in self._left_of_users:
            self._left_of_users[user] = left_of(user, self._workspace, self._now)
        return self._left_of_users[user]


def limited(workspace: Workspace) -> bool:
    """Whether a budget holds for it."""
    return bool(workspace.budget_usd_micros or workspace.user_budget_usd_micros)


def closed(workspace: Workspace, now: datetime) -> Closed | None:
    """Why nothing new may be sent: not even the cheapest render fits into the workspace's budget.

    None if one may fit, or there is no budget. A quick look: it may be some seconds old.
    """
    if not workspace.budget_usd_micros:
        return None
    return _shut(workspace, about_spent(workspace, now), now)


def is_low(left: int, budget: int) -> bool:
    """Whether most of a budget is spent."""
    return budget - left >= LOW * budget


def _look(workspace: Workspace, now: datetime, seconds: float) -> int:
    """What is spent, at most so old. Who looks exactly, tells the others of this process."""
    key = ("look", workspace.name, _month(now))
    return _kept(key, seconds, lambda: spent(workspace, now))


def _shut(workspace: Workspace, micros: int, now: datetime) -> Closed | None:
    budget = workspace.budget_usd_micros
    if budget - micros >= max(1, min(workspace.prices.values(), default=1)):
        return None
    return Closed(
        f"The month's budget is spent: {usd(micros)} of {usd(budget)}, with what is under way. "
        "It goes on next month, or when the budget is raised.",
        code=CODE,
        until=_next_month(now),
    )


def usd(micros: int) -> str:
    """A sum for people to read: two decimals, more where they matter."""
    cents = f"{micros / MICROS:,.2f}"
    exact = f"{micros / MICROS:,.6f}".rstrip("0")
    return f"${exact if len(exact) > len(cents) else cents}"


def left_of(user: Any, workspace: Workspace, now: datetime) -> int | None:
    """What is left for this user (the key) in a workspace this month; None: no budget.

    Renders without a user have the workspace's budget alone.
    """
    budget = workspace.user_budget_usd_micros
    return budget - spent_by(user, workspace, now) if budget and user is not None else None


def about_spent(workspace: Workspace, now: datetime) -> int:
    """As `spent`, but it may be some seconds old: for pages, figures and a first look."""
    return _look(workspace, now, LOOK_SECONDS)


def about_left(workspace: Workspace, now: datetime) -> int | None:
    """What is left of a workspace's budget, for people to read: at least 0, some seconds old.

    None: there is no budget.
    """
    budget = workspace.budget_usd_micros
    return max(0, budget - about_spent(workspace, now)) if budget else None


def about_left_of(user: Any, workspace: Workspace, now: datetime) -> int | None:
    """As `left_of`, for people to read: at least 0, and it may be some seconds old."""
    budget = workspace.user_budget_usd_micros
    if not budget or user is None:
        return None
    key = ("look", workspace.name, _month(now), user)
    return max(0, budget - _kept(key, LOOK_SECONDS, lambda: spent_by(user, workspace, now)))


def spent(workspace: Workspace, now: datetime) -> int:
    """Millionths of a dollar this month, with what is under way."""
    return _spent(RenderJob.objects.all(), (), workspace, now)


def spent_by(user: Any, workspace: Workspace, now: datetime) -> int:
    """As `spent`, for the renders of one user (the key) alone."""
    return _spent(RenderJob.objects.filter(created_by=user), (user,), workspace, now)


def counted(now: datetime) -> Q:
    """The rows of which this month's budgets count the costs; none where there is no budget."""
    known = map(workspaces.find, workspaces.names())
    names = [one.name for one in known if one and limited(one)]
    if not names:
        return Q(pk__in=[])
    made = Q(status=Status.COMPLETED) | NOT_FREE
    return made & Q(workspace__in=names, finished_at__gte=_month(now))


def _spent(
    rows: RenderQuerySet, whose: tuple[Any, ...], workspace: Workspace, now: datetime
) -> int:
    rows = rows.filter(workspace=workspace.name).order_by()
    # What ends in between is counted twice rather than never.
    return _under_way(rows, workspace) + _ended(rows, whose, workspace, now)


def _under_way(rows: RenderQuerySet, workspace: Workspace) -> int:
    """By their prices: what is with Sume, or may be."""
    # In one statement: none moves from one part to another meanwhile.
    unsure = Q(status=Status.PENDING, outcome_unknown_at__isnull=False)
    return _priced(rows.filter(Q(status__in=IN_FLIGHT) | unsure), workspace)


def _ended(
    rows: RenderQuerySet, whose: tuple[Any, ...], workspace: Workspace, now: datetime
) -> int:
    month = _month(now)
    hour = now.astimezone(UTC).replace(minute=0, second=0, microsecond=0)
    # Who ended one may write it down a while later.
    lately = max(month, hour - timedelta(hours=1))
    key = ("earlier", workspace.name, whose, lately, tuple(sorted(workspace.prices.items())))
    month_until = rows.filter(finished_at__gte=month, finished_at__lt=lately)
    earlier = _kept(key, EARLIER_SECONDS, lambda: _costs(month_until, workspace))
    return earlier + _costs(rows.filter(finished_at__gte=lately), workspace)


def _costs(ended: RenderQuerySet, workspace: Workspace) -> int:
    """What ended renders cost; what failed without a cost is not known to be free."""
    ended = ended.exclude(cost_usd_micros=0)
    known = ended.aggregate(cost=Sum("cost_usd_micros"))["cost"]
    return int(known or 0) + _priced(ended.filter(cost_usd_micros__isnull=True), workspace)


def _priced(rows: RenderQuerySet, workspace: Workspace) -> int:
    """What these cost about, by their prices."""
    sorts = rows.values_list("kind", "model").annotate(number=Count("pk"))
    return sum(prices.assumed(workspace, kind, model) * number for kind, model, number in sorts)


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
