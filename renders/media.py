"""Bring a finished artifact into Django's storage: fetched, looked at, stored under our names."""

import hashlib
import logging
import tempfile
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, BinaryIO

from django.core.files import File
from django.core.files.base import ContentFile

from renders import formats, thumbnails
from renders.conf import conf
from renders.downloads import download
from renders.exceptions import MediaError
from renders.hiding import Link
from renders.storage import storage

logger = logging.getLogger(__name__)

TRIES = 5


@dataclass
class Saved:
    """What is kept about a stored artifact, and the names of all that this try left in storage."""

    facts: dict[str, Any] = field(default_factory=dict)
    names: set[str] = field(default_factory=set)


def missing(artifacts: Iterable[Mapping[str, Any]]) -> int | None:
    """The index of the artifact to store next; None where each is stored or given up."""
    tries = [
        (artifact.get("failures", 0), index)
        for index, artifact in enumerate(artifacts)
        if not artifact.get("file") and artifact.get("failures", 0) < TRIES
    ]
    return min(tries)[1] if tries else None


def names_of(artifact: Mapping[str, Any]) -> set[str]:
    """The names under which an artifact's file and thumbnail are stored."""
    return {artifact[name] for name in ("file", "thumbnail") if artifact.get(name)}


def save(render_id: str, index: int, artifact: Mapping[str, Any]) -> Saved:
    """Store one artifact with its thumbnail.

    Raises `MediaError`, and whatever a storage raises. The names derive from the content, so a
    second try after a crash finds what the first one left.
    """
    url = Link(artifact.get("url") or "")
    with tempfile.TemporaryFile() as file:
        try:
            download(
                url,
                file,
                timeout=conf.MEDIA_TIMEOUT_SECONDS,
                max_bytes=conf.MEDIA_MAX_BYTES,
                private=conf.private_hosts,
            )
        except MediaError as error:
            raise MediaError(f"Artifact not stored: {error}") from None
        size = file.tell()
        if not size:
            raise MediaError("Artifact not stored: Its file is empty.")
        file.seek(0)
        head = file.read(formats.HEAD_BYTES)
        content_type = formats.content_type(head, str(artifact.get("content_type") or ""))
        file.seek(0)
        sha256 = hashlib.file_digest(file, "sha256").hexdigest()
        saved = Saved()
        base = f"renders/{render_id}/{index}-{sha256[:16]}"
        wanted = base + formats.suffix(content_type)
        # Named, since the `repr` of a `File` without a name raises.
        name = _store(wanted, File(file, wanted), size, saved)
        saved.facts = {
            "file": name,
            "content_type": content_type,
            "sha256": sha256,
            "bytes": size,
            "thumbnail": _thumbnail(base, file, content_type, saved),
        }
    return saved


def discard(names: Iterable[str]) -> None:
    """Delete from the storage what no render names; what cannot be deleted stays."""
    for name in names:
        try:
            storage().delete(name)
        except Exception as error:  # noqa: BLE001 (a storage may raise anything)
            logger.warning("A file that nobody needs stays in storage (%s).", type(error).__name__)


def _store(name: str, file: File, size: int, saved: Saved) -> str:
    """Its name in the storage. What a killed try has left there is used if it is whole."""
    with suppress(NotImplementedError, FileNotFoundError):
        if storage().exists(name):
            saved.names.add(name)
            if storage().size(name) == size:
                return name
    file.seek(0)
    stored = storage().save(name, file)
    saved.names.add(stored)
    return stored


def _thumbnail(base: str, file: BinaryIO, content_type: str, saved: Saved) -> str:
    """Its name in the storage, empty where there is none: a picture does without, if need be."""
    drawn = thumbnails.draw(file, content_type)
    if not drawn:
        return ""
    name = f"{base}-small{formats.suffix(thumbnails.CONTENT_TYPE)}"
    try:
        return _store(name, ContentFile(drawn), len(drawn), saved)
    except Exception as error:  # noqa: BLE001 (the picture is stored; its traceback says no more)
        logger.warning("Thumbnail not stored (%s).", type(error).__name__)
        return ""
