"""What is left of this month's budgets, as people and programs read it.

Each sum may be some seconds old; nothing is sent because of it. Whether a render fits is decided
by the claim, with exact sums.
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

    None where there is no such budget.
    """

    workspace: str
    budget: int | None
    left: int | None
    user_budget: int | None
    user_left: int | None


def of(user: Any, workspace: Workspace, now: datetime) -> Allowance:
    """What is left for a user in this workspace."""
    return Allowance(
        workspace.name,
        budget=workspace.budget_usd_micros or None,
        left=spending.about_left(workspace, now),
        user_budget=workspace.user_budget_usd_micros or None,
        user_left=spending.about_left_of(user.pk, workspace, now),
    )


def every(user: Any, now: datetime) -> list[Allowance]:
    """The allowances in all workspaces that this user may use, the user's own first."""
    found = map(workspaces.find, workspace_choice.choices(user) or _own(user))
    return [of(user, one, now) for one in found if one]


def in_words(user: Any, workspace: str, now: datetime, *, sees_all: bool) -> list[tuple[str, bool]]:
    """Sentences on what is left in a workspace, each with whether that is little.

    Without a workspace, it is the user's own. The workspace's budget is named to those who see
    all renders, and where less is left of it than of the user's.
    """
    if not any(map(spending.limited, workspaces.every())):
        return []
    names = [workspace] if workspace else _own(user)
    limits = workspaces.find(names[0]) if names else None
    if limits is None:
        return []
    told, sentences = of(user, limits, now), []
    if told.user_budget is not None and told.user_left is not None:
        sentences.append(_sentence(told.user_left, told.user_budget, "your"))
    if told.budget is not None and told.left is not None:
        whose = f"{limits.name}'s" if workspaces.several() else "the shared"
        if sees_all or told.user_left is None or told.left < told.user_left:
            sentences.append(_sentence(told.left, told.budget, whose))
    for index in range(len(sentences) - 1, -1, -1):
        words, low = sentences[index]
        if low:  # once is enough
            sentences[index] = f"{words} Renders that do not fit wait until next month.", low
            break
    return sentences


def month(now: datetime) -> str:
    """The month that the budgets are for, in UTC: 2026-01."""
    return f"{now.astimezone(UTC):%Y-%m}"


def _sentence(left: int, budget: int, whose: str) -> tuple[str, bool]:
    words = f"{usd(left)} of {whose} {usd(budget)} is left this month."
    return words, spending.is_low(left, budget)


def _own(user: Any) -> list[str]:
    try:
        return [workspace_choice.choose(user)]
    except InvalidRender:
        return []
