"""Stores the media of a completed render, one artifact at a time, before the render is finished.

If these tries fail, `late_media` continues once the render is handled.

Media have their own task and their own queue, so a slow download delays only other downloads. The
outcome of each artifact is recorded on the row at once, so if a worker dies, the next one carries
on. If two workers store the same artifact, the first one counts.
"""

import logging
from collections.abc import Sequence
from datetime import timedelta
from typing import Any
from uuid import UUID

from django.utils import timezone

from renders import transitions
from renders.conf import conf
from renders.coordination.leases import Leases, hold
from renders.lifecycle import late_media
from renders.lifecycle.media_fetching import Tried, attempt, clear_away
from renders.lifecycle.steps import Step
from renders.media import storing
from renders.models import RenderJob
from renders.sume.clients import Clients
from renders.sume.timing import back_off
from renders.telemetry import log_context, metrics

logger = logging.getLogger(__name__)

# The first wait, in units of `DEFAULT_POLL_SECONDS`: a minute by default. Five tries span about ten
# minutes, so a paid result survives a short outage of the storage.
FIRST_WAIT = 4
# A message that comes early by this much, by the clock of another machine, is not early.
EARLY_SECONDS = 1.0


def save(render_id: UUID, sume: Clients, leases: Leases) -> list[Step]:
    """Store the artifact that is due, unless another worker is storing it; returns what follows."""
    with hold(leases, str(render_id), conf.media_seconds) as free:
        return _save(render_id, sume) if free else []


def wait_after(failures: int) -> float:
    """Seconds until the next try."""
    base = FIRST_WAIT * conf.DEFAULT_POLL_SECONDS
    return back_off(failures, base=base, longest=conf.MAX_POLL_SECONDS)


def _save(render_id: UUID, sume: Clients) -> list[Step]:
    render = RenderJob.objects.unhandled().filter(pk=render_id).first()
    if render is None:
        return late_media.save(render_id, sume)
    log_context.note(job=render.sume_job_id)
    index = storing.missing(render.artifacts) if conf.SAVE_MEDIA else None
    if index is None:
        return [Step("finish", render_id)]
    now = timezone.now()
    if render.next_poll_at and render.next_poll_at > now + timedelta(seconds=EARLY_SECONDS):
        return []  # a duplicate message: the next try is scheduled, or running
    # The sweep repeats a try after the lease has expired; without leases, it is repeated at once.
    grace = 0.0 if conf.SCHEDULER == "database" else conf.grace_seconds
    ahead = timedelta(seconds=max(0.0, conf.media_seconds - grace))
    artifacts = render.artifacts
    begun = artifacts[index].get("begun", 0)  # tries whose end was never recorded
    artifacts[index]["begun"] = begun + 1
    if not transitions.begin_media(render_id, render.next_poll_at, now + ahead, artifacts):
        return []
    if begun >= storing.TRIES:
        return _failed(render, index, Tried(words=storing.killed(begun)), given_up=True)
    tried = attempt(render, index, sume)
    if tried.saved is None:
        return _failed(render, index, tried)
    metrics.count("media", outcome="stored")
    facts = tried.saved.facts
    steps = _note(render, index, None, tried.links, facts)
    if steps is None:
        # The render was handled meanwhile without this file: store it all the same.
        transitions.end_late_try(render_id, index, None, now, None, **facts)
    clear_away(render, index, tried.saved.names)
    return steps or []


def _failed(render: RenderJob, index: int, tried: Tried, *, given_up: bool = False) -> list[Step]:
    words = tried.words
    failures = storing.TRIES if given_up else render.artifacts[index].get("failures", 0) + 1
    given_up = failures >= storing.TRIES
    logger.warning(
        "Render %s %s: %s", render.pk, "keeps only a link" if given_up else "tries again", words
    )
    metrics.count("media", outcome="given_up" if given_up else "postponed")
    what = "media not stored" if given_up else "media postponed"
    return _note(render, index, (what, words), tried.links, {"failures": failures}) or []


def _note(
    render: RenderJob,
    index: int,
    event: tuple[str, str] | None,
    links: Sequence[str],
    facts: dict[str, Any],
) -> list[Step] | None:
    """Record this artifact's outcome; returns the step of the next artifact, or of the finish.

    None if another worker stored it first, and continues.
    """
    artifacts = render.artifacts
    artifacts[index] |= facts
    following = storing.missing(artifacts)
    failures = artifacts[following].get("failures", 0) if following is not None else 0
    wait = wait_after(failures) if failures else 0.0
    due = timezone.now() + timedelta(seconds=wait)
    if not transitions.keep_artifact(render.pk, index, due, event, links=links, **facts):
        return None
    return [Step("finish" if following is None else "media", render.pk, wait)]
