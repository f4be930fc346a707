"""The media files of finished renders, for users who may see the render."""

from uuid import UUID

from django.contrib.auth.decorators import login_required
from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.views.decorators.http import require_safe

from renders.presentation import media_files
from renders.services import permissions


@login_required
@require_safe
def artifact(request: HttpRequest, pk: UUID, index: int) -> HttpResponseBase:
    """The stored file of an artifact; if none is stored, a redirect to its URL."""
    return media_files.artifact(request, permissions.visible(request.user, pk), index)


@login_required
@require_safe
def thumbnail(request: HttpRequest, pk: UUID, index: int) -> HttpResponseBase:
    """The thumbnail of an artifact; if none is stored, a redirect to the artifact."""
    return media_files.thumbnail(request, permissions.visible(request.user, pk), index)
