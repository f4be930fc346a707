"""Who may see a render, and do what with it: one answer for pages, API and admin."""

from typing import Any
from uuid import UUID

from django.shortcuts import get_object_or_404

from renders.conf import conf
from renders.models import RenderJob


def visible(user: Any, pk: UUID) -> RenderJob:
    """The render, if this person may see it. Raises `Http404`."""
    renders = RenderJob.objects.visible_to(user)
    return get_object_or_404(renders.select_related("created_by", "retry_of"), pk=pk)


def may_add(user: Any) -> bool:
    """Whether this person may make renders, each of which costs money."""
    return bool(conf.ANYBODY_ADDS or user.has_perm("renders.add_renderjob"))


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
