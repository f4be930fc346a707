"""Turns: each render gets a tag when it is made, and tags order the renders of one priority level.

Start-time fair queueing: a new render's tag is one more than the later of its owner's last tag and
the last tag that the line has reached. So users alternate, no matter how many renders one of them
adds, and a user with nothing in line is soon next. Renders without an owner count as one user's.
Each priority level of each workspace has its own tags.
"""

from collections.abc import Sequence
from typing import Any

from django.db import connections, transaction

from renders.conf import conf
from renders.models import RenderJob
from renders.models.querysets import RenderQuerySet


def give(renders: Sequence[RenderJob]) -> None:
    """Give each of these rows its tag, before it is stored or returns to the line."""
    users: dict[tuple[str, Any, int], list[RenderJob]] = {}
    for render in renders:
        level = render.workspace, render.created_by_id, render.priority
        users.setdefault(level, []).append(render)
    for (workspace, user, priority), rows in users.items():
        level_rows = RenderJob.objects.filter(workspace=workspace, priority=priority)
        last = _last_tag(level_rows, user)
        for ahead, render in enumerate(rows, 1):
            render.turn = last + ahead if conf.FAIR else last


def give_again(renders: RenderQuerySet) -> None:
    """Give new tags to stored rows that are out of the line, before they return to it.

    With their old tags, all of them would go before renders that others have added since. A row
    that is locked by another process keeps its tag.
    """
    skips = connections[renders.db].features.has_select_for_update_skip_locked
    rows = renders.order_by("turn", "created_at", "pk")
    with transaction.atomic(using=renders.db):
        locked = rows.select_for_update(no_key=skips, skip_locked=skips)
        returning = list(locked.only("workspace", "created_by", "priority", "turn"))
        give(returning)
        RenderJob.objects.bulk_update(returning, ["turn"])


def _last_tag(level: RenderQuerySet, user: Any) -> int:
    """The later of the user's last tag and the one that the line has reached; 0 in a new line.

    Without `FAIR`, the last tag of all users counts, so that the oldest render goes first.
    """
    line = level.in_line()
    own = line.filter(created_by=user) if conf.FAIR else line
    last = _first_tag(own.order_by("-turn"))
    # Resends are ignored: they were in line before the others. A render may be claimed before its
    # turn, so the last claimed tag counts only if nothing new waits.
    first = _first_tag(line.filter(submit_attempts=0).order_by("turn"))
    claimed = level.filter(claimed_at__isnull=False).order_by("-turn")
    reached = _first_tag(claimed) if first is None else first - 1
    return max(last or 0, reached or 0)


def _first_tag(rows: RenderQuerySet) -> int | None:
    """The first of these rows' tags, without rows that have none; None if there is none."""
    return rows.filter(turn__isnull=False).values_list("turn", flat=True).first()
