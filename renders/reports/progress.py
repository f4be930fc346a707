"""How far a render is: its place in the line, its time against the usual one."""

from dataclasses import dataclass
from datetime import timedelta
from statistics import median

from django.core.cache import cache
from django.utils import timezone

from renders.limits import spending
from renders.models import RenderJob
from renders.reports import standing
from renders.states import Status

# From fewer than these, nothing is usual.
FEWEST, SAMPLE = 3, 100
MOST_BEFORE = 1_000
CACHE_SECONDS = 60


@dataclass(frozen=True)
class Progress:
    """What is known. `before` is how many are sent first, None where that is not known."""

    elapsed: timedelta
    usual: timedelta | None = None
    before: int | None = None
    paused: bool = False
    """Nothing is sent now, this one neither."""
    spent: bool = False
    """For the month's budget is spent."""

    @property
    def is_late(self) -> bool:
        """Longer than usual: a bar would lie."""
        return self.usual is not None and self.elapsed > self.usual


def progress_of(render: RenderJob) -> Progress | None:
    """How far it is; None once it has ended."""
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
    """The median time that Sume took of late for this kind, whoever asked."""
    key = f"renders:usual:{kind}"
    known: float | None = cache.get(key)
    if known is None:
        spans = RenderJob.objects.latest_spans(kind, SAMPLE)
        known = median(span.total_seconds() for span in spans) if len(spans) >= FEWEST else 0.0
        cache.set(key, known, CACHE_SECONDS)
    return timedelta(seconds=known) if known else None
