"""Budgets: what a workspace and its users have spent this month, and what is left.

A month is a calendar month in UTC. It counts the costs of renders that ended in it (the price, if
Sume has not reported a cost yet) and the prices of renders in flight. Failed and canceled renders
are refunded, unless Sume captured the money or the cost is unknown. A new render that does not fit
into what is left is not sent: it is put aside, with the reason on its row, until it fits. A render
that Sume may hold already is followed to its end and counted once.
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
# Sums read without the lock may be this old.
LOOK_SECONDS = 2.0
# Costs that ended more than an hour ago rarely change: their sum may be this old.
EARLIER_SECONDS = 5.0

# Cached sums of this process: when each was added up (monotonic clock), and how much.
_sums: dict[Any, tuple[float, int]] = {}


class Funds:
    """What is left of a workspace's budgets, in millionths of a dollar; None: no limit.

    Use it under the lock of the workspace's gate, so that no other worker spends meanwhile. Each
    sum is read from the database once.
    """

    def __init__(self, workspace: Workspace, now: datetime) -> None:
        self._workspace, self._now = workspace, now
        budget = workspace.budget_usd_micros
        self.left = budget - _look(workspace, now, 0.0) if budget else None
        self._left_of_users: dict[Any, int | None] = {}
        self._price = cache(lambda kind, model: prices.counted(workspace, kind, model))

    def closed(self) -> Closed | None:
        """As `spending.closed`, but with an exact sum instead of a cached one."""
        budget = self._workspace.budget_usd_micros
        return None if self.left is None else _shut(self._workspace, budget - self.left, self._now)

    def misfit(self, user: Any, kind: str, model: str) -> str:
        """Why such a render may not be sent now; empty if it may. `user` is the user's key."""
        budgets = {"the month's": self.left, "its user's": self._left_of(user)}
        if set(budgets.values()) == {None}:
            return ""
        price = self._price(kind, model)
        if price is None:
            name = f"{kind}:{model}"
            return f"No price is set for {name}, so the budget cannot be kept: see RENDERS_PRICES."
        for owner, left in budgets.items():
            if left is not None and price > max(0, left):
                rest = usd(max(0, left))
                return f"It costs up to {usd(price)}, but {rest} of {owner} budget is left."
        return ""

    def reserve(self, user: Any, kind: str, model: str, most: int) -> int:
        """Reserve money for up to `most` of these renders; returns how many fit."""
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
        """What is left of a user's budget, minus the renders that `reserve` has counted."""
        if user not in self._left_of_users:
            self._left_of_users[user] = left_of(user, self._workspace, self._now)
        return self._left_of_users[user]


def limited(workspace: Workspace) -> bool:
    """Whether the workspace has a budget of any sort."""
    return bool(workspace.budget_usd_micros or workspace.user_budget_usd_micros)


def closed(workspace: Workspace, now: datetime) -> Closed | None:
    """Why nothing new may be sent: not even the cheapest render fits into the workspace's budget.

    None if one may fit or there is no budget. The sum may be some seconds old.
    """
    if not workspace.budget_usd_micros:
        return None
    return _shut(workspace, about_spent(workspace, now), now)


def is_low(left: int, budget: int) -> bool:
    """Whether most of a budget is spent."""
    return budget - left >= LOW * budget


def usd(micros: int) -> str:
    """An amount for people to read: two decimals, or more if they matter."""
    cents = f"{micros / MICROS:,.2f}"
    exact = f"{micros / MICROS:,.6f}".rstrip("0")
    return f"${exact if len(exact) > len(cents) else cents}"


def left_of(user: Any, workspace: Workspace, now: datetime) -> int | None:
    """What is left of this user's budget in a workspace this month; None: no budget.

    `user` is the user's key. Renders without a user have only the workspace's budget.
    """
    budget = workspace.user_budget_usd_micros
    return budget - spent_by(user, workspace, now) if budget and user is not None else None


def about_spent(workspace: Workspace, now: datetime) -> int:
    """As `spent`, but up to some seconds old: for pages, figures and a first check."""
    return _look(workspace, now, LOOK_SECONDS)


def about_left(workspace: Workspace, now: datetime) -> int | None:
    """What is left of a workspace's budget, for people to read; None: no budget.

    It is at least 0, and up to some seconds old.
    """
    budget = workspace.budget_usd_micros
    return max(0, budget - about_spent(workspace, now)) if budget else None


def about_left_of(user: Any, workspace: Workspace, now: datetime) -> int | None:
    """As `left_of`, for people to read: at least 0, and up to some seconds old."""
    budget = workspace.user_budget_usd_micros
    if not budget or user is None:
        return None
    key = ("look", workspace.name, _month(now), user)
    return max(0, budget - _kept(key, LOOK_SECONDS, lambda: spent_by(user, workspace, now)))


def spent(workspace: Workspace, now: datetime) -> int:
    """Millionths of a dollar spent this month, including renders in flight."""
    return _spent(RenderJob.objects.all(), (), workspace, now)


def spent_by(user: Any, workspace: Workspace, now: datetime) -> int:
    """As `spent`, for the renders of one user only; `user` is the user's key."""
    return _spent(RenderJob.objects.filter(created_by=user), (user,), workspace, now)


def counted(now: datetime) -> Q:
    """The rows whose costs count in this month's budgets; none if there is no budget."""
    accounts = map(workspaces.find, workspaces.names())
    names = [account.name for account in accounts if account and limited(account)]
    if not names:
        return Q(pk__in=[])
    made = Q(status=Status.COMPLETED) | NOT_FREE
    return made & Q(workspace__in=names, finished_at__gte=_month(now))


def forget() -> None:
    """Drop all cached sums: for tests, which change rows themselves."""
    _sums.clear()


def _look(workspace: Workspace, now: datetime, seconds: float) -> int:
    """As `spent`, up to `seconds` old; a fresh sum is cached for the whole process."""
    key = ("look", workspace.name, _month(now))
    return _kept(key, seconds, lambda: spent(workspace, now))


def _shut(workspace: Workspace, micros: int, now: datetime) -> Closed | None:
    """Why nothing new may be sent if `micros` are spent; None if a render may fit."""
    budget = workspace.budget_usd_micros
    if budget - micros >= max(1, min(workspace.prices.values(), default=1)):
        return None
    return Closed(
        f"The month's budget is spent: {usd(micros)} of {usd(budget)}, with what is under way. "
        "It goes on next month, or when the budget is raised.",
        code=CODE,
        until=_next_month(now),
    )


def _spent(
    rows: RenderQuerySet, owner: tuple[Any, ...], workspace: Workspace, now: datetime
) -> int:
    """The prices of renders in flight, and the costs of those that ended this month."""
    rows = rows.filter(workspace=workspace.name).order_by()
    # In this order, a render that ends in between is counted twice rather than never.
    return _under_way(rows, workspace) + _ended(rows, owner, workspace, now)


def _under_way(rows: RenderQuerySet, workspace: Workspace) -> int:
    """The prices of renders that Sume has or may have."""
    # One statement, so that no render moves between the two conditions meanwhile.
    unsure = Q(status=Status.PENDING, outcome_unknown_at__isnull=False)
    return _priced(rows.filter(Q(status__in=IN_FLIGHT) | unsure), workspace)


def _ended(
    rows: RenderQuerySet, owner: tuple[Any, ...], workspace: Workspace, now: datetime
) -> int:
    """The costs of renders that ended this month; `owner` is part of the cache's key."""
    month = _month(now)
    hour = now.astimezone(UTC).replace(minute=0, second=0, microsecond=0)
    # A worker may write an end some time after it.
    lately = max(month, hour - timedelta(hours=1))
    key = ("earlier", workspace.name, owner, lately, tuple(sorted(workspace.prices.items())))
    month_until = rows.filter(finished_at__gte=month, finished_at__lt=lately)
    earlier = _kept(key, EARLIER_SECONDS, lambda: _costs(month_until, workspace))
    return earlier + _costs(rows.filter(finished_at__gte=lately), workspace)


def _costs(ended: RenderQuerySet, workspace: Workspace) -> int:
    """The costs of ended renders. Without a reported cost the price counts: it may not be free."""
    ended = ended.exclude(cost_usd_micros=0)
    reported = ended.aggregate(cost=Sum("cost_usd_micros"))["cost"]
    return int(reported or 0) + _priced(ended.filter(cost_usd_micros__isnull=True), workspace)


def _priced(rows: RenderQuerySet, workspace: Workspace) -> int:
    """The assumed cost of these renders, by their prices."""
    sorts = rows.values_list("kind", "model").annotate(number=Count("pk"))
    return sum(prices.assumed(workspace, kind, model) * number for kind, model, number in sorts)


def _month(now: datetime) -> datetime:
    """The beginning of this month."""
    return now.astimezone(UTC).replace(day=1, hour=0, minute=0, second=0, microsecond=0)


def _next_month(now: datetime) -> datetime:
    """The beginning of the next month."""
    return _month(_month(now) + timedelta(days=32))


def _kept(key: Any, seconds: float, add_up: Callable[[], int]) -> int:
    """A sum that is at most `seconds` old, added up again if need be."""
    now = time.monotonic()
    at, micros = _sums.get(key, (float("-inf"), 0))
    if at + seconds <= now:
        micros = add_up()
        if len(_sums) > 1000:
            _sums.clear()
        _sums[key] = now, micros
    return micros
