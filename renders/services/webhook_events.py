"""Stores webhook events from Sume, and polls their jobs at once."""

from django.db import transaction

from renders import services, transitions
from renders.models import RenderJob, WebhookEvent
from renders.states import Status


def take(workspace: str, event_id: str, *, type: str, job_id: str) -> bool:
    """Store an event of a workspace and poll its job at once; False if it was delivered before.

    Both happen in one transaction, so a stored event always has its poll.
    """
    with transaction.atomic():
        if not WebhookEvent.objects.record(workspace, event_id, type=type, job_id=job_id):
            return False
        if job_id and not _check_job(workspace, job_id, type):
            # The answer to its submit may be written at this moment. That writer looks for events
            # afterwards, and here the row is looked for again after the commit.
            transaction.on_commit(lambda: _check_job(workspace, job_id, type), robust=True)
    return True


def _check_job(workspace: str, job_id: str, event_type: str) -> int:
    renders = RenderJob.objects.filter(workspace=workspace, sume_job_id=job_id)
    waiting = renders.filter(status=Status.SUBMITTED).pks(services.BATCH)
    for pk in waiting:
        transitions.log(pk, "webhook", event_type)
    return services.check_now(waiting)
