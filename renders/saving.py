"""The media of a completed render on their way home: one artifact at a time, then the finish.

A task of its own, in a queue of its own: however slowly a file comes, it holds up nothing but
other files. What became of an artifact is kept on the row at once, so a worker that dies is
followed by one that carries on; of two that store the same one, the first counts.
"""

import logging
from datetime import timedelta
from typing import Any
from uuid import UUID

from django.utils import timezone

from renders import counting, log_context, media
from renders.conf import conf
from renders.exceptions import MediaError
from renders.holding import holding
from renders.lease import Leases
from renders.models import RenderJob
from renders.pacing import back_off
from renders.steps import Step

logger = logging.getLogger(__name__)

# The first wait in such units (`DEFAULT_POLL_SECONDS`), a minute if nothing else is set: five
# tries span about ten minutes, so that what is paid for survives a short outage of the storage.
FIRST_WAIT = 4
# A message that the clock of another machine lets come early by this much is not early.
EARLY_SECONDS = 1.0


def save(render_id: UUID, leases: Leases) -> list[Step]:
    """Store the artifact that is due, if nobody else is at it. Returns what follows."""
    with holding(leases, str(render_id), conf.media_seconds) as free:
        return _save(render_id) if free else []


def _save(render_id: UUID) -> list[Step]:
    render = RenderJob.objects.unhandled().filter(pk=render_id).first()
    if render is None:
        return []
    log_context.note(job=render.sume_job_id)
    index = media.missing(render.artifacts) if conf.SAVE_MEDIA else None
    if index is None:
        return [Step("finish", render_id)]
    now = timezone.now()
    if render.next_poll_at and render.next_poll_at > now + timedelta(seconds=EARLY_SECONDS):
        return []  # a message too many: the next try waits for its time, or is under way
    # The sweep comes when the lease has run out; without leases, who looks does so at once.
    grace = 0.0 if conf.SCHEDULER == "database" else conf.grace_seconds
    ahead = timedelta(seconds=max(0.0, conf.media_seconds - grace))
    artifacts = render.artifacts
    begun = artifacts[index].get("begun", 0)  # tries that nobody has noted the end of
    artifacts[index]["begun"] = begun + 1
    if not RenderJob.objects.begin_media(render_id, render.next_poll_at, now + ahead, artifacts):
        return []
    if begun >= media.TRIES:
        words = f"Artifact not stored: {begun} workers died over it."
        return _failed(render, index, words, given_up=True)
    try:
        saved = media.save(str(render_id), index, render.artifacts[index])
    except MediaError as error:
        return _failed(render, index, str(error))
    except Exception as error:
        # A storage of the project's own. The traceback goes to the log; the try counts.
        logger.exception("Storing media failed for render %s.", render_id)
        words = f"Artifact not stored: the media storage failed ({type(error).__name__})."
        return _failed(render, index, words)
    counting.count("media", outcome="stored")
    steps = _note(render, index, None, saved.facts)
    _clear_away(render_id, index, saved.names)
    return steps


def _failed(render: RenderJob, index: int, words: str, *, given_up: bool = False) -> list[Step]:
    failures = media.TRIES if given_up else render.artifacts[index].get("failures", 0) + 1
    given_up = failures >= media.TRIES
    logger.warning(
        "Render %s %s: %s", render.pk, "keeps only a link" if given_up else "tries again", words
    )
    counting.count("media", outcome="given_up" if given_up else "postponed")
    what = "media not stored" if given_up else "media postponed"
    return _note(render, index, (what, words), {"failures": failures})


def wait_after(failures: int) -> float:
    """Seconds until the next try."""
    base = FIRST_WAIT * conf.DEFAULT_POLL_SECONDS
    return back_off(failures, base=base, longest=conf.MAX_POLL_SECONDS)


def _note(
    render: RenderJob, index: int, event: tuple[str, str] | None, facts: dict[str, Any]
) -> list[Step]:
    """Keep what became of this artifact; the next one, or the finish, follows."""
    artifacts = render.artifacts
    artifacts[index] |= facts
    following = media.missing(artifacts)
    failures = artifacts[following].get("failures", 0) if following is not None else 0
    wait = wait_after(failures) if failures else 0.0
    due = timezone.now() + timedelta(seconds=wait)
    if not RenderJob.objects.keep_artifact(render.pk, index, due, event, **facts):
        return []  # somebody stored it first, and goes on
    return [Step("finish" if following is None else "media", render.pk, wait)]


def _clear_away(render_id: UUID, index: int, names: set[str]) -> None:
    """Delete what this try has left in storage and the row does not name."""
    render = RenderJob.objects.filter(pk=render_id).first()
    artifacts = render.artifacts if render else []
    kept = media.names_of(artifacts[index]) if index < len(artifacts) else set()
    media.discard(names - kept)
