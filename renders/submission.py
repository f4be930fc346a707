"""Send one render to Sume: claim → POST → outcome.

The claim is one statement and the POST runs outside any transaction. Whatever the outcome, the
row goes on: to `submitted`, to `failed`, or back to `pending` for the same key and body later.
"""

import logging
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from django.db import transaction
from django.urls import reverse
from django.utils import timezone

from renders import (
    admission,
    bodies,
    checking,
    claims,
    counting,
    gate,
    log_context,
    signals,
    workspaces,
)
from renders.claims import Claim
from renders.client import SumeClient
from renders.conf import conf
from renders.connections import Clients
from renders.exceptions import (
    BackOff,
    KeyTaken,
    OutcomeUnknown,
    Paused,
    SumeError,
    UnknownWorkspace,
)
from renders.models import RenderJob, WebhookEvent
from renders.pacing import back_off, clamp
from renders.references import canonical
from renders.replies import Accepted
from renders.states import Kind, Sort, Status
from renders.steps import Step

logger = logging.getLogger(__name__)

# Waits of one render after a submit without a clear answer, in seconds.
BACK_OFF_SECONDS = 5.0
LONGEST_WAIT_SECONDS = 120.0
# A message that waits for longer could be delivered twice.
LONGEST_MESSAGE_SECONDS = 900.0


def submit(render_id: UUID, sume: Clients) -> list[Step]:
    """Send this render, or whoever's turn it is; returns what follows."""
    begun = begin(render_id)
    return [*begun.steps, *send(begun, sume)]


def begin(render_id: UUID) -> Claim:
    """Claim what is to be sent; its steps are to be taken at once, then it is to be sent."""
    if RenderJob.objects.cancel_unsent(render_id, timezone.now(), asked=True):
        # Canceled since, and Sume holds nothing.
        claim = claims.claim(render_id)  # the message says as well that somebody's turn has come
        return replace(claim, steps=[Step("finish", render_id), *claim.steps])
    return claims.claim(render_id)


def send(claim: Claim, sume: Clients) -> list[Step]:
    """Send what was claimed, with the key of its workspace; returns what follows."""
    steps: list[Step] = []
    for pk in claim.renders:
        with log_context.about(render=pk):
            if steps and gate.closed(claim.workspace, Sort.WRITES, timezone.now()):
                steps += _unsent(pk, claim)
            elif not claims.in_time(pk, claim):
                steps += [*_unsent(pk, claim), *claims.next_in_line(claim.workspace)]
            else:
                steps += _send(pk, claim, sume)
    return steps


def _send(pk: UUID, claim: Claim, sume: Clients) -> list[Step]:
    workspace = claim.workspace
    try:
        render = frozen(pk, claim.at)
        client = _client_for(render, claim, sume) if render else None
    except UnknownWorkspace:
        return _unsent(pk, claim)  # taken out of the settings just now
    except bodies.BadField as error:
        return [*_unsendable(pk, claim, error), *claims.next_in_line(workspace)]
    if render is None or client is None:
        return claims.next_in_line(workspace)
    try:
        accepted = client.submit(render.request_path, render.request_body, render.idempotency_key)
    except SumeError as error:
        counting.count("submits", workspace=workspace, outcome=error.outcome)
        return [*_refused(render, claim, error), *claims.next_in_line(workspace)]
    if accepted.adopted and RenderJob.objects.filter(sume_job_id=accepted.job_id).exists():
        words = f"Sume answered with job {accepted.job_id}, which belongs to another render."
        taken = KeyTaken(words, code="job_of_another_render", status=409)
        return [*_rejected(render, claim, taken), *claims.next_in_line(workspace)]
    log_context.note(job=accepted.job_id)
    steps = _accepted(render, accepted)
    outcome = "idempotency_hit" if accepted.idempotency_hit else "accepted"
    counting.count("submits", workspace=workspace, outcome=outcome)
    with transaction.atomic():
        gate.lock(workspace, Sort.WRITES)
        theirs = RenderJob.objects.filter(workspace=workspace, status=Status.SUBMITTING)
        admission.accepted(workspace, accepted.queue_capacity_remaining, theirs.count())
    if claim.probe:
        gate.passed(workspace, Sort.WRITES)
    return [*steps, *(claims.next_in_line(workspace) if claim.last else [])]


def _client_for(render: RenderJob, claim: Claim, sume: Clients) -> SumeClient:
    """The client with the render's own key; what the claim counted must be of its account, too."""
    if render.workspace != claim.workspace:
        raise AssertionError(f"Render {render.pk} was claimed for {claim.workspace}.")
    return sume(render.workspace)


def frozen(render_id: UUID, claimed_at: datetime) -> RenderJob | None:
    """The claimed row with its request fixed: what was once sent is what is sent again.

    None if the claim was lost: the sweep took it back, and the next claimer sends it. Raises
    `BadField` if the row, stored by an older release, cannot be sent.
    """
    render = RenderJob.objects.get(pk=render_id)
    if not render.request_body:
        by_webhook = workspaces.get(render.workspace).webhooks_wanted
        fields = bodies.body(render.kind, render.model, render.prompt, render.params)
        fields["mode"] = "async"
        if by_webhook:
            address = conf.PUBLIC_URL + reverse("renders:sume_webhook")
            fields |= {"mode": "webhook", "webhook_url": address}
        RenderJob.objects.freeze_request(
            render_id,
            claimed_at,
            bodies.SHAPES[Kind(render.kind)].path,
            # The same request has the same bytes, in a restored database as well.
            canonical(fields),
            by_webhook=by_webhook,
        )
        render.refresh_from_db()
    held = render.status == Status.SUBMITTING and render.claimed_at == claimed_at
    return render if held and render.request_body else None


def _accepted(render: RenderJob, accepted: Accepted) -> list[Step]:
    now = timezone.now()
    delay = clamp(
        accepted.next_poll_after,
        default=conf.DEFAULT_POLL_SECONDS,
        shortest=max(conf.MIN_POLL_SECONDS, _webhook_wait(render)),
        longest=conf.MAX_POLL_SECONDS,
    )
    facts: dict[str, Any] = {
        "job_id": accepted.job_id,
        "sume_status": accepted.sume_status,
        "hit": accepted.idempotency_hit,
        "next_poll_at": now + timedelta(seconds=delay),
    }
    won = RenderJob.objects.record_submitted(render.pk, now, **facts)
    if not won and not _known_after_all(render, now, facts):
        _unclaimed(render.pk, accepted.job_id)
        return []
    logger.info("Render %s submitted as Sume job %s.", render.pk, accepted.job_id)
    render.refresh_from_db()
    waited = (now - render.created_at).total_seconds()
    counting.observe("stage_duration_seconds", waited, stage="pending")
    signals.render_submitted.send_robust(sender=RenderJob, render=render)
    steps: list[Step] = []
    events = WebhookEvent.objects.about(render.workspace, accepted.job_id)
    if render.by_webhook and events.exists():
        _, steps = checking.ask([render.pk])  # its event was faster than the answer
    steps = steps or [Step("poll", render.pk, delay)]
    if render.cancel_requested_at:
        steps.append(Step("cancel", render.pk))
    return steps


def _webhook_wait(render: RenderJob) -> float:
    account = workspaces.find(render.workspace) if render.by_webhook else None
    return account.webhook_poll_seconds if account else 0.0


def _known_after_all(render: RenderJob, now: datetime, facts: dict[str, Any]) -> bool:
    """Accept a late answer for a row that had failed with an unknown outcome; True if it did."""
    with transaction.atomic():
        gate.lock(render.workspace, Sort.WRITES)  # nobody adds up what is spent meanwhile
        # The lock is that of a retry, which would have a key of its own.
        RenderJob.objects.select_for_update(no_key=True).filter(pk=render.pk).first()
        unknown = RenderJob.objects.resendable().filter(pk=render.pk).exists()
        return (
            unknown
            and RenderJob.objects.resend(render.pk, now)
            and RenderJob.objects.record_submitted(render.pk, now, **facts)
        )


def _unclaimed(render_id: UUID, job_id: str) -> None:
    """The answer came after another worker's. Same key, same job: nothing is owed."""
    if not RenderJob.objects.filter(pk=render_id, sume_job_id=job_id).exists():
        logger.error("Render %s has ended, yet Sume holds job %s for it.", render_id, job_id)
        RenderJob.objects.log(render_id, "late answer", f"Sume holds job {job_id} for it.")


def _refused(render: RenderJob, claim: Claim, error: SumeError) -> list[Step]:
    now = timezone.now()
    if isinstance(error, Paused | BackOff):
        until = gate.pause(claim.workspace, Sort.WRITES, error)
        # A moment after the others, so that one that is always refused stops nobody else.
        wait = (until - now).total_seconds() + back_off(render.submit_attempts, base=1, longest=60)
    elif isinstance(error, OutcomeUnknown):
        wait = back_off(render.submit_attempts, base=BACK_OFF_SECONDS, longest=LONGEST_WAIT_SECONDS)
        wait = max(wait, min(error.retry_after or 0, conf.MAX_PAUSE_SECONDS))
        if claim.probe:
            gate.failed(claim.workspace, Sort.WRITES)
    else:
        return _rejected(render, claim, error)
    logger.warning("Render %s put back for %.1f s: %s.", render.pk, wait, error.code)
    # Whatever a server says that fails in the middle: it may have taken the job before.
    unknown = isinstance(error, OutcomeUnknown) or error.status >= 500
    won = RenderJob.objects.release(
        render.pk,
        claim.at,
        not_before=now + timedelta(seconds=wait),
        code=error.code,
        message=str(error),
        unknown_at=now if unknown else None,
    )
    if won and RenderJob.objects.cancel_unsent(render.pk, now, asked=True):
        return [Step("finish", render.pk)]  # canceled meanwhile, and Sume holds nothing
    # Later than that, the message that waits for the end of the pause comes first.
    return [Step("submit", render.pk, min(wait, LONGEST_MESSAGE_SECONDS))] if won else []


def _unsent(pk: UUID, claim: Claim) -> list[Step]:
    """Put back one that the gate closed before: nothing was sent."""
    message = "The gate closed before it was sent."
    RenderJob.objects.release(
        pk, claim.at, not_before=timezone.now(), code="not_sent", message=message
    )
    return []


def _unsendable(pk: UUID, claim: Claim, error: bodies.BadField) -> list[Step]:
    """End one that was stored when its kind was asked for otherwise: Sume would refuse it."""
    words = (
        "An earlier release stored this render, but its request is not valid for its kind: "
        f"{error.field}: {error} It was not sent, and nothing was billed. Make a new render with "
        "this corrected."
    )
    won = RenderJob.objects.refuse(
        pk, claim.at, timezone.now(), code="invalid_request", message=words
    )
    return [Step("finish", pk)] if won else []


def _rejected(render: RenderJob, claim: Claim, error: SumeError) -> list[Step]:
    logger.warning("Render %s refused by Sume: %s.", render.pk, error.code)
    if claim.probe:
        gate.passed(claim.workspace, Sort.WRITES)  # it was this request, not the key
    won = RenderJob.objects.refuse(
        render.pk,
        claim.at,
        timezone.now(),
        code=error.code,
        message=str(error),
        key_taken=isinstance(error, KeyTaken),
    )
    return [Step("finish", render.pk)] if won else []
