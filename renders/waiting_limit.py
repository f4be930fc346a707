"""How many renders one person may have waiting (`MAX_WAITING_PER_USER`).

The limit holds for what people make through the API, the pages and the admin, over all
workspaces. The site's own code has no limit, and neither do staff.
"""

from typing import Any

from django.contrib.auth import get_user_model

from renders import access
from renders.conf import conf
from renders.exceptions import LineFull, TooManyAtOnce
from renders.models import RenderJob


def lock(user: Any) -> None:
    """Let this person's requests store their renders one after the other.

    So none of them is counted too late, and none is given the same turn. Call it in the
    transaction that stores them, before that; `user` is None for the site's own code, which may
    hold its transactions for long. On SQLite, which locks no rows, the transaction itself keeps
    other writers out.
    """
    if user is not None:
        users = get_user_model()._base_manager.select_for_update(no_key=True)
        users.filter(pk=user.pk).values_list("pk", flat=True).first()


def check(user: Any, new: int) -> None:
    """Raise if this person has too many waiting, `new` of them stored just now.

    Call it in the transaction that stored them, which the exception rolls back.
    """
    limit = _limit(user)
    if not (limit and new):
        return
    if error := too_many_at_once(user, new):
        raise error
    waiting = RenderJob.objects.waiting()
    # Named, so that the index of each workspace's users is used.
    theirs = waiting.filter(created_by=user.pk, workspace__in=waiting.their_workspaces())
    # More than this makes no difference.
    count = theirs.order_by()[: limit + new].count()
    if count > limit:
        raise LineFull(count - new, new, limit)


def too_many_at_once(user: Any, number: int) -> TooManyAtOnce | None:
    """The error if this person can never have so many new renders waiting."""
    limit = _limit(user)
    return TooManyAtOnce(number, limit) if limit and number > limit else None


def _limit(user: Any) -> int:
    """This person's limit; 0: none. `user` is None for the site's own code."""
    if user is None or not conf.MAX_WAITING_PER_USER or access.may_exceed_waiting_limit(user):
        return 0
    return conf.MAX_WAITING_PER_USER
