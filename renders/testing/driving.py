"""Takes the steps of renders in this process, in the order of their times, without waiting.

A step is taken by the very task that a worker would run; what follows comes back through
`messages`. Where a step is for later, the rows are told that the time has passed.
"""

import heapq
import logging
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import timedelta
from itertools import count
from uuid import UUID

from django.db import transaction
from django.db.models import F
from django.test import TestCase
from django.utils import timezone

from renders.lifecycle.steps import Step
from renders.models import Gate, RenderEvent, RenderJob
from renders.reports import standing
from renders.schedulers import dispatch
from renders.states import Status

# More than a render takes, whatever the test makes Sume do.
MOST_STEPS = 200
# What a wait is counted by.
TIMES = ("not_before", "next_poll_at", "not_found_since")
GATE_TIMES = ("paused_until", "probe_until", "wake_at", "capacity_at")


class NotEnded(AssertionError):
    """A render did not come to its end; the message says where it stopped, and why."""


def drive(
    renders: Sequence[RenderJob], messages: list[Step], turn_on: Callable[[float], None]
) -> list[RenderJob]:
    """Take all steps of these renders; returns the fresh rows. Raises `NotEnded`.

    `messages` is where the steps that follow appear; `turn_on` turns Sume's clock on.
    """
    keys = [render.pk for render in renders]
    with _logged() as errors, _committed():
        waiting = _Waiting(keys, turn_on)
        waiting.put([step for row in _rows(keys) for step in _first_steps(row)])
        for _ in range(MOST_STEPS * len(keys)):
            step = waiting.next()
            if step is None:
                break
            known = len(messages)
            _take(step)
            if errors:
                row = RenderJob.objects.get(pk=step.render_id)
                raise NotEnded(_why(row)) from errors[0]
            waiting.put(messages[known:])
    rows = _rows(keys)
    for row in rows:
        if row.handled_at is None:
            raise NotEnded(_why(row))
    return rows


class _Waiting:
    """The steps that are still to be taken, and the time that passes until they are."""

    def __init__(self, keys: Sequence[UUID], turn_on: Callable[[float], None]) -> None:
        self._keys = keys
        self._turn_on = turn_on
        self._now = 0.0
        self._order = count()
        self._steps: list[tuple[float, int, Step]] = []

    def put(self, steps: Sequence[Step]) -> None:
        """Keep those of our renders; the others have a test of their own."""
        for step in steps:
            if step.render_id in self._keys:
                heapq.heappush(self._steps, (self._now + step.after, next(self._order), step))

    def next(self) -> Step | None:
        """The one whose time comes first, which is now."""
        if not self._steps:
            return None
        due, _, step = heapq.heappop(self._steps)
        if due > self._now:
            self._pass(due - self._now)
            self._now = due
        return step

    def _pass(self, seconds: float) -> None:
        wait = timedelta(seconds=seconds)
        ours = RenderJob.objects.filter(pk__in=self._keys)
        ours.update(**{name: F(name) - wait for name in TIMES})
        Gate.objects.update(**{name: F(name) - wait for name in GATE_TIMES})
        self._turn_on(seconds)


def _rows(keys: Sequence[UUID]) -> list[RenderJob]:
    found = RenderJob.objects.in_bulk(keys)
    for key in keys:
        if key not in found:
            raise NotEnded(f"Render {key} is not in the database: was it rolled back?")
    return [found[key] for key in keys]


def _first_steps(render: RenderJob) -> list[Step]:
    """Where this render stands, and so what comes next."""
    if render.is_terminal:
        return [Step("finish", render.pk)]
    if render.status == Status.PENDING:
        return [Step("submit", render.pk)]
    if render.status == Status.SUBMITTING:
        return []
    asked = render.cancel_requested_at and not render.cancel_answered_at
    due = render.next_poll_at or timezone.now()
    wait = max(0.0, (due - timezone.now()).total_seconds())
    return [*([Step("cancel", render.pk)] if asked else []), Step("poll", render.pk, wait)]


def _take(step: Step) -> None:
    """As a worker would that got the message."""
    task, arguments = dispatch.task_of(step)
    task(*arguments)


def _why(render: RenderJob) -> str:
    """What is known about a render that stands still."""
    last = RenderEvent.objects.filter(render=render).order_by("at", "pk").last()
    told = [f"Render {render.pk} is {render.status}, and nothing moves it on."]
    if render.status == Status.SUBMITTING:
        told.append("Somebody claimed it and has not sent it.")
    elif render.is_terminal:
        told = [f"Render {render.pk} is {render.status}, and finishing it fails."]
    if last:
        told.append(f"Its timeline ends with: {last.what} {last.detail}".rstrip())
    for gate in standing.gates(render.workspace):
        if gate.closed:
            told.append(f"The gate for {gate.sort} is closed: {gate.reason}")
    return "\n".join(told)


@contextmanager
def _committed() -> Iterator[None]:
    """Inside a test's transaction nothing commits: do afterwards what waited for it."""
    connection = transaction.get_connection()
    known = len(connection.run_on_commit)
    with TestCase.captureOnCommitCallbacks(execute=True):
        yield
    del connection.run_on_commit[known:]


@contextmanager
def _logged() -> Iterator[list[BaseException]]:
    """The exceptions that the app logs, and lives through, meanwhile: a receiver's above all."""
    errors: list[BaseException] = []

    class Keeper(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            if record.exc_info and record.exc_info[1]:
                errors.append(record.exc_info[1])

    logger, keeper = logging.getLogger("renders"), Keeper()
    logger.addHandler(keeper)
    try:
        yield errors
    finally:
        logger.removeHandler(keeper)
