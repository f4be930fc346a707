"""Who may see a render, and do what with it: one answer for pages, API and admin."""

from typing import Any
from uuid import UUID

from django.shortcuts import get_object_or_404

from renders.models import RenderJob


def visible(user: Any, pk: UUID) -> RenderJob:
    """The render, if this person may see it. Raises `Http404`."""
    renders = RenderJob.objects.visible_to(user)
    return get_object_or_404(renders.select_related("created_by", "retry_of"), pk=pk)


def may_cancel(user: Any, render: RenderJob) -> bool:
    """The owner may, and staff with the permission to cancel."""
    return _may(user, render, "renders.cancel_renderjob")


def may_retry(user: Any, render: RenderJob) -> bool:
    """The owner may, and staff with the permission to retry."""
    return _may(user, render, "renders.retry_renderjob")


def _may(user: Any, render: RenderJob, permission: str) -> bool:
    return bool(render.created_by_id == user.pk or (user.is_staff and user.has_perm(permission)))
