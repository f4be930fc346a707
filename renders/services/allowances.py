"""The rest of this month's budgets, for people and programs to read.

The sums are cached for some seconds and decide nothing: the claim decides with exact sums whether a
render fits.
"""

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from renders.conf import workspaces
from renders.conf.workspaces import Workspace
from renders.exceptions import InvalidRender
from renders.limits import spending
from renders.limits.spending import usd
from renders.services import workspace_choice


@dataclass(frozen=True)
class Allowance:
    """What one user may still spend in one workspace this month, in millionths of a dollar.

    None if there is no such budget.
    """

    workspace: str
    budget: int | None
    left: int | None
    user_budget: int | None
    user_left: int | None


def of(user: Any, workspace: Workspace, now: datetime) -> Allowance:
    """The allowance of a user in this workspace."""
    return Allowance(
        workspace.name,
        budget=workspace.budget_usd_micros or None,
        left=spending.about_left(workspace, now),
        user_budget=workspace.user_budget_usd_micros or None,
        user_left=spending.about_left_of(user.pk, workspace, now),
    )


def every(user: Any, now: datetime) -> list[Allowance]:
    """The allowances in all workspaces that this user may use, the user's own first."""
    usable = map(workspaces.find, workspace_choice.choices(user) or _own(user))
    return [of(user, workspace, now) for workspace in usable if workspace]


def in_words(user: Any, workspace: str, now: datetime, *, sees_all: bool) -> list[tuple[str, bool]]:
    """Sentences on the rest of the budgets of a workspace, each with True if little is left.

    Without a workspace, the user's own is used. The workspace's budget is included if the user sees
    all renders, or if less is left of it than of the user's budget.
    """
    if not any(map(spending.limited, workspaces.every())):
        return []
    names = [workspace] if workspace else _own(user)
    limits = workspaces.find(names[0]) if names else None
    if limits is None:
        return []
    allowance, sentences = of(user, limits, now), []
    if allowance.user_budget is not None and allowance.user_left is not None:
        sentences.append(_sentence(allowance.user_left, allowance.user_budget, "your"))
    if allowance.budget is not None and allowance.left is not None:
        owner = f"{limits.name}'s" if workspaces.several() else "the shared"
        if sees_all or allowance.user_left is None or allowance.left < allowance.user_left:
            sentences.append(_sentence(allowance.left, allowance.budget, owner))
    for index in range(len(sentences) - 1, -1, -1):
        words, low = sentences[index]
        if low:  # only in the last such sentence
            sentences[index] = f"{words} Renders that do not fit wait until next month.", low
            break
    return sentences


def month(now: datetime) -> str:
    """The month that the budgets are for, in UTC: 2026-01."""
    return f"{now.astimezone(UTC):%Y-%m}"


def _sentence(left: int, budget: int, owner: str) -> tuple[str, bool]:
    words = f"{usd(left)} of {owner} {usd(budget)} is left this month."
    return words, spending.is_low(left, budget)


def _own(user: Any) -> list[str]:
    try:
        return [workspace_choice.choose(user)]
    except InvalidRender:
        return []
