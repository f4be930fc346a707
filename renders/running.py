"""All steps of all renders in one process, by the table alone: no Celery, no Redis.

What is to be read is taken from the table by the reader. What else follows waits in this
process for its time; what another process left undone, or a web process made, is looked for.
Several processes share the work: each row is claimed by one.
"""

import logging
import queue
import time
from collections.abc import Callable, Sequence

from django.db import close_old_connections
from django.utils import timezone

from renders import (
    backlog,
    cancellation,
    finishing,
    log_context,
    pruning,
    pulse,
    saving,
    submission,
    sweep,
    tallies,
    transitions,
)
from renders.conf import conf
from renders.crew import Crew
from renders.due import TableQueue
from renders.lease import Unshared
from renders.outages import DATABASE_FAILS, in_words
from renders.reader import Reader
from renders.steps import Step
from renders.sume.clients import Clients

logger = logging.getLogger(__name__)

# Threads for what is sent and finished, and for downloads, which take as long as they take.
WORKERS = 8
SAVERS = 4
# How often the table is asked what there is to do, unless somebody wakes us up.
LOOK_SECONDS = 0.5
TURN_SECONDS = 0.1
# After an outage of the database.
REST_SECONDS = 1.0


class Runner:
    """The steps of renders. `awakened` tells whether somebody has something to do for us."""

    def __init__(
        self, sume: Clients, *, slots: int, awakened: Callable[[], bool] = lambda: False
    ) -> None:
        self._sume = sume
        self._awakened = awakened
        self._reader = Reader(TableQueue(), sume, slots=slots, follow=self._put)
        self._workers = Crew(self._take, WORKERS, "work")
        self._savers = Crew(self._take, SAVERS, "save")
        self._early: queue.SimpleQueue[Step] = queue.SimpleQueue()
        self._look_at = self._sweep_at = 0.0
        self._pulse = pulse.Pulse(pulse.RUNRENDERS)

    @property
    def busy(self) -> int:
        """How many reads and other steps are under way."""
        return self._reader.busy + self._workers.busy + self._savers.busy

    def turn(self) -> None:
        """Do what is due now. Lives through an outage of the database."""
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
        """Begin nothing more, wait for what is under way; whether all of it was done.

        `until` is on the monotonic clock.
        """
        done = self._reader.finish(until)
        while (self._workers.busy or self._savers.busy) and time.monotonic() < until:
            self._collect(TURN_SECONDS)
        tallies.flush()
        return done and not self.busy

    def _patience(self) -> float:
        """How long nothing but reads can happen."""
        first = min(self._workers.next_at, self._savers.next_at, self._look_at)
        return max(0.0, min(TURN_SECONDS, first - time.monotonic()))

    def _put(self, steps: Sequence[Step]) -> None:
        for step in steps:
            if step.do != "poll":  # the reader finds it in the table
                (self._savers if step.do == "media" else self._workers).put(step)
        # Others who look for what stopped shall leave it to us.
        if ours := [step.render_id for step in steps if step.do in {"finish", "media"}]:
            transitions.mark_swept(ours, timezone.now())

    def _look(self) -> None:
        now = time.monotonic()
        if now >= self._sweep_at:
            self._sweep_at = now + conf.SWEEP_SECONDS
            self._put(sweep.sweep())
            pulse.note(pulse.SWEEP)
            pruning.prune()
        if now >= self._look_at or self._awakened():
            self._look_at = now + LOOK_SECONDS
            starting = self._workers.all_of("submit")
            free = {"finishes": self._workers.free, "saves": self._savers.free}
            self._put(backlog.find(starting=starting, **free))

    def _start(self) -> None:
        while not self._early.empty():
            self._put([self._early.get()])
        self._workers.start()
        self._savers.start()

    def _collect(self, seconds: float) -> None:
        """Waits, so that nothing spins while something is under way."""
        first, second = self._workers, self._savers
        if not first.busy:
            first, second = second, first
        self._put(first.collect(seconds if first.busy else 0.0))
        self._put(second.collect(0.0))

    def _take(self, step: Step) -> tuple[Step, list[Step]]:
        """Take one step, in a thread; an exception is logged, and the sweep comes back to it."""
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
                self._early.put(following)  # the next one starts while this one is on its way
            return submission.send(claim, self._sume)
        if step.do == "cancel":
            return cancellation.cancel(step.render_id, self._sume)
        transitions.mark_swept([step.render_id], timezone.now())  # it may have waited
        if step.do == "media":
            return saving.save(step.render_id, self._sume, Unshared())
        return finishing.finish(step.render_id, self._sume, Unshared())
