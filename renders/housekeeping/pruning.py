"""Deletes old rows and files, a few at a time, so that no other process waits long.

Each batch is complete in itself: after a stop or a crash, the next run continues. Two runs at the
same time skip each other's rows.
"""

from collections.abc import Callable
from dataclasses import asdict, dataclass
from datetime import timedelta
from typing import Any
from uuid import UUID

from django.utils import timezone

from renders.conf import conf
from renders.housekeeping import removal
from renders.housekeeping.policy import KEEP_WEBHOOKS, Ages, Old, is_in, walk
from renders.models import ApiRequest, RenderEvent, RenderJob, WebhookEvent
from renders.models.querysets import OVER, RenderQuerySet

# After this many renders with files that cannot be deleted, the storage counts as unavailable.
MOST_FAILED = 100
# Timeline ids follow their times, except for entries closer than this many rows.
WINDOW = 5_000


@dataclass
class Pruned:
    """How many of each were deleted, or would be deleted."""

    renders: int = 0
    bills: int = 0
    """Renders of which only a line of the bill is left."""
    media: int = 0
    """Renders that are kept without their files."""
    files: int = 0
    bytes: int = 0
    events: int = 0
    webhooks: int = 0
    keys: int = 0
    drafts: int = 0
    task_results: int = 0
    failed: int = 0
    """Renders with files that the storage did not delete."""
    stopped: bool = False
    """True if the run ended before everything was deleted."""

    def __add__(self, other: "Pruned") -> "Pruned":
        counts, more = asdict(self), asdict(other)
        return Pruned(**{name: counts[name] + more[name] for name in counts})

    @property
    def rows(self) -> int:
        """All rows that were deleted or changed."""
        rows = self.renders + self.bills + self.media + self.events
        return rows + self.webhooks + self.keys + self.drafts + self.task_results


def prune() -> None:
    """Delete up to `SWEEP_BATCH` old webhook events, and as many old API idempotency keys."""
    now = timezone.now()
    batch = conf.SWEEP_BATCH
    WebhookEvent.objects.prune(now - KEEP_WEBHOOKS, batch)
    if conf.IDEMPOTENCY_HOURS:
        ApiRequest.objects.prune(now - timedelta(hours=conf.IDEMPOTENCY_HOURS), batch)


class Pruning:
    """One run. After each batch, `told` is called with its number of rows, then `stop`."""

    def __init__(
        self,
        ages: Ages,
        *,
        batch: int,
        told: Callable[[int], object] = lambda rows: None,
        stop: Callable[[], bool] = lambda: False,
    ) -> None:
        self._old = Old(ages)
        self._batch = batch
        self._report = told
        self._stop = stop
        self._failed: set[UUID] = set()
        self.done = Pruned()

    def run(self) -> Pruned:
        """Delete everything that is too old."""
        steps = (self._delete, self._strip, self._marked, self._media, self._events, self._others)
        for step in steps:
            if not self.done.stopped:
                step()
        return self.done

    def _going(self, rows: int) -> bool:
        """Report a batch of this many rows; True to go on."""
        if rows:
            self._report(rows)
        self.done.stopped = self._stop() or self.done.failed >= MOST_FAILED
        return not self.done.stopped

    def _marked(self) -> None:
        """Finish the deletions of files that an interrupted run began."""
        self._clear_all(removal.marked())

    def _delete(self) -> None:
        before = -1
        # Once an original is deleted, its retries no longer count as retries.
        while self.done.renders > before and not self.done.stopped:
            before = self.done.renders
            for part in self._old.parts:
                self._delete_part(removal.deletable(RenderJob.objects.filter(part)))

    def _delete_part(self, renders: RenderQuerySet) -> None:
        for pks in walk(renders, self._batch):
            rows, events = removal.delete(self._clear(pks))
            self.done.renders += rows
            self.done.events += events
            if not self._going(rows + events):
                return

    def _strip(self) -> None:
        for part in self._old.parts:
            rows = RenderJob.objects.filter(part, erased_at=None)
            for pks in walk(rows, self._batch):
                cleared = self._clear(pks)
                events = RenderEvent.objects.filter(render__in=cleared).count()
                stripped = removal.strip(cleared, timezone.now(), names=False)
                self.done.bills += len(stripped)
                self.done.events += events
                if not self._going(len(stripped) + events):
                    return

    def _media(self) -> None:
        self._clear_all(self._old.with_media())

    def _clear_all(self, renders: RenderQuerySet) -> None:
        for pks in walk(renders, self._batch):
            before = self.done.media
            self.done.media += len(self._clear(pks))
            if not self._going(self.done.media - before):
                return

    def _clear(self, pks: list[UUID]) -> list[UUID]:
        """Delete the files of these renders; returns those that have none left."""
        cleared = removal.clear(set(pks) - self._failed)
        self._failed.update(cleared.failed)
        self.done.files += cleared.files
        self.done.bytes += cleared.bytes
        self.done.failed = len(self._failed)
        return cleared.pks

    def _events(self) -> None:
        """Delete old timeline entries in the order of their ids: their times have no index."""
        if not self._old.ages.events:
            return
        last, before = 0, self._old.before(self._old.ages.events)
        rows = RenderEvent.objects.order_by("pk").values_list("pk", "at")
        while window := list(rows.filter(pk__gt=last)[:WINDOW]):
            if all(at >= before for _, at in window):
                return
            first, last = window[0][0], window[-1][0]
            old = self._old.events().filter(pk__gte=first, pk__lte=last)
            while deleted := _delete_some(old, self._batch):
                self.done.events += deleted
                if not self._going(deleted):
                    return

    def _others(self) -> None:
        sorts = {
            "webhooks": self._old.webhooks(),
            "keys": self._old.keys(),
            "drafts": self._old.drafts(),
            "task_results": self._old.task_results(),
        }
        for name, rows in sorts.items():
            while deleted := _delete_some(rows, self._batch):
                setattr(self.done, name, getattr(self.done, name) + deleted)
                if not self._going(deleted):
                    return


def foresee(ages: Ages, *, files: bool = True) -> Pruned:
    """Count what a run would delete now; files are optional. Changes nothing."""
    old = Old(ages)
    levels = old.deletable()
    stripped = old.to_strip()
    gone: list[RenderQuerySet] = [*levels, stripped]
    begun = removal.marked().filter(OVER).order_by()
    kept = old.with_media().filter(removing_at=None)
    events = old.events()
    count = Pruned(renders=sum(level.count() for level in levels), bills=stripped.count())
    count.events = sum(
        RenderEvent.objects.filter(render__in=rows.values("pk")).count() for rows in gone
    )
    for rows in gone:
        begun, kept = begun.filter(~is_in(rows)), kept.filter(~is_in(rows))
        events = events.filter(~is_in(rows, "render_id"))
    count.media = begun.count() + kept.count()
    count.events += events.count()
    count.webhooks, count.keys = old.webhooks().count(), old.keys().count()
    count.drafts, count.task_results = old.drafts().count(), old.task_results().count()
    for rows in [*gone, begun, kept] if files else []:
        holding = rows.filter(result__isnull=False).only("pk", "result")
        for render in holding.iterator(chunk_size=500):
            sizes = removal.files_of(render).values()
            count.files += len(sizes)
            count.bytes += sum(sizes)
    return count


def run_as_set(stop: Callable[[], bool]) -> Pruned:
    """Prune with the ages from the settings, and finish interrupted deletions."""
    ages = Ages.as_set()
    if not (ages.any or removal.marked().exists()):
        return Pruned()
    return Pruning(ages, batch=conf.SWEEP_BATCH, stop=stop).run()


def _delete_some(rows: Any, batch: int) -> int:
    pks = list(rows.values_list("pk", flat=True)[:batch])
    return rows.model._default_manager.filter(pk__in=pks).delete()[0] if pks else 0
