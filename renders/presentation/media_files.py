"""Media files of finished renders as replies. The caller has checked that the user may see them."""

from contextlib import suppress
from pathlib import PurePosixPath
from typing import Any

from django.http import Http404, HttpRequest, HttpResponseRedirect
from django.http.response import HttpResponseBase
from django.shortcuts import redirect
from django.utils.http import content_disposition_header

from renders.media import thumbnails
from renders.media.content_types import IMAGES, UNKNOWN, VIDEOS
from renders.media.storage import storage
from renders.models import RenderJob
from renders.presentation import byte_ranges
from renders.presentation.media_links import media_type

# Stored files come from outside: browsers may show them, but run nothing in them.
ARTIFACT_POLICY = (
    "default-src 'none'; img-src 'self'; media-src 'self'; style-src 'unsafe-inline'; sandbox"
)


def artifact(request: HttpRequest, render: RenderJob, index: int) -> HttpResponseBase:
    """The stored file of an artifact; if none is stored, a redirect to its URL."""
    item = _artifact(render, index)
    if item.get("file"):
        name = f"render-{str(render.pk)[:8]}-{index + 1}{PurePosixPath(item['file']).suffix}"
        etag = f'"{item["sha256"]}"' if item.get("sha256") else ""
        with suppress(FileNotFoundError):
            return _stored(request, item["file"], name, media_type(item), etag)
    url = item.get("url") or ""
    if not url.lower().startswith(("http://", "https://")):
        raise Http404("This artifact is neither stored nor linked.")
    try:
        response = HttpResponseRedirect(url)
    except ValueError:
        raise Http404("The address of this artifact cannot be read.") from None
    response["Cache-Control"] = "no-store"
    response["Referrer-Policy"] = "no-referrer"
    return response


def thumbnail(request: HttpRequest, render: RenderJob, index: int) -> HttpResponseBase:
    """The thumbnail of an artifact; if none is stored, a redirect to the artifact."""
    item = _artifact(render, index)
    if item.get("thumbnail"):
        name = f"render-{str(render.pk)[:8]}-{index + 1}-small.webp"
        etag = f'"{item["sha256"]}-small"' if item.get("sha256") else ""
        with suppress(FileNotFoundError):
            return _stored(request, item["thumbnail"], name, thumbnails.CONTENT_TYPE, etag)
    return redirect("renders:artifact", render.pk, index)


def _artifact(render: RenderJob, index: int) -> dict[str, Any]:
    artifacts = render.artifacts
    if index >= len(artifacts):
        raise Http404("This render has no such artifact.")
    return artifacts[index]


def _stored(
    request: HttpRequest, name: str, shown_as: str, content_type: str, etag: str
) -> HttpResponseBase:
    response = byte_ranges.not_modified(request, etag)
    if response is None:
        file = storage().open(name)
        response = byte_ranges.reply(request, file, file.size, etag)
        shown = content_type in IMAGES | VIDEOS
        response["Content-Type"] = content_type if shown else UNKNOWN
        disposition = content_disposition_header(not shown, shown_as)
        response["Content-Disposition"] = disposition or "attachment"
    if etag:
        response["ETag"] = etag
    response["X-Content-Type-Options"] = "nosniff"
    response["Content-Security-Policy"] = ARTIFACT_POLICY
    response["Cache-Control"] = "private, max-age=86400"
    return response
