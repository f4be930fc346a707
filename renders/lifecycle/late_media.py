"""Stores media that the first tries could not store, for as long as Sume has the result.

The render is handled already, with Sume's link. `media_due_at` is when the next try is due: the
sweep, or `runrenders`, finds it. Each step stores one artifact. When no artifact is missing, the
receivers of `render_media_stored` run in the transaction that clears `media_due_at`.
"""

import logging
from datetime import datetime, timedelta
from uuid import UUID

from django.db import transaction
from django.utils import timezone

from renders import signals, transitions
from renders.conf import conf
from renders.exceptions import Closed, SumeError
from renders.lifecycle.media_fetching import Tried, attempt_at, clear_away, read_result
from renders.lifecycle.steps import Step
from renders.media import storing
from renders.models import RenderJob
from renders.models.querysets import LONGEST_MEDIA_WAIT
from renders.sume.clients import Clients
from renders.sume.timing import back_off, clamp
from renders.telemetry import log_context, metrics

logger = logging.getLogger(__name__)

# The waits between late tries double, from about 15 minutes to a day.
FIRST_WAIT_SECONDS = 15 * 60.0
LONGEST_WAIT_SECONDS = LONGEST_MEDIA_WAIT.total_seconds()
SHORTEST_WAIT_SECONDS = 5.0
RECEIVER_WAIT_SECONDS = 2.0
# HTTP status of a result that Sume no longer has.
GONE = frozenset({404, 410})
# A message that comes early by this much, by the clock of another machine, is not early.
EARLY_SECONDS = 1.0


def wait_after(failures: int) -> float:
    """Seconds until the next late try of an artifact; `failures` counts all its failed tries."""
    late = max(1, failures - storing.TRIES + 1)
    return back_off(late, base=FIRST_WAIT_SECONDS, longest=LONGEST_WAIT_SECONDS)


def plan(render: RenderJob) -> None:
    """Schedule the first late try if a render is handled while it lacks media."""
    index = storing.lacking(render.artifacts) if conf.SAVE_MEDIA else None
    if index is not None:
        wait = wait_after(render.artifacts[index].get("failures", 0))
        due = timezone.now() + timedelta(seconds=wait)
        if transitions.plan_late_media(render.pk, due):
            render.media_due_at = due


def save(render_id: UUID, sume: Clients) -> list[Step]:
    """Try to store one artifact, if a late try is due; returns the steps that follow at once.

    Call it with the render's lease held.
    """
    render = RenderJob.objects.late_media().filter(pk=render_id).first()
    now = timezone.now()
    if render is None or render.media_due_at is None or not conf.SAVE_MEDIA:
        return []
    early = now + timedelta(seconds=EARLY_SECONDS)
    if early < render.media_due_at <= now + LONGEST_MEDIA_WAIT:
        return []  # a duplicate message, or another worker is trying
    log_context.note(job=render.sume_job_id)
    index = storing.lacking(render.artifacts)
    if index is None:
        return _send_stored(render)
    artifacts = render.artifacts
    begun = artifacts[index].get("begun", 0)  # tries whose end was never recorded
    artifacts[index]["begun"] = begun + 1
    ahead = now + timedelta(seconds=conf.media_seconds)
    if not transitions.begin_late_media(render_id, render.media_due_at, now, ahead, artifacts):
        return []
    if begun >= storing.TRIES:
        return _failed(render, index, now, Tried(words=storing.killed(begun)))
    gone = False
    try:
        links = storing.renewed(render.artifacts, read_result(render, sume).artifacts)
    except SumeError as error:
        gone = _is_gone(render, error)
        if not gone:
            return _unread(render, index, now, error)
        # The link on the row may outlive the result.
        links = [str(artifact.get("url") or "") for artifact in render.artifacts]
    tried = attempt_at(render, index, links)
    if tried.saved is None:
        return _lost(render, index, now) if gone else _failed(render, index, now, tried)
    metrics.count("media", outcome="stored")
    artifacts[index] |= tried.saved.facts
    wait = _wait(artifacts, index)
    due = timezone.now() + timedelta(seconds=wait)
    facts = tried.saved.facts
    won = transitions.end_late_try(render_id, index, now, due, None, links=tried.links, **facts)
    clear_away(render, index, tried.saved.names)
    return _at_once(render, wait) if won else []


def _failed(render: RenderJob, index: int, begun_at: datetime, tried: Tried) -> list[Step]:
    """Record a failed try; due tries of other artifacts follow."""
    logger.warning("Render %s tries late again: %s", render.pk, tried.words)
    metrics.count("media", outcome="postponed")
    artifacts = render.artifacts
    artifacts[index]["failures"] = failures = artifacts[index].get("failures", 0) + 1
    wait = _wait(artifacts, index)
    won = transitions.end_late_try(
        render.pk,
        index,
        begun_at,
        timezone.now() + timedelta(seconds=wait),
        ("media postponed", tried.words),
        links=tried.links,
        failures=failures,
    )
    return _at_once(render, wait) if won else []


def _wait(artifacts: list[dict[str, object]], tried: int) -> float:
    """Seconds until the next step; 0 until each missing artifact has had its try of this round."""
    following = storing.lacking(artifacts)
    if following is None:
        return 0.0
    before, after = _failures(artifacts[tried]), _failures(artifacts[following])
    stored = bool(artifacts[tried].get("file"))
    if following != tried and (after < before or (stored and after == before)):
        return 0.0
    return wait_after(after)


def _failures(artifact: dict[str, object]) -> int:
    failures = artifact.get("failures", 0)
    return failures if isinstance(failures, int) else 0


def _at_once(render: RenderJob, wait: float) -> list[Step]:
    """The next step if it has no wait. The sweep finds delayed ones: no message lives for a day."""
    return [] if wait else [Step("media", render.pk)]


def _is_gone(render: RenderJob, error: SumeError) -> bool:
    """True if Sume has answered for the whole grace that it no longer has the result."""
    since = render.not_found_since
    grace = timedelta(seconds=conf.NOT_FOUND_GRACE_SECONDS)
    return error.status in GONE and (not grace or bool(since and timezone.now() - since >= grace))


def _lost(render: RenderJob, index: int, begun_at: datetime) -> list[Step]:
    words = "Sume no longer has the result, so what is missing cannot be stored any more."
    lost = ("media lost", words)
    if transitions.end_late_try(render.pk, index, begun_at, None, lost):
        logger.warning("Media of render %s are lost: %s", render.pk, words)
        metrics.count("media", outcome="lost")
    return []


def _unread(render: RenderJob, index: int, begun_at: datetime, error: SumeError) -> list[Step]:
    """Schedule another try after a result that could not be read."""
    now = timezone.now()
    if error.status in GONE:  # Sume may not know it everywhere at the moment
        since = render.not_found_since or now
        grace = timedelta(seconds=conf.NOT_FOUND_GRACE_SECONDS)
        due = now + min(grace, LONGEST_MEDIA_WAIT)
        transitions.end_late_try(render.pk, index, begun_at, due, None, not_found_since=since)
        return []
    if isinstance(error, Closed):  # Sume was not asked: this does not count as a try
        left = (error.until - now).total_seconds() if error.until else None
        wait = clamp(
            left,
            default=FIRST_WAIT_SECONDS,
            shortest=SHORTEST_WAIT_SECONDS,
            longest=FIRST_WAIT_SECONDS,
        )
        due = now + timedelta(seconds=wait)
        missing_since = render.not_found_since
        transitions.end_late_try(
            render.pk, index, begun_at, due, None, not_found_since=missing_since
        )
        return []
    words = f"Reading the result again failed: {error} ({error.code})"
    return _failed(render, index, begun_at, Tried(words=words))


def _send_stored(render: RenderJob) -> list[Step]:
    """Send `render_media_stored`, once: every artifact is stored."""
    due_at, failures = render.media_due_at, render.failed_reads
    try:
        with transaction.atomic():
            if not transitions.mark_media_stored(render.pk, due_at):
                return []
            render.refresh_from_db()
            signals.render_media_stored.send(sender=RenderJob, render=render)
    except Exception as error:
        # An error in a receiver of the project: the traceback goes to the log, the signal waits.
        metrics.count("finish_failures", reason="receiver")
        logger.exception("A receiver failed for render %s.", render.pk)
        wait = back_off(failures + 1, base=RECEIVER_WAIT_SECONDS, longest=conf.MAX_POLL_SECONDS)
        due = timezone.now() + timedelta(seconds=wait)
        words = f"A receiver failed ({type(error).__name__}); the log says more."
        won = transitions.postpone_media_stored(render.pk, due_at, due, words)
        return [Step("media", render.pk, wait)] if won else []
    return []
