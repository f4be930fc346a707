"""Turns: each render gets a tag when it is made, and the tags of a level are its order in the line.

Start-time fair queueing: a new render's tag is one more than the later of its owner's last tag and
the tag that the line has come to. So users alternate, however many renders one of them adds, and
whoever adds the first one now is soon next. Renders without an owner count as one user's. Each
level of priority of each workspace has tags of its own.
"""

from collections.abc import Iterable, Sequence
from typing import Any
from uuid import UUID

from renders.conf import conf
from renders.models import RenderJob
from renders.models.querysets import RenderQuerySet


def give(renders: Sequence[RenderJob]) -> None:
    """Give each of these rows its tag; they are neither stored nor in the line yet."""
    users: dict[tuple[str, Any, int], list[RenderJob]] = {}
    for render in renders:
        level = render.workspace, render.created_by_id, render.priority
        users.setdefault(level, []).append(render)
    for (workspace, user, priority), theirs in users.items():
        level_rows = RenderJob.objects.filter(workspace=workspace, priority=priority)
        last = _last_tag(level_rows, user)
        for ahead, render in enumerate(theirs, 1):
            render.turn = last + ahead if conf.FAIR else last


def give_again(pks: Iterable[UUID]) -> None:
    """Give new tags to rows that return to the line, in the transaction that returns them.

    With their old tags, all of them would go before what others have added since.
    """
    rows = RenderJob.objects.filter(pk__in=list(pks)).order_by("turn", "created_at", "pk")
    renders = list(rows.only("workspace", "created_by", "priority", "turn"))
    give(renders)
    RenderJob.objects.bulk_update(renders, ["turn"])


def _last_tag(level: RenderQuerySet, user: Any) -> int:
    """The later of the user's last tag and the one that the line has come to, which was claimed
    last; 0 where the line is new.

    Without turns the last tag of all, so that the oldest render goes first.
    """
    line = level.in_line()
    theirs = line.filter(created_by=user) if conf.FAIR else line
    last = _first_tag(theirs.order_by("-turn"), 0)
    claimed = _first_tag(level.filter(claimed_at__isnull=False).order_by("-turn"), 0)
    # What was claimed may be deleted since.
    passed = _first_tag(line.order_by("turn"), 1) - 1
    return max(last, claimed, passed)


def _first_tag(rows: RenderQuerySet, default: int) -> int:
    tag = rows.filter(turn__isnull=False).values_list("turn", flat=True).first()
    return default if tag is None else tag
