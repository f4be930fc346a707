"""Who may see a render, and do what with it: one answer for pages, API and admin.

How many renders one person may have waiting (`MAX_WAITING_PER_USER`).

The limit holds for what people make through the API, the pages and the admin, over all
workspaces. The site's own code has no limit, and neither do staff.
"""

from typing import Any
from uuid import UUID

from django.contrib.auth import get_user_model
from django.shortcuts import get_object_or_404

from renders.conf import conf
from renders.exceptions import InvalidRender, LineFull, TooManyAtOnce
from renders.models import RenderJob


def visible(user: Any, pk: UUID) -> RenderJob:
    """The render, if this person may see it. Raises `Http404`."""
    renders = RenderJob.objects.visible_to(user)
    return get_object_or_404(renders.select_related("created_by", "retry_of"), pk=pk)


def may_add(user: Any) -> bool:
    """Whether this person may make renders, each of which costs money."""
    return bool(conf.ANYBODY_ADDS or user.has_perm("renders.add_renderjob"))


def may_prioritize(user: Any) -> bool:
    """Whether this person may give a render a priority above 0: it is sent before the others'."""
    return bool(user.is_staff or user.has_perm("renders.prioritize_renderjob"))


def priority_fault(user: Any, priority: int) -> InvalidRender | None:
    """The error if this person may not give a new render this priority."""
    if priority <= 0 or may_prioritize(user):
        return None
    words = "A priority above 0 needs a permission. Leave it out, or ask staff for the permission."
    return InvalidRender("priority", words)


def may_exceed_waiting_limit(user: Any) -> bool:
    """Whether this person may have more than `MAX_WAITING_PER_USER` renders waiting."""
    return bool(user.is_staff or user.has_perm("renders.exceed_waiting_limit"))


def may_cancel(user: Any, render: RenderJob) -> bool:
    """The owner may, and staff with the permission to cancel."""
    if render.created_by_id == user.pk:
        return True
    return bool(user.is_staff and user.has_perm("renders.cancel_renderjob"))


def may_retry(user: Any, render: RenderJob) -> bool:
    """The owner may who may add renders, and staff with the permission to retry."""
    if render.created_by_id == user.pk and may_add(user):
        return True
    return bool(user.is_staff and user.has_perm("renders.retry_renderjob"))


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
    if user is None or not conf.MAX_WAITING_PER_USER or may_exceed_waiting_limit(user):
        return 0
    return conf.MAX_WAITING_PER_USER
