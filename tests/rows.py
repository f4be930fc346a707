"""Rows that tests begin with: in any state, and long over, with files and a timeline."""

from datetime import UTC, datetime, timedelta
from typing import Any

from django.core.files.base import ContentFile
from django.db import connection
from django.utils import timezone

from renders.media.storage import storage
from renders.models import RenderEvent, RenderJob
from renders.states import Status

NOW = datetime(2026, 5, 4, 12, 0, 0, tzinfo=UTC)

_SENT = {"claimed_at": NOW, "sume_job_id": "job_1", "submitted_at": NOW, "next_poll_at": NOW}
_ENDED = {**_SENT, "finished_at": NOW}
FIELDS = {
    Status.PENDING: {},
    Status.SUBMITTING: {"claimed_at": NOW},
    Status.SUBMITTED: _SENT,
    Status.COMPLETED: _ENDED,
    Status.FAILED: _ENDED,
    Status.CANCELED: _ENDED,
}


def a_render(status=Status.PENDING, **fields) -> RenderJob:
    """A render that is not stored yet, possible in this state unless `fields` say otherwise."""
    return RenderJob(**{"prompt": "a fox", "status": status, **FIELDS.get(status, {}), **fields})


def stored(status=Status.PENDING, **fields) -> RenderJob:
    """A stored render in this state."""
    render = a_render(status, **fields)
    render.save()
    return render


def as_new():
    """Without what tests that were rolled back have left in the indexes: plans depend on it."""
    with connection.cursor() as cursor:
        cursor.execute("REINDEX TABLE renders_renderjob")


SIGNED = "https://media.example/a.png?X-Signature=hush"


def over(status: str = Status.COMPLETED, days: float = 100, **fields: Any) -> RenderJob:
    """A handled render that ended so long ago, with two lines in its timeline."""
    ended = timezone.now() - timedelta(days=days)
    times = {"created_at": ended, "finished_at": ended, "handled_at": ended}
    render = stored(status, **{**times, "next_poll_at": None, **fields})
    for what, detail in (("created", ""), (str(status), "words about the fox")):
        RenderEvent.objects.create(render=render, at=ended, what=what, detail=detail)
    return render


def pictured(days: float = 100, files: int = 1, **fields: Any) -> RenderJob:
    """A completed one, with pictures of 3 bytes and thumbnails of 2."""
    render = over(Status.COMPLETED, days, **fields)
    artifacts = []
    for index in range(files):
        base = f"renders/{render.pk}/{index}-abc"
        artifacts.append(
            {
                "type": "image",
                "content_type": "image/png",
                "url": SIGNED,
                "file": storage().save(f"{base}.png", ContentFile(b"PNG")),
                "thumbnail": storage().save(f"{base}-small.webp", ContentFile(b"WE")),
                "sha256": "abc",
                "bytes": 3,
            }
        )
    RenderJob.objects.filter(pk=render.pk).update(result={"artifacts": artifacts})
    render.refresh_from_db()
    return render


def files_in(folder: Any) -> list[str]:
    """The names of all files, and of all folders, below this one."""
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*"))
