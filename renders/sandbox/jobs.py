"""A job as the sandbox holds it, and the kinds of job there are."""

import uuid
from dataclasses import dataclass, field

QUEUED = "queued"
PROCESSING = "processing"
COMPLETED = "completed"
FAILED = "failed"
CANCELED = "canceled"
TERMINAL = frozenset({COMPLETED, FAILED, CANCELED})


@dataclass(frozen=True)
class JobKind:
    """What a job makes: Sume's job type, and the file that comes out."""

    job_type: str
    artifact_type: str
    file_name: str
    content_type: str


KINDS = {
    "image": JobKind("image_generation", "image", "picture.png", "image/png"),
    "avatar": JobKind("avatar_generation", "image", "picture.png", "image/png"),
    "video": JobKind("video_generation", "video", "clip.gif", "image/gif"),
    "avatar_video": JobKind("avatar_video", "video", "clip.gif", "image/gif"),
}


@dataclass(frozen=True)
class JobError:
    """Why a job failed, as `job.error` shows it."""

    code: str
    message: str
    public_reason: str


@dataclass(eq=False)
class Job:
    """One accepted request. Times are Unix seconds of the sandbox's clock."""

    kind: JobKind
    model: str
    prompt: str
    accepted_at: float
    amount_usd_micros: int
    webhook_url: str = ""
    avatar_handle: str = ""
    source_type: str = ""
    id: str = field(default_factory=lambda: f"job_{uuid.uuid4().hex}")
    status: str = QUEUED
    started_at: float | None = None
    finished_at: float | None = None
    ready_at: float | None = None
    result_seconds: float = 0.0
    error: JobError | None = None
    processing_seconds: float | None = None
    planned_error: JobError | None = None
    events: list[tuple[str, float]] = field(default_factory=list)

    @property
    def terminal(self) -> bool:
        """Whether the job has ended, however it ended."""
        return self.status in TERMINAL

    def result_ready(self, now: float) -> bool:
        """Whether the result can be fetched at `now`."""
        return self.status == COMPLETED and self.ready_at is not None and now >= self.ready_at

    def move(self, status: str, at: float) -> None:
        """Enter `status` at `at` and record the event."""
        self.status = status
        self.events.append((status, at))
        if status == PROCESSING:
            self.started_at = at
        elif status in TERMINAL:
            self.finished_at = at
            self.ready_at = at + self.result_seconds
