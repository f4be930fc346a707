"""Renders in every state, for the tests of pages."""

from django.core.files.base import ContentFile
from django.utils import timezone

from renders import transitions
from renders.media.storage import storage
from renders.services import create_render
from renders.states import Status

SIGNED = "https://media.example/a.png?X-Signature=hush"


def submitted(user, prompt="A boat"):
    row = create_render(prompt, user=user)
    now = timezone.now()
    transitions.claim(row.pk, now, "default")
    transitions.record_submitted(
        row.pk, now, job_id="job-1", sume_status="processing", hit=False, next_poll_at=now
    )
    row.refresh_from_db()
    return row


def ended(user, status=Status.COMPLETED, prompt="A boat", artifacts=(), **facts):
    row = submitted(user, prompt)
    now = timezone.now()
    transitions.end(row.pk, 0, now, status, sume_status=status, **facts)
    transitions.store(row.pk, result={"artifacts": list(artifacts)})
    transitions.mark_handled(row.pk, now)
    row.refresh_from_db()
    return row


def picture(**changes):
    name = storage().save("a.png", ContentFile(b"PNG"))
    return {"type": "image", "content_type": "image/png", "url": SIGNED, "file": name} | changes
