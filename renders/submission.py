"""Send one render to Sume: claim → POST → outcome.

The claim is one statement and the POST runs outside any transaction. Whatever the outcome, the
row goes on: to `submitted`, to `failed`, or back to `pending` for the same key and body later.
"""

import json
import logging
from datetime import datetime, timedelta
from uuid import UUID

from django.utils import timezone

from renders import gate, signals
from renders.client import SumeClient
from renders.conf import conf
from renders.exceptions import BackOff, OutcomeUnknown, Paused, SumeError
from renders.models import RenderJob
from renders.pacing import back_off, clamp
from renders.replies import Accepted
from renders.states import Kind
from renders.steps import Step

logger = logging.getLogger(__name__)

# Source: Sume's public clients.
PATHS = {
    Kind.IMAGE: "/v1/images",
    Kind.VIDEO: "/v1/video-router/generate",
    Kind.AVATAR: "/v1/models/sume/avatar/v1.0/runs",
    Kind.AVATAR_VIDEO: "/v1/models/sume/avatar-video/v1.0/runs",
}
# Waits after a refusal that names no time, in seconds.
BACK_OFF_SECONDS = 5.0
PAUSE_SECONDS = 60.0
SHORTEST_WAIT_SECONDS = 1.0
LONGEST_WAIT_SECONDS = 900.0


def submit(render_id: UUID, client: SumeClient) -> list[Step]:
    """Send a pending render; returns what follows. Any other render is left alone."""
    claimed_at = timezone.now()
    if RenderJob.objects.cancel_unsent(render_id, claimed_at, asked=True):
        return [Step("finish", render_id)]  # canceled since, and Sume holds nothing
    if gate.closed_for():
        return []  # the row stays pending, and the sweep sends it once the gate is open
    if not RenderJob.objects.claim(render_id, claimed_at):
        return []
    render = frozen(render_id)
    if not render.request_body:
        return []  # taken for dead before anything was sent: whoever claims it next sends it
    try:
        accepted = client.submit(render.request_path, render.request_body, render.idempotency_key)
    except SumeError as error:
        return _refused(render, claimed_at, error)
    return _accepted(render, accepted)


def frozen(render_id: UUID) -> RenderJob:
    """The claimed row with its request fixed: what was once sent is what is sent again."""
    render = RenderJob.objects.get(pk=render_id)
    if not render.request_body:
        body = json.dumps(
            {**render.params, "model": render.model, "prompt": render.prompt, "mode": "async"}
        )
        RenderJob.objects.freeze_request(render_id, PATHS[Kind(render.kind)], body)
        render.refresh_from_db()
    return render


def _accepted(render: RenderJob, accepted: Accepted) -> list[Step]:
    now = timezone.now()
    delay = clamp(
        accepted.next_poll_after,
        default=conf.DEFAULT_POLL_SECONDS,
        shortest=conf.MIN_POLL_SECONDS,
        longest=conf.MAX_POLL_SECONDS,
    )
    won = RenderJob.objects.record_submitted(
        render.pk,
        now,
        job_id=accepted.job_id,
        sume_status=accepted.sume_status,
        hit=accepted.idempotency_hit,
        next_poll_at=now + timedelta(seconds=delay),
    )
    if not won:
        _unclaimed(render.pk, accepted.job_id)
        return []
    logger.info("Render %s submitted as Sume job %s.", render.pk, accepted.job_id)
    render.refresh_from_db()
    signals.render_submitted.send_robust(sender=RenderJob, render=render)
    steps = [Step("poll", render.pk, delay)]
    if render.cancel_requested_at:
        steps.append(Step("cancel", render.pk))
    return steps


def _unclaimed(render_id: UUID, job_id: str) -> None:
    """The answer came after another worker's. Same key, same job: nothing is owed."""
    if not RenderJob.objects.filter(pk=render_id, sume_job_id=job_id).exists():
        logger.error("Render %s has ended, yet Sume holds job %s for it.", render_id, job_id)
        RenderJob.objects.log(render_id, "late answer", f"Sume holds job {job_id} for it.")


def _refused(render: RenderJob, claimed_at: datetime, error: SumeError) -> list[Step]:
    now = timezone.now()
    if isinstance(error, Paused):
        wait = PAUSE_SECONDS
        gate.pause(wait, f"{error.code}: {error}")
    elif isinstance(error, BackOff):
        wait = error.retry_after or back_off(
            render.submit_attempts, base=BACK_OFF_SECONDS, longest=LONGEST_WAIT_SECONDS
        )
        wait = max(SHORTEST_WAIT_SECONDS, min(wait, LONGEST_WAIT_SECONDS))
        gate.pause(wait, f"{error.code}: {error}")
    elif isinstance(error, OutcomeUnknown):
        wait = back_off(render.submit_attempts, base=BACK_OFF_SECONDS, longest=LONGEST_WAIT_SECONDS)
    else:
        logger.warning("Render %s refused by Sume: %s.", render.pk, error.code)
        won = RenderJob.objects.refuse(
            render.pk, claimed_at, now, code=error.code, message=str(error)
        )
        return [Step("finish", render.pk)] if won else []
    logger.warning("Render %s put back for %.1f s: %s.", render.pk, wait, error.code)
    won = RenderJob.objects.release(
        render.pk,
        claimed_at,
        not_before=now + timedelta(seconds=wait),
        code=error.code,
        message=str(error),
        unknown_at=now if isinstance(error, OutcomeUnknown) else None,
    )
    if won and RenderJob.objects.cancel_unsent(render.pk, now, asked=True):
        return [Step("finish", render.pk)]  # canceled meanwhile, and Sume holds nothing
    return [Step("submit", render.pk, wait)] if won else []
