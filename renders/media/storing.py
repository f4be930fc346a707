"""Storing of finished artifacts in Django's storage: download, check, file and thumbnail."""

import hashlib
import logging
import tempfile
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, BinaryIO

from django.core.files import File
from django.core.files.base import ContentFile

from renders.conf import conf
from renders.exceptions import MediaError
from renders.media import content_types, thumbnails
from renders.media.downloads import download
from renders.media.storage import storage
from renders.redaction import Link
from renders.states import Kind

logger = logging.getLogger(__name__)

TRIES = 5
# Most artifacts stored of one render. The others keep only Sume's links.
MOST = 100
# An artifact's type with one of these words is a picture or clip; with a vague word, it may be.
SHOWN = ("image", "video", "picture", "photo", "clip", "avatar")
VAGUE = frozenset({"", "artifact", "asset", "file", "media", "output", "result"})


@dataclass
class Saved:
    """The facts about a stored artifact, and the names of all files that this try stored."""

    facts: dict[str, Any] = field(default_factory=dict)
    names: set[str] = field(default_factory=set)


def missing(artifacts: Sequence[Mapping[str, Any]]) -> int | None:
    """The index of the artifact to store next; None if each is stored or given up."""
    index = lacking(artifacts)
    return index if index is not None and artifacts[index].get("failures", 0) < TRIES else None


def lacking(artifacts: Sequence[Mapping[str, Any]]) -> int | None:
    """The index of the artifact without a file that has the fewest tries; None if there is none.

    Only the first `MOST` artifacts are stored.
    """
    tries = [
        (artifact.get("failures", 0), index)
        for index, artifact in enumerate(artifacts[:MOST])
        if not artifact.get("file")
    ]
    return min(tries)[1] if tries else None


def renewed(
    artifacts: Sequence[Mapping[str, Any]], fresh: Sequence[Mapping[str, Any]]
) -> list[str]:
    """The artifacts' URLs from a later read of the result; the old URL if that has none."""
    places = Counter(_place(item) for item in fresh)
    urls = {_place(item): item["url"] for item in fresh if places[_place(item)] == 1}
    matched = [urls.get(_place(artifact)) for artifact in artifacts]
    if len(fresh) == len(artifacts):
        # Artifacts whose path has changed are still in the same order.
        left = iter([item["url"] for item in fresh if item["url"] not in matched])
        matched = [url or next(left, None) for url in matched]
    return [
        Link(url or artifact.get("url") or "")
        for url, artifact in zip(matched, artifacts, strict=True)
    ]


def is_shown(artifact: Mapping[str, Any], kind: str) -> bool:
    """Whether an artifact is declared a picture or clip, by its own type or the render's kind."""
    declared = str(artifact.get("type") or "").strip().lower()
    content_type = str(artifact.get("content_type") or "").strip().lower()
    if content_type.startswith(("image/", "video/")) or declared in SHOWN:
        return True
    if content_type not in {"", content_types.UNKNOWN}:
        return False  # subtitles of a video, for instance
    if any(word in declared for word in SHOWN):
        return True
    vague = declared in VAGUE and content_type in {"", content_types.UNKNOWN}
    return vague and kind in Kind


def killed(begun: int) -> str:
    """The message for an artifact whose tries began this often without a recorded end."""
    return f"Artifact not stored: {begun} workers died over it."


def names_of(artifact: Mapping[str, Any]) -> set[str]:
    """The names of an artifact's file and thumbnail in storage."""
    return {artifact[name] for name in ("file", "thumbnail") if artifact.get(name)}


def save(
    render_id: str,
    index: int,
    artifact: Mapping[str, Any],
    kind: str = "",
    timeout: float | None = None,
) -> Saved:
    """Store one artifact of a render of this kind, with its thumbnail.

    Raises `MediaError` (`LinkExpired` if a fresh URL may help), and any error of the storage. Names
    derive from the content, so a second try after a crash reuses the files of the first one.
    """
    url = Link(artifact.get("url") or "")
    with tempfile.TemporaryFile() as file:
        try:
            encoding = download(
                url,
                file,
                timeout=timeout or conf.MEDIA_TIMEOUT_SECONDS,
                max_bytes=conf.MEDIA_MAX_BYTES,
                private=conf.private_hosts,
            )
        except MediaError as error:
            raise type(error)(f"Artifact not stored: {error}") from None
        size = file.tell()
        if not size:
            raise MediaError("Artifact not stored: Its file is empty.")
        file.seek(0)
        if is_shown(artifact, kind):
            _check(file.read(content_types.TEXT_BYTES), encoding, artifact)
            file.seek(0)
        head = file.read(content_types.HEAD_BYTES)
        content_type = content_types.content_type(head, str(artifact.get("content_type") or ""))
        file.seek(0)
        sha256 = hashlib.file_digest(file, "sha256").hexdigest()
        saved = Saved()
        base = f"renders/{render_id}/{index}-{sha256[:16]}"
        wanted = base + content_types.suffix(content_type)
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
    """Delete files that no render refers to; a file that cannot be deleted stays."""
    for name in names:
        try:
            storage().delete(name)
        except Exception as error:  # noqa: BLE001 (a storage may raise anything)
            logger.warning("A file that nobody needs stays in storage (%s).", type(error).__name__)


def _place(artifact: Mapping[str, Any]) -> str:
    """An artifact's URL without its query, which holds the signature."""
    return str(artifact.get("url") or "").partition("?")[0]


def _check(head: bytes, encoding: str, artifact: Mapping[str, Any]) -> None:
    """Raises `MediaError` if the file is certainly not the declared picture or clip."""
    other = content_types.other_than_media(head)
    # XML too: the SVG's first tag may come after a long comment.
    drawn = other in {content_types.SVG, content_types.XML}
    if drawn and "svg" in str(artifact.get("content_type") or "").lower():
        return
    is_known = content_types.content_type(head[: content_types.HEAD_BYTES]) != content_types.UNKNOWN
    if encoding and not other and not is_known:
        other = f"data in the unknown encoding {encoding}"
    if other:
        words = f"Its server sent {other} instead of a picture or clip."
        raise MediaError(f"Artifact not stored: {words}")


def _store(name: str, file: File, size: int, saved: Saved) -> str:
    """Store a file and return its name; a complete file left by a killed try is reused."""
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
    """Store the thumbnail and return its name; empty without one: an artifact needs none."""
    drawn = thumbnails.draw(file, content_type)
    if not drawn:
        return ""
    name = f"{base}-small{content_types.suffix(thumbnails.CONTENT_TYPE)}"
    try:
        return _store(name, ContentFile(drawn), len(drawn), saved)
    except Exception as error:  # noqa: BLE001 (the picture is stored; its traceback says no more)
        logger.warning("Thumbnail not stored (%s).", type(error).__name__)
        return ""
