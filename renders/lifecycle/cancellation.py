"""Asks Sume to cancel a job. The poll chain learns from Sume how the job ended."""

import logging
from uuid import UUID

from django.utils import timezone

from renders import transitions
from renders.exceptions import BackOff, NotFound, Paused, Rejected, SumeError
from renders.lifecycle import claims
from renders.lifecycle.claims import Claim
from renders.lifecycle.steps import Step
from renders.limits import gate
from renders.models import RenderJob
from renders.states import RequestType
from renders.sume.clients import Clients
from renders.telemetry import log_context

logger = logging.getLogger(__name__)


def cancel(render_id: UUID, sume: Clients) -> list[Step]:
    """Ask Sume to cancel a job that it holds; returns the next steps.

    If Sume does not answer, the next poll schedules another try.
    """
    render = RenderJob.objects.uncanceled().filter(pk=render_id).first()
    if render is None:
        return []
    log_context.note(job=render.sume_job_id)
    claim = claims.claim_cancel(render.pk, render.workspace)
    if not claim.renders:
        return []
    try:
        sume(render.workspace).cancel(render.sume_job_id, f"render-cancel-{render.pk}")
        answer = "Sume canceled it."
    except (Paused, BackOff) as error:
        gate.pause(render.workspace, RequestType.WRITES, error)
        return claims.next_in_line(render.workspace)
    except SumeError as error:
        # Just after a job was accepted, Sume may answer 404 for it: that is no answer.
        if not isinstance(error, Rejected) or isinstance(error, NotFound):
            logger.warning("Asking to cancel render %s failed: %s.", render.pk, error.code)
            return _end_probe(claim, isinstance(error, NotFound))
        answer = f"Too late, or not possible: {error} ({error.code})"
    _record(render, answer)
    return _end_probe(claim, True)


def _end_probe(claim: Claim, answered: bool) -> list[Step]:
    """If this claim was a probe after a refusal, tell the gate whether Sume accepts the key."""
    if not claim.probe:
        return []
    (gate.passed if answered else gate.failed)(claim.workspace, RequestType.WRITES)
    return claims.next_in_line(claim.workspace)


def _record(render: RenderJob, answer: str) -> None:
    if transitions.record_cancel_answer(render.pk, timezone.now(), answer):
        return
    if RenderJob.objects.terminal().filter(pk=render.pk, cancel_answered_at=None).exists():
        # A poll recorded the end while this answer was in flight.
        transitions.log(render.pk, "cancel answered", answer)
