"""Ask Sume to cancel a job. What became of it is learned by the poll chain, from Sume."""

import logging
from uuid import UUID

from django.utils import timezone

from renders import claims, gate
from renders.client import SumeClient
from renders.exceptions import Paused, Rejected, SumeError
from renders.models import RenderJob
from renders.states import CANCELING, Sort, Status

logger = logging.getLogger(__name__)


def cancel(render_id: UUID, client: SumeClient) -> None:
    """Ask once Sume holds the job; unanswered, the next poll has it asked again."""
    render = RenderJob.objects.filter(
        pk=render_id,
        status=Status.SUBMITTED,
        cancel_requested_at__isnull=False,
        cancel_answered_at__isnull=True,
    ).first()
    if render is None or not claims.claim_write(render.pk, CANCELING):
        return
    try:
        client.cancel(render.sume_job_id, f"render-cancel-{render.pk}")
        answer = "Sume canceled it."
    except Rejected as error:
        answer = f"Too late, or not possible: {error} ({error.code})"
    except Paused as error:
        gate.pause(Sort.WRITES, error)
        return
    except SumeError as error:
        logger.warning("Asking to cancel render %s failed: %s.", render.pk, error.code)
        return
    RenderJob.objects.record_cancel_answer(render.pk, timezone.now(), answer)
