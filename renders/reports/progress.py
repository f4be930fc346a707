"""The progress of a render: its place in the line, and its time against the usual time."""

from dataclasses import dataclass
from datetime import timedelta
from statistics import median

from django.core.cache import cache
from django.utils import timezone

from renders.limits import spending
from renders.models import RenderJob
from renders.reports import standing
from renders.states import Status

# A usual time needs at least `FEWEST` renders, and is taken from the latest `SAMPLE`.
FEWEST, SAMPLE = 3, 100
MOST_BEFORE = 1_000
CACHE_SECONDS = 60


@dataclass(frozen=True)
class Progress:
    """A render's progress. `before` counts the renders sent before it; None if that is unknown."""

    elapsed: timedelta
    usual: timedelta | None = None
    before: int | None = None
    paused: bool = False
    """True if no render is sent now."""
    spent: bool = False
    """True if that is because the month's budget is spent."""

    @property
    def is_late(self) -> bool:
        """True if it takes longer than usual: then a progress bar would mislead."""
        return self.usual is not None and self.elapsed > self.usual


def progress_of(render: RenderJob) -> Progress | None:
    """The progress of a render; None once it has ended."""
    now = timezone.now()
    if render.is_terminal:
        return None
    if render.status == Status.SUBMITTED and render.submitted_at:
        return Progress(now - render.submitted_at, usual=usual_span(render.kind))
    before = None
    if render.status == Status.PENDING and render.turn is not None and not render.not_before:
        before = RenderJob.objects.before_in_line(render).order_by()[: MOST_BEFORE + 1].count()
    why = standing.why_paused(render.workspace) if render.status == Status.PENDING else None
    spent = why is not None and why.code == spending.CODE
    return Progress(now - render.created_at, before=before, paused=why is not None, spent=spent)


def usual_span(kind: str) -> timedelta | None:
    """The median time that Sume recently took for this kind, for all users; None if unknown."""
    key = f"renders:usual:{kind}"
    usual: float | None = cache.get(key)
    if usual is None:
        spans = RenderJob.objects.latest_spans(kind, SAMPLE)
        usual = median(span.total_seconds() for span in spans) if len(spans) >= FEWEST else 0.0
        cache.set(key, usual, CACHE_SECONDS)
    return timedelta(seconds=usual) if usual else None
