"""One try to store one artifact, with a fresh URL if the one on the row has expired."""

import logging
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from renders.conf import conf
from renders.exceptions import LinkExpired, MediaError, SumeError
from renders.limits import read_quota
from renders.media import storing
from renders.media.storing import Saved
from renders.models import RenderJob
from renders.sume.clients import Clients
from renders.sume.replies import JobResult

logger = logging.getLogger(__name__)

# Least time-out of a download after its URL was renewed.
LEAST_SECONDS = 1.0


@dataclass
class Tried:
    """What a try stored, or in words why it failed; and fresh URLs, if it read them."""

    saved: Saved | None = None
    words: str = ""
    links: Sequence[str] = field(default_factory=list)


def read_result(render: RenderJob, sume: Clients) -> JobResult:
    """Read the result again, which is free and renews its URLs. Raises `SumeError`."""
    name = render.workspace
    return read_quota.read(name, lambda: sume(name).result(render.sume_job_id))


def attempt(render: RenderJob, index: int, sume: Clients) -> Tried:
    """Try to store one artifact. If its URL has expired, read a fresh one and try that."""
    artifact, began = render.artifacts[index], time.monotonic()
    try:
        return Tried(storing.save(str(render.pk), index, artifact, render.kind))
    except LinkExpired as error:
        expired = str(error)
    except Exception as error:  # noqa: BLE001 (`_words` reports it, with its traceback)
        return Tried(words=_words(render, error))
    try:
        fresh = read_result(render, sume)
    except SumeError as error:
        why = f"{expired} Reading a fresh URL failed: {error} ({error.code})"
        return Tried(words=why)
    links = storing.renewed(render.artifacts, fresh.artifacts)
    left = conf.MEDIA_TIMEOUT_SECONDS - (time.monotonic() - began)
    return attempt_at(render, index, links, max(LEAST_SECONDS, left))


def attempt_at(
    render: RenderJob, index: int, links: Sequence[str], timeout: float | None = None
) -> Tried:
    """Try to store one artifact from its fresh URL."""
    artifact: dict[str, Any] = {**render.artifacts[index], "url": links[index]}
    try:
        saved = storing.save(str(render.pk), index, artifact, render.kind, timeout)
    except Exception as error:  # noqa: BLE001 (`_words` reports it, with its traceback)
        return Tried(words=_words(render, error), links=links)
    return Tried(saved, links=links)


def clear_away(render: RenderJob, index: int, names: set[str]) -> None:
    """Delete files of a try that the row does not name."""
    row = RenderJob.objects.filter(pk=render.pk).first()
    artifacts = row.artifacts if row else []
    kept = storing.names_of(artifacts[index]) if index < len(artifacts) else set()
    storing.discard(names - kept)


def _words(render: RenderJob, error: Exception) -> str:
    """Why nothing was stored. A storage may raise anything; its traceback goes to the log."""
    if isinstance(error, MediaError):
        return str(error)
    logger.error("Storing media failed for render %s.", render.pk, exc_info=error)
    why = f": {error.strerror}" if isinstance(error, OSError) and error.strerror else ""
    return f"Artifact not stored: the media storage failed ({type(error).__name__}{why})."
