"""What a person may see and do: the same rules for pages, API and admin.

Part of them is how many renders a person may have waiting (`MAX_WAITING_PER_USER`). That limit
applies to renders made through the API, the pages and the admin, over all workspaces. The site's
own code and staff have no limit.
"""

from typing import Any
from uuid import UUID

from django.contrib.auth import get_user_model
from django.shortcuts import get_object_or_404

from renders.conf import conf
from renders.exceptions import InvalidRender, LineFull, TooManyAtOnce
from renders.models import RenderJob


def visible(user: Any, pk: UUID) -> RenderJob:
    """The render, if this person may see it; otherwise raises `Http404`."""
    renders = RenderJob.objects.visible_to(user)
    return get_object_or_404(renders.select_related("created_by", "retry_of"), pk=pk)


def may_add(user: Any) -> bool:
    """True if this person may make renders, each of which costs money."""
    return bool(conf.ANYBODY_ADDS or user.has_perm("renders.add_renderjob"))


def may_prioritize(user: Any) -> bool:
    """True if this person may set a priority above 0, which is sent before other renders."""
    return bool(user.is_staff or user.has_perm("renders.prioritize_renderjob"))


def priority_fault(user: Any, priority: int) -> InvalidRender | None:
    """The error if this person may not give a new render this priority."""
    if priority <= 0 or may_prioritize(user):
        return None
    words = "A priority above 0 needs a permission. Leave it out, or ask staff for the permission."
    return InvalidRender("priority", words)


def may_exceed_waiting_limit(user: Any) -> bool:
    """True if this person may have more than `MAX_WAITING_PER_USER` renders waiting."""
    return bool(user.is_staff or user.has_perm("renders.exceed_waiting_limit"))


def may_cancel(user: Any, render: RenderJob) -> bool:
    """True for the owner, and for staff with the permission to cancel."""
    if render.created_by_id == user.pk:
        return True
    return bool(user.is_staff and user.has_perm("renders.cancel_renderjob"))


def may_retry(user: Any, render: RenderJob) -> bool:
    """True for an owner who may add renders, and for staff with the permission to retry."""
    if render.created_by_id == user.pk and may_add(user):
        return True
    return bool(user.is_staff and user.has_perm("renders.retry_renderjob"))


def lock(user: Any) -> None:
    """Lock this person's row, so that their requests store renders one after the other.

    Without it, concurrent requests could exceed the limit or give two renders the same turn. Call
    it in the transaction that stores the renders, before they are stored. None, for the site's own
    code, takes no lock: that code may keep its transactions open for long. On SQLite, which locks
    no rows, the transaction itself keeps other writers out.
    """
    if user is not None:
        users = get_user_model()._base_manager.select_for_update(no_key=True)
        users.filter(pk=user.pk).values_list("pk", flat=True).first()


def check(user: Any, new: int) -> None:
    """Raise `LineFull` or `TooManyAtOnce` if this person has too many renders waiting.

    `new` of them were just stored in this transaction, which the exception rolls back.
    """
    limit = _limit(user)
    if not (limit and new):
        return
    if error := too_many_at_once(user, new):
        raise error
    waiting = RenderJob.objects.waiting()
    # The workspaces are listed so that the index on workspace and user is used.
    own = waiting.filter(created_by=user.pk, workspace__in=waiting.their_workspaces())
    # Counting further makes no difference.
    count = own.order_by()[: limit + new].count()
    if count > limit:
        raise LineFull(count - new, new, limit)


def too_many_at_once(user: Any, number: int) -> TooManyAtOnce | None:
    """The error if this number alone exceeds the person's limit; otherwise None."""
    limit = _limit(user)
    return TooManyAtOnce(number, limit) if limit and number > limit else None


def _limit(user: Any) -> int:
    """This person's limit; 0: none. `user` is None for the site's own code."""
    if user is None or not conf.MAX_WAITING_PER_USER or may_exceed_waiting_limit(user):
        return 0
    return conf.MAX_WAITING_PER_USER
