"""All steps of all renders in one process: without Celery, without Redis, by the table alone.

The reader takes due reads from the table. Every other step waits in this process until it is due.
`find` looks in the table for steps that another process left undone or a web process created.
Several processes share the work: only one of them claims each row.
"""

import logging
import queue
import time
from collections.abc import Callable, Collection, Sequence
from datetime import timedelta
from uuid import UUID

from django.db import close_old_connections
from django.utils import timezone

from renders import transitions
from renders.conf import conf, workspaces
from renders.coordination.leases import Unshared
from renders.housekeeping import pruning
from renders.lifecycle import cancellation, claims, finishing, media_saving, submission, sweep
from renders.lifecycle.steps import Step
from renders.limits import gate
from renders.models import RenderJob
from renders.models.outages import DATABASE_FAILS, in_words
from renders.schedulers.queues import TableQueue
from renders.schedulers.reader import Reader
from renders.schedulers.step_pool import StepPool
from renders.states import RequestType
from renders.sume.clients import Clients
from renders.telemetry import heartbeats, log_context, store

logger = logging.getLogger(__name__)

# The process that ended a render also finishes it; after this time, others do.
LEFT_SECONDS = 2.0
# Most steps of each kind that one look at the table returns.
BATCH = 20
# Threads that submit, cancel and finish, and threads for downloads, which may take long.
WORKERS = 8
SAVERS = 4
# How often the table is searched for work, unless a notification comes first.
LOOK_SECONDS = 0.5
TURN_SECONDS = 0.1
# Pause after a database outage.
REST_SECONDS = 1.0


class Runner:
    """Takes the steps of renders. `awakened` returns True if new work was announced."""

    def __init__(
        self, sume: Clients, *, slots: int, awakened: Callable[[], bool] = lambda: False
    ) -> None:
        self._sume = sume
        self._awakened = awakened
        self._reader = Reader(TableQueue(), sume, slots=slots, follow=self._put)
        self._workers = StepPool(self._take, WORKERS, "work")
        self._savers = StepPool(self._take, SAVERS, "save")
        self._early: queue.SimpleQueue[Step] = queue.SimpleQueue()
        self._look_at = self._sweep_at = 0.0
        self._pulse = heartbeats.Pulse(heartbeats.RUNRENDERS)

    @property
    def busy(self) -> int:
        """Number of reads and other steps running now."""
        return self._reader.busy + self._workers.busy + self._savers.busy

    def turn(self) -> None:
        """Do what is due now. Survives a database outage."""
        try:
            self._look()
            self._start()
            self._reader.turn(0.0 if self._workers.busy else self._patience())
            self._collect(TURN_SECONDS / 10)
            self._pulse.beat()
        except DATABASE_FAILS as error:
            logger.warning("%s; again in a moment.", in_words(error))
            close_old_connections()
            time.sleep(REST_SECONDS)

    def finish(self, until: float) -> bool:
        """Begin nothing more and wait for running steps; True if all of them ended.

        `until` is on the monotonic clock.
        """
        done = self._reader.finish(until)
        while (self._workers.busy or self._savers.busy) and time.monotonic() < until:
            self._collect(TURN_SECONDS)
        store.flush()
        return done and not self.busy

    def _patience(self) -> float:
        """Seconds in which no step but a read can begin, at most `TURN_SECONDS`."""
        first = min(self._workers.next_at, self._savers.next_at, self._look_at)
        return max(0.0, min(TURN_SECONDS, first - time.monotonic()))

    def _put(self, steps: Sequence[Step]) -> None:
        for step in steps:
            if step.do != "poll":  # the reader finds it in the table
                (self._savers if step.do == "media" else self._workers).put(step)
        # Other processes that look for stopped renders must leave these to this one.
        if ours := [step.render_id for step in steps if step.do in {"finish", "media"}]:
            transitions.mark_swept(ours, timezone.now())

    def _look(self) -> None:
        now = time.monotonic()
        if now >= self._sweep_at:
            self._sweep_at = now + conf.SWEEP_SECONDS
            self._put(sweep.sweep())
            heartbeats.note(heartbeats.SWEEP)
            pruning.prune()
        if now >= self._look_at or self._awakened():
            self._look_at = now + LOOK_SECONDS
            starting = self._workers.all_of("submit")
            free = {"finishes": self._workers.free, "saves": self._savers.free}
            self._put(find(starting=starting, **free))

    def _start(self) -> None:
        while not self._early.empty():
            self._put([self._early.get()])
        self._workers.start()
        self._savers.start()

    def _collect(self, seconds: float) -> None:
        """Queue what follows completed steps. The wait keeps the loop from spinning meanwhile."""
        first, second = self._workers, self._savers
        if not first.busy:
            first, second = second, first
        self._put(first.collect(seconds if first.busy else 0.0))
        self._put(second.collect(0.0))

    def _take(self, step: Step) -> tuple[Step, list[Step]]:
        """Take one step, in a thread. An exception is logged, and the sweep repeats the step."""
        with log_context.about(render=step.render_id, task=step.do):
            try:
                close_old_connections()
                return step, self._do(step)
            except Exception:
                logger.exception("The step %s of render %s failed.", step.do, step.render_id)
                return step, []
            finally:
                close_old_connections()

    def _do(self, step: Step) -> list[Step]:
        if step.do == "submit":
            claim = submission.begin(step.render_id)
            for following in claim.steps:
                self._early.put(following)  # the next one starts while this one is in flight
            return submission.send(claim, self._sume)
        if step.do == "cancel":
            return cancellation.cancel(step.render_id, self._sume)
        transitions.mark_swept([step.render_id], timezone.now())  # it may have waited
        if step.do == "media":
            return media_saving.save(step.render_id, self._sume, Unshared())
        return finishing.finish(step.render_id, self._sume, Unshared())


def find(
    *, starting: Collection[UUID] = (), finishes: int = BATCH, saves: int = BATCH
) -> list[Step]:
    """Steps, except reads, that a process left undone or a web process created.

    Each unfinished one goes to one caller only. `starting`: renders that are being sent now; each
    starts the next of its workspace. In all other workspaces, this starts the first. `finishes`,
    `saves`: how many finish and media steps can begin now.
    """
    now = timezone.now()
    renders = RenderJob.objects
    patience = timedelta(seconds=conf.grace_seconds)
    steps: list[Step] = []
    sending = renders.filter(pk__in=list(starting)).values_list("workspace", flat=True)
    served = set(sending) if starting else set()
    for workspace in workspaces.names():
        if workspace not in served and not claims.closed(workspace, now):
            steps += [Step("submit", pk) for pk in claims.line(workspace, now).pks(1)]
    unfinished = renders.unhandled_late(now, LEFT_SECONDS).finishable(workspaces.names())
    unfinished = unfinished.not_swept_since(now - patience)
    for pk in unfinished.order_by("next_poll_at").pks(min(BATCH, finishes)):
        if unfinished.filter(pk=pk).update(swept_at=now):
            steps.append(Step("finish", pk))
    if conf.SAVE_MEDIA and saves:
        readable = [
            name for name in workspaces.names() if not gate.closed(name, RequestType.READS, now)
        ]
        late = renders.media_due(now, readable).not_swept_since(now - patience)
        for pk in late.order_by("media_due_at").pks(min(BATCH, saves)):
            if late.filter(pk=pk).update(swept_at=now):
                steps.append(Step("media", pk))
    uncanceled = renders.uncanceled().not_swept_since(now - patience)
    unasked = uncanceled.not_asked_to_cancel_since(now - patience)
    # Only workspaces in which a POST may be sent now: the others would fill the batch.
    free = [name for name in unasked.their_workspaces() if claims.cancels_left(name)]
    for pk in unasked.filter(workspace__in=free).pks(BATCH) if free else []:
        if uncanceled.filter(pk=pk).update(swept_at=now):
            steps.append(Step("cancel", pk))
    return steps
