"""Bring a finished artifact into Django's storage: fetched, looked at, stored under our names."""

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
# Of one render. Of more, the rest stays at Sume's links.
MOST = 100
# Words for the type of an artifact that say a picture or clip; and those that say nothing.
SHOWN = ("image", "video", "picture", "photo", "clip", "avatar")
VAGUE = frozenset({"", "artifact", "asset", "file", "media", "output", "result"})


@dataclass
class Saved:
    """What is kept about a stored artifact, and the names of all that this try left in storage."""

    facts: dict[str, Any] = field(default_factory=dict)
    names: set[str] = field(default_factory=set)


def missing(artifacts: Sequence[Mapping[str, Any]]) -> int | None:
    """The index of the artifact to store next; None where each is stored or given up."""
    index = lacking(artifacts)
    return index if index is not None and artifacts[index].get("failures", 0) < TRIES else None


def lacking(artifacts: Sequence[Mapping[str, Any]]) -> int | None:
    """The index of the artifact that is not stored, with the fewest tries; None if there is none.

    Of more than `MOST`, only the first are stored.
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
    """The URLs of artifacts as a later read of the result names them; else those known."""
    places = Counter(_place(one) for one in fresh)
    urls = {_place(one): one["url"] for one in fresh if places[_place(one)] == 1}
    matched = [urls.get(_place(artifact)) for artifact in artifacts]
    if len(fresh) == len(artifacts):
        # Those whose place has changed follow each other as before.
        left = iter([one["url"] for one in fresh if one["url"] not in matched])
        matched = [url or next(left, None) for url in matched]
    return [
        Link(url or artifact.get("url") or "")
        for url, artifact in zip(matched, artifacts, strict=True)
    ]


def _place(artifact: Mapping[str, Any]) -> str:
    """An artifact's URL without what signs it."""
    return str(artifact.get("url") or "").partition("?")[0]


def is_shown(artifact: Mapping[str, Any], kind: str) -> bool:
    """Whether an artifact was declared a picture or clip: by itself, else by the render's kind."""
    told = str(artifact.get("type") or "").strip().lower()
    content_type = str(artifact.get("content_type") or "").strip().lower()
    if content_type.startswith(("image/", "video/")) or told in SHOWN:
        return True
    if content_type not in {"", content_types.UNKNOWN}:
        return False  # subtitles of a video, for instance
    if any(word in told for word in SHOWN):
        return True
    says_nothing = told in VAGUE and content_type in {"", content_types.UNKNOWN}
    return says_nothing and kind in Kind


def killed(begun: int) -> str:
    """Why nothing was stored, where so many tries have no end."""
    return f"Artifact not stored: {begun} workers died over it."


def names_of(artifact: Mapping[str, Any]) -> set[str]:
    """The names under which an artifact's file and thumbnail are stored."""
    return {artifact[name] for name in ("file", "thumbnail") if artifact.get(name)}


def save(
    render_id: str,
    index: int,
    artifact: Mapping[str, Any],
    kind: str = "",
    timeout: float | None = None,
) -> Saved:
    """Store one artifact, of a render of this kind, with its thumbnail.

    Raises `MediaError` (`LinkExpired` where a fresh URL may help), and whatever a storage raises.
    The names derive from the content, so a second try after a crash finds what the first one left.
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


def _check(head: bytes, encoding: str, artifact: Mapping[str, Any]) -> None:
    """Raises `MediaError` where this is certainly not the picture or clip that was declared."""
    found = content_types.other_than_media(head)
    # Its first tag may come after a long comment.
    drawn = found in {content_types.SVG, content_types.XML}
    if drawn and "svg" in str(artifact.get("content_type") or "").lower():
        return
    is_known = content_types.content_type(head[: content_types.HEAD_BYTES]) != content_types.UNKNOWN
    if encoding and not found and not is_known:
        found = f"data in the unknown encoding {encoding}"
    if found:
        words = f"Its server sent {found} instead of a picture or clip."
        raise MediaError(f"Artifact not stored: {words}")


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
    name = f"{base}-small{content_types.suffix(thumbnails.CONTENT_TYPE)}"
    try:
        return _store(name, ContentFile(drawn), len(drawn), saved)
    except Exception as error:  # noqa: BLE001 (the picture is stored; its traceback says no more)
        logger.warning("Thumbnail not stored (%s).", type(error).__name__)
        return ""
