"""Who may see a render, and do what with it: one answer for pages, API and admin."""

from typing import Any
from uuid import UUID

from django.shortcuts import get_object_or_404

from renders.conf import conf
from renders.exceptions import InvalidRender
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
