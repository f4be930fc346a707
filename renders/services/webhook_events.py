"""What Sume announces by webhook: kept, and its job read at once."""

from django.db import transaction

from renders import services, transitions
from renders.models import RenderJob, WebhookEvent
from renders.states import Status


def take(workspace: str, event_id: str, *, type: str, job_id: str) -> bool:
    """Keep an event of a workspace and have its job read at once; False if it came before.

    Kept and asked for in one transaction: an event that is known is never without its read.
    """
    with transaction.atomic():
        if not WebhookEvent.objects.record(workspace, event_id, type=type, job_id=job_id):
            return False
        if job_id and not _check_job(workspace, job_id, type):
            # The answer to its submit may just be written down: whoever writes it looks for
            # events afterwards, and here the row is looked for again.
            transaction.on_commit(lambda: _check_job(workspace, job_id, type), robust=True)
    return True


def _check_job(workspace: str, job_id: str, told: str) -> int:
    theirs = RenderJob.objects.filter(workspace=workspace, sume_job_id=job_id)
    waiting = theirs.filter(status=Status.SUBMITTED).pks(services.BATCH)
    for pk in waiting:
        transitions.log(pk, "webhook", told)
    return services.check_now(waiting)
