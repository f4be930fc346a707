"""Ask Sume to cancel a job. What became of it is learned by the poll chain, from Sume."""

import logging
from uuid import UUID

from django.utils import timezone

from renders.client import SumeClient
from renders.exceptions import Rejected, SumeError
from renders.models import RenderJob
from renders.states import Status

logger = logging.getLogger(__name__)


def cancel(render_id: UUID, client: SumeClient) -> None:
    """Ask once Sume holds the job; unanswered, the next poll has it asked again."""
    render = RenderJob.objects.filter(
        pk=render_id,
        status=Status.SUBMITTED,
        cancel_requested_at__isnull=False,
        cancel_answered_at__isnull=True,
    ).first()
    if render is None:
        return
    try:
        client.cancel(render.sume_job_id, f"render-cancel-{render.pk}")
        answer = "Sume canceled it."
    except Rejected as error:
        answer = f"Too late, or not possible: {error} ({error.code})"
    except SumeError as error:
        logger.warning("Asking to cancel render %s failed: %s.", render.pk, error.code)
        return
    RenderJob.objects.record_cancel_answer(render.pk, timezone.now(), answer)
