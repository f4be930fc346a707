"""Ask Sume to cancel a job. What became of it is learned by the poll chain, from Sume."""

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
    """Ask once Sume holds the job; unanswered, the next poll has it asked again."""
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
        # Sume may not know everywhere yet what it has just accepted: 404 is no answer.
        if not isinstance(error, Rejected) or isinstance(error, NotFound):
            logger.warning("Asking to cancel render %s failed: %s.", render.pk, error.code)
            return _tried(claim, isinstance(error, NotFound))
        answer = f"Too late, or not possible: {error} ({error.code})"
    _record(render, answer)
    return _tried(claim, True)


def _tried(claim: Claim, answered: bool) -> list[Step]:
    """If it was the one that tries after a refusal: whether the key is taken again."""
    if not claim.probe:
        return []
    (gate.passed if answered else gate.failed)(claim.workspace, RequestType.WRITES)
    return claims.next_in_line(claim.workspace)


def _record(render: RenderJob, answer: str) -> None:
    if transitions.record_cancel_answer(render.pk, timezone.now(), answer):
        return
    if RenderJob.objects.terminal().filter(pk=render.pk, cancel_answered_at=None).exists():
        # Its end was read while the answer was on its way.
        transitions.log(render.pk, "cancel answered", answer)
