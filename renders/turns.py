"""Turns: each render gets a tag when it is made, and the tags of a level are its order in the line.

Start-time fair queueing: a new render's tag is one more than the later of its owner's last tag and
the tag that the line has come to. So users alternate, however many renders one of them adds, and
whoever adds the first one now is soon next. Renders without an owner count as one user's. Each
level of priority of each workspace has tags of its own.
"""

from collections.abc import Sequence
from typing import Any

from django.db import connections, transaction

from renders.conf import conf
from renders.models import RenderJob
from renders.queries import RenderQueries


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


def give_again(renders: RenderQueries) -> None:
    """Give new tags to stored rows that are out of the line, before they return to it.

    With their old tags, all of them would go before what others have added since. A row that
    somebody else holds just now keeps its own.
    """
    skips = connections[renders.db].features.has_select_for_update_skip_locked
    rows = renders.order_by("turn", "created_at", "pk")
    with transaction.atomic(using=renders.db):
        locked = rows.select_for_update(no_key=skips, skip_locked=skips)
        again = list(locked.only("workspace", "created_by", "priority", "turn"))
        give(again)
        RenderJob.objects.bulk_update(again, ["turn"])


def _last_tag(level: RenderQueries, user: Any) -> int:
    """The later of the user's last tag and the one that the line has come to; 0 in a new line.

    Without turns the last tag of all, so that the oldest render goes first.
    """
    line = level.in_line()
    theirs = line.filter(created_by=user) if conf.FAIR else line
    last = _first_tag(theirs.order_by("-turn"))
    # What is sent again was in the line before the others. One may be claimed before its turn, so
    # the last tag that was claimed counts only where nothing new waits.
    first = _first_tag(line.filter(submit_attempts=0).order_by("turn"))
    claimed = level.filter(claimed_at__isnull=False).order_by("-turn")
    reached = _first_tag(claimed) if first is None else first - 1
    return max(last or 0, reached or 0)


def _first_tag(rows: RenderQueries) -> int | None:
    return rows.filter(turn__isnull=False).values_list("turn", flat=True).first()
