"""Renders that were over days ago, with files and a timeline."""

from datetime import timedelta
from typing import Any

from django.core.files.base import ContentFile
from django.utils import timezone

from renders.media.storage import storage
from renders.models import RenderEvent, RenderJob
from renders.states import Status
from tests.unit.test_models import stored

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
