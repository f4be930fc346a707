"""Reads many jobs at once: takes due renders, asks Sume in threads and records the answers.

The threads only wait for Sume. The caller of `turn` uses the database and Redis, for many renders
in one command. So a process needs one connection to each, however many reads are in flight.
"""

import logging
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from django.db import close_old_connections
from django.utils import timezone

from renders.conf import workspaces
from renders.exceptions import Closed, OutcomeUnknown, SumeError, UnknownWorkspace
from renders.lifecycle.poll_results import Answer, Next, record_many
from renders.lifecycle.steps import Step
from renders.limits import read_quota
from renders.models.outages import DATABASE_FAILS, in_words
from renders.schedulers.queues import LeasedRender, Queue
from renders.schedulers.step_pool import Threads
from renders.sume.client import SumeClient
from renders.sume.clients import Clients
from renders.telemetry import log_context, metrics, store

logger = logging.getLogger(__name__)

# Most rows that one statement takes or writes.
BATCH = 100
# Renders that become due within this time are taken together; answers are written together.
GATHER_SECONDS = 0.02
# Reads that are not allowed now are due again after a time between these two.
LONGEST_REST_SECONDS = 5.0
SHORTEST_REST_SECONDS = 0.25


@dataclass(frozen=True)
class _Asked:
    held: LeasedRender
    probe: bool
    client: SumeClient
    """The client of the render's workspace."""


@dataclass(frozen=True)
class _Answered:
    asked: _Asked
    answer: Answer
    at: datetime


class Reader:
    """Keeps up to `slots` reads in flight. `follow` schedules the steps that follow a read."""

    def __init__(
        self,
        queue: Queue,
        sume: Clients,
        *,
        slots: int,
        follow: Callable[[Sequence[Step]], None],
    ) -> None:
        self._queue = queue
        self._sume = sume
        self._follow = follow
        self._threads: Threads[_Asked, _Answered] = Threads(self._ask, slots, "read")
        self._in_flight: set[UUID] = set()
        self._look_at = self._write_at = 0.0  # on the monotonic clock
        self._resting: dict[str, float] = {}  # by workspace: not read before this time

    @property
    def busy(self) -> int:
        """Number of reads in flight."""
        return self._threads.busy

    @property
    def next_due(self) -> float | None:
        """When the next read is due, as far as known (Unix seconds); None: no read waits."""
        return self._queue.next_due

    def turn(self, longest: float, *, take: bool = True) -> int:
        """Begin due reads and record the answers that have come; returns the number of answers.

        Waits at most `longest` seconds for the first answer. Raises what the database raises.
        """
        store.flush_soon()
        if take and self._threads.free > 0 and time.monotonic() >= self._look_at:
            self._begin()
        wait = longest
        if take and self._threads.free > 0:
            wait = min(longest, max(0.0, self._look_at - time.monotonic()))
        if not self._threads.busy:
            time.sleep(wait)
            return 0
        answers = self._threads.get(wait, 1)
        if not answers:
            return 0
        if self._threads.busy:
            time.sleep(max(0.0, self._write_at - time.monotonic()))
        self._write_at = time.monotonic() + GATHER_SECONDS
        answers += self._threads.get(0, BATCH - 1)
        self._write(answers)
        return len(answers)

    def finish(self, until: float) -> bool:
        """Take no more renders and wait for reads in flight; True if every answer was recorded.

        `until` is on the monotonic clock.
        """
        all_recorded = True
        try:
            while self._threads.busy and time.monotonic() < until:
                try:
                    self.turn(0.1, take=False)
                except DATABASE_FAILS as error:
                    logger.warning("%s.", in_words(error))
                    close_old_connections()
                    all_recorded = False
        finally:
            self._threads.end()
            store.flush()
        return all_recorded and not self._threads.busy

    def _begin(self) -> None:
        limit, start = min(self._threads.free, BATCH), time.monotonic()
        self._resting = {name: until for name, until in self._resting.items() if until > start}
        held = self._queue.take(limit, self._resting.keys())
        due = self._queue.next_due
        wait = min(float("inf") if due is None else due - time.time(), self._queue.idle_seconds)
        self._look_at = start + (wait if len(held) == limit else max(wait, GATHER_SECONDS))
        # When Redis goes away or comes back, the other queue may give the same render again.
        held = [leased for leased in held if leased.render.pk not in self._in_flight]
        by_workspace: dict[str, list[LeasedRender]] = {}
        for leased in held:
            by_workspace.setdefault(leased.render.workspace, []).append(leased)
        while by_workspace:
            workspace = next(iter(by_workspace))
            try:
                rest, closed = self._read(workspace, by_workspace[workspace])
            except DATABASE_FAILS:
                left = [leased for batch in by_workspace.values() for leased in batch]
                self._queue.give_back(left, SHORTEST_REST_SECONDS)
                raise
            del by_workspace[workspace]
            if rest:
                self._rest(workspace, rest, closed, start)
        if self._resting and not set(workspaces.names()) - self._resting.keys():
            self._look_at = min(self._resting.values())

    def _read(
        self, workspace: str, held: list[LeasedRender]
    ) -> tuple[list[LeasedRender], Closed | None]:
        """Begin the reads of one workspace; returns those that are not allowed now, and why."""
        admission = read_quota.admit(workspace, len(held))
        if not admission.count:
            return held, admission.closed
        try:
            client = self._sume(workspace)
        except UnknownWorkspace as error:
            return held, error
        now = timezone.now()
        for leased in held[: admission.count]:
            if due := leased.render.next_poll_at:
                metrics.observe("poll_lateness_seconds", (now - due).total_seconds())
            self._in_flight.add(leased.render.pk)
            self._threads.put(_Asked(leased, admission.probe, client))
        return held[admission.count :], admission.closed

    def _rest(
        self, workspace: str, rest: list[LeasedRender], closed: Closed | None, start: float
    ) -> None:
        """Return these renders and pause their workspace; other workspaces are read meanwhile."""
        until = closed.until if closed else None
        left = (until - timezone.now()).total_seconds() if until else 0.0
        if isinstance(closed, UnknownWorkspace):
            left = LONGEST_REST_SECONDS
        seconds = min(max(left, SHORTEST_REST_SECONDS), LONGEST_REST_SECONDS)
        self._queue.give_back(rest, seconds)
        self._resting[workspace] = start + seconds

    def _ask(self, asked: _Asked) -> _Answered:
        answer: Answer
        render = asked.held.render
        with log_context.about(render=render.pk, job=render.sume_job_id):
            try:
                answer = asked.client.status(render.sume_job_id)
            except SumeError as error:
                answer = error
            except Exception as error:
                logger.exception("Reading render %s failed.", render.pk)
                words = f"The read failed ({type(error).__name__})."
                answer = OutcomeUnknown(words, code="no_answer")
        return _Answered(asked, answer, timezone.now())

    def _write(self, answers: Sequence[_Answered]) -> None:
        self._in_flight.difference_update(read.asked.held.render.pk for read in answers)
        refused_in: set[str] = set()
        for read in answers:
            workspace = read.asked.held.render.workspace
            error = read.answer if isinstance(read.answer, SumeError) else None
            refused = read_quota.holds_all(error)
            if read.asked.probe or (refused and workspace not in refused_in):
                read_quota.answered(workspace, read.asked.probe, error)
            if refused:
                refused_in.add(workspace)  # one refusal counts for all reads that were in flight
        following = record_many(
            [(read.asked.held.render, read.answer) for read in answers],
            [read.at for read in answers],
        )
        # An answer that could not be written is read again when the lease expires.
        written = [
            (read.asked.held, after)
            for read, after in zip(answers, following, strict=True)
            if after is not None
        ]
        self._queue.settle([(held, after.wait) for held, after in written if _continues(after)])
        self._queue.let_go([held for held, after in written if not _continues(after)])
        if steps := [step for _, after in written for step in after.steps]:
            self._follow(steps)


def _continues(after: Next) -> bool:
    """True if this reader decides when the job is read next, or that it has ended."""
    return after.ended or after.wait is not None
