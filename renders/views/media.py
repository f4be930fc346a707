"""The files of finished renders: the stored copy, for those who may see the render."""

from contextlib import suppress
from pathlib import PurePosixPath
from uuid import UUID

from django.contrib.auth.decorators import login_required
from django.core.files.storage import default_storage
from django.http import FileResponse, Http404, HttpRequest, HttpResponseRedirect
from django.http.response import HttpResponseBase
from django.views.decorators.http import require_safe

from renders import access
from renders.artifacts import IMAGES, VIDEOS, media_type
from renders.models import RenderJob

# What is stored came from elsewhere: it may be shown, and nothing in it may run.
ARTIFACT_POLICY = (
    "default-src 'none'; img-src 'self'; media-src 'self'; style-src 'unsafe-inline'; sandbox"
)


@login_required
@require_safe
def artifact(request: HttpRequest, pk: UUID, index: int) -> HttpResponseBase:
    """The stored file of one artifact, or the way to it where none is stored."""
    row = access.visible(request.user, pk)
    if index >= len(row.artifacts):
        raise Http404("This render has no such artifact.")
    found = row.artifacts[index]
    if found.get("file"):
        with suppress(FileNotFoundError):
            return _stored(row, index, found["file"], media_type(found))
    url = found.get("url") or ""
    if not url.lower().startswith(("http://", "https://")):
        raise Http404("This artifact is neither stored nor linked.")
    try:
        response = HttpResponseRedirect(url)
    except ValueError:
        raise Http404("The address of this artifact cannot be read.") from None
    response["Cache-Control"] = "no-store"
    response["Referrer-Policy"] = "no-referrer"
    return response


def _stored(row: RenderJob, index: int, name: str, content_type: str) -> FileResponse:
    shown = content_type in IMAGES | VIDEOS
    response = FileResponse(
        default_storage.open(name),
        as_attachment=not shown,
        filename=f"render-{str(row.pk)[:8]}-{index + 1}{PurePosixPath(name).suffix}",
        content_type=content_type if shown else "application/octet-stream",
    )
    response["X-Content-Type-Options"] = "nosniff"
    response["Content-Security-Policy"] = ARTIFACT_POLICY
    response["Cache-Control"] = "private, max-age=86400"
    return response
