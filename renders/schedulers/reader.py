"""Reads many jobs at once: takes what is due, asks Sume in threads, writes the answers down.

The threads do nothing but wait for Sume. Database and Redis are asked by the one who calls
`turn`, for many renders in one command, so a process needs one connection to each however many
reads are under way.
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

# Rows that one statement takes, or writes.
BATCH = 100
# What becomes due, and what is answered, within this time is taken, and written, together.
GATHER_SECONDS = 0.02
# Reads that are not allowed now come back after so long, or sooner.
LONGEST_REST_SECONDS = 5.0
SHORTEST_REST_SECONDS = 0.25


@dataclass(frozen=True)
class _Asked:
    held: LeasedRender
    probe: bool
    client: SumeClient
    """That of the render's own workspace."""


@dataclass(frozen=True)
class _Answered:
    asked: _Asked
    answer: Answer
    at: datetime


class Reader:
    """Up to `slots` reads under way. `follow` has the steps taken that follow a read."""

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
        self._under_way: set[UUID] = set()
        self._look_at = self._write_at = 0.0  # on the monotonic clock
        self._resting: dict[str, float] = {}  # workspaces that may not be read until then

    @property
    def busy(self) -> int:
        """How many reads are under way."""
        return self._threads.busy

    @property
    def next_due(self) -> float | None:
        """When the next read is due, as far as known (Unix seconds); None: nothing waits."""
        return self._queue.next_due

    def turn(self, longest: float, *, take: bool = True) -> int:
        """Begin what is due, write down what is answered; returns how many were.

        Waits at most `longest` seconds for something to do. Raises what the database raises.
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
        found = self._threads.get(wait, 1)
        if not found:
            return 0
        if self._threads.busy:
            time.sleep(max(0.0, self._write_at - time.monotonic()))
        self._write_at = time.monotonic() + GATHER_SECONDS
        found += self._threads.get(0, BATCH - 1)
        self._write(found)
        return len(found)

    def finish(self, until: float) -> bool:
        """Take nothing more, and wait for what is under way; whether all of it is written down.

        `until` is on the monotonic clock.
        """
        whole = True
        try:
            while self._threads.busy and time.monotonic() < until:
                try:
                    self.turn(0.1, take=False)
                except DATABASE_FAILS as error:
                    logger.warning("%s.", in_words(error))
                    close_old_connections()
                    whole = False
        finally:
            self._threads.end()
            store.flush()
        return whole and not self._threads.busy

    def _begin(self) -> None:
        limit, start = min(self._threads.free, BATCH), time.monotonic()
        self._resting = {name: until for name, until in self._resting.items() if until > start}
        held = self._queue.take(limit, self._resting.keys())
        due = self._queue.next_due
        wait = min(float("inf") if due is None else due - time.time(), self._queue.idle_seconds)
        self._look_at = start + (wait if len(held) == limit else max(wait, GATHER_SECONDS))
        # Redis went away or came back: what one queue gave, the other gives again.
        held = [one for one in held if one.render.pk not in self._under_way]
        theirs: dict[str, list[LeasedRender]] = {}
        for one in held:
            theirs.setdefault(one.render.workspace, []).append(one)
        while theirs:
            workspace = next(iter(theirs))
            try:
                rest, closed = self._read(workspace, theirs[workspace])
            except DATABASE_FAILS:
                left = [one for some in theirs.values() for one in some]
                self._queue.give_back(left, SHORTEST_REST_SECONDS)
                raise
            del theirs[workspace]
            if rest:
                self._rest(workspace, rest, closed, start)
        if self._resting and not set(workspaces.names()) - self._resting.keys():
            self._look_at = min(self._resting.values())

    def _read(
        self, workspace: str, held: list[LeasedRender]
    ) -> tuple[list[LeasedRender], Closed | None]:
        """Begin the reads of one workspace; those that are not allowed now, and why."""
        admission = read_quota.admit(workspace, len(held))
        if not admission.count:
            return held, admission.closed
        try:
            client = self._sume(workspace)
        except UnknownWorkspace as error:
            return held, error
        now = timezone.now()
        for one in held[: admission.count]:
            if since := one.render.next_poll_at:
                metrics.observe("poll_lateness_seconds", (now - since).total_seconds())
            self._under_way.add(one.render.pk)
            self._threads.put(_Asked(one, admission.probe, client))
        return held[admission.count :], admission.closed

    def _rest(
        self, workspace: str, rest: list[LeasedRender], closed: Closed | None, start: float
    ) -> None:
        """Give these back; the other workspaces are read meanwhile."""
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

    def _write(self, found: Sequence[_Answered]) -> None:
        self._under_way.difference_update(one.asked.held.render.pk for one in found)
        told: set[str] = set()
        for one in found:
            workspace = one.asked.held.render.workspace
            error = one.answer if isinstance(one.answer, SumeError) else None
            refused = read_quota.holds_all(error)
            if one.asked.probe or (refused and workspace not in told):
                read_quota.answered(workspace, one.asked.probe, error)
            if refused:
                told.add(workspace)  # one tells for all that were on their way
        following = record_many(
            [(one.asked.held.render, one.answer) for one in found], [one.at for one in found]
        )
        # What could not be written down is due again when the lease is over.
        written = [
            (one.asked.held, what)
            for one, what in zip(found, following, strict=True)
            if what is not None
        ]
        self._queue.settle([(held, what.wait) for held, what in written if _is_ours(what)])
        self._queue.let_go([held for held, what in written if not _is_ours(what)])
        if steps := [step for _, what in written for step in what.steps]:
            self._follow(steps)


def _is_ours(told: Next) -> bool:
    """Whether it is for us to say when this job is read next, or that it never is."""
    return told.ended or told.wait is not None
