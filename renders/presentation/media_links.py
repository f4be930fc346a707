"""Links to a finished render's media: paths of this app.

The pages, the admin and the API all use these, so Sume's signed URLs never reach any of them.
"""

import mimetypes
from dataclasses import dataclass
from typing import Any

from django.urls import reverse

from renders.media.content_types import IMAGES, VIDEOS
from renders.models import RenderJob


@dataclass(frozen=True)
class Media:
    """One artifact: `show` is image, video or file; `url` is a path of this app.

    `thumbnail` is the path of a small picture; an image without one has its own path, others "".
    `sha256` and `bytes` describe the stored file; they are "" and None if none is stored.
    """

    index: int
    url: str
    type: str
    content_type: str
    show: str
    thumbnail: str = ""
    sha256: str = ""
    bytes: int | None = None

    @property
    def word(self) -> str:
        """The format as people call it: PNG, MP4."""
        ending = self.content_type.partition("/")[2].partition("+")[0]
        return ending.upper() or self.type or "the file"


def media(render: RenderJob) -> list[Media]:
    """A render's artifacts, each with a path of this app."""
    return [_media(render, index, artifact) for index, artifact in enumerate(render.artifacts)]


def _media(render: RenderJob, index: int, artifact: dict[str, Any]) -> Media:
    content_type = media_type(artifact)
    if content_type in IMAGES or (not content_type and artifact.get("type") == "image"):
        show = "image"
    elif content_type in VIDEOS or (not content_type and artifact.get("type") == "video"):
        show = "video"
    else:
        show = "file"
    url = reverse("renders:artifact", args=[render.pk, index])
    thumbnail = url if show == "image" else ""
    if artifact.get("thumbnail"):
        thumbnail = reverse("renders:thumbnail", args=[render.pk, index])
    return Media(
        index,
        url,
        str(artifact.get("type") or ""),
        content_type,
        show,
        thumbnail,
        artifact.get("sha256") or "",
        artifact.get("bytes"),
    )


def media_type(artifact: dict[str, Any]) -> str:
    """An artifact's content type without parameters; guessed from the stored name if missing."""
    given = str(artifact.get("content_type") or "").partition(";")[0].strip().lower()
    return given or mimetypes.guess_type(str(artifact.get("file") or ""))[0] or ""
