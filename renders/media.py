"""Bring a finished artifact into Django's storage."""

import mimetypes
import tempfile
from collections.abc import Mapping

from django.core.files import File
from django.core.files.storage import default_storage

from renders.client import download
from renders.conf import conf
from renders.exceptions import MediaError
from renders.hiding import Link


def save(render_id: str, index: int, artifact: Mapping[str, str]) -> str:
    """Store one artifact and return its name in the default storage.

    Raises `MediaError`. A second try replaces what a first one left.
    """
    url = Link(artifact.get("url", ""))
    if not url.lower().startswith(("http://", "https://")):
        raise MediaError("Artifact not stored: its address is neither http nor https.")
    suffix = mimetypes.guess_extension(artifact.get("content_type", "")) or ".bin"
    name = f"renders/{render_id}/{index}{suffix}"
    with tempfile.TemporaryFile() as file:
        try:
            download(url, file, timeout=conf.MEDIA_TIMEOUT_SECONDS, max_bytes=conf.MEDIA_MAX_BYTES)
        except MediaError as error:
            raise MediaError(f"Artifact not stored: {error}") from None
        file.seek(0)
        try:
            if default_storage.exists(name):
                default_storage.delete(name)
            return default_storage.save(name, File(file))
        except OSError as error:
            raise MediaError(
                f"Artifact not stored: the media storage failed ({type(error).__name__})."
            ) from None
