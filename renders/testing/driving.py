"""Runs all steps of renders in this process, in order of their times, without waiting.

Each step is run by the task that a worker would run; following steps come back in `messages`.
If a step is due later, the rows' times are moved into the past.
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

# The limit of steps per render: more than any test needs.
MOST_STEPS = 200
# Columns that delay a render's next step; letting time pass moves them back.
TIMES = ("not_before", "next_poll_at", "not_found_since")
GATE_TIMES = ("paused_until", "probe_until", "wake_at", "capacity_at")


class NotEnded(AssertionError):
    """A render did not end; the message says where it stopped and why."""


def drive(
    renders: Sequence[RenderJob], messages: list[Step], turn_on: Callable[[float], None]
) -> list[RenderJob]:
    """Take all steps of these renders and return the fresh rows. Raises `NotEnded`.

    Following steps appear in `messages`; `turn_on` advances Sume's clock by seconds.
    """
    keys = [render.pk for render in renders]
    with _logged() as errors, _committed():
        waiting = _Waiting(keys, turn_on)
        waiting.put([step for row in _rows(keys) for step in _first_steps(row)])
        for _ in range(MOST_STEPS * len(keys)):
            step = waiting.next()
            if step is None:
                break
            before = len(messages)
            _take(step)
            if errors:
                row = RenderJob.objects.get(pk=step.render_id)
                raise NotEnded(_why(row)) from errors[0]
            waiting.put(messages[before:])
    rows = _rows(keys)
    for row in rows:
        if row.handled_at is None:
            raise NotEnded(_why(row))
    return rows


class _Waiting:
    """A queue of the remaining steps, which lets time pass until the next one is due."""

    def __init__(self, keys: Sequence[UUID], turn_on: Callable[[float], None]) -> None:
        self._keys = keys
        self._turn_on = turn_on
        self._now = 0.0
        self._order = count()
        self._steps: list[tuple[float, int, Step]] = []

    def put(self, steps: Sequence[Step]) -> None:
        """Add the steps of our renders; others belong to other tests."""
        for step in steps:
            if step.render_id in self._keys:
                heapq.heappush(self._steps, (self._now + step.after, next(self._order), step))

    def next(self) -> Step | None:
        """The step that is due first, after letting time pass until then; None if there is none."""
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
    rows = RenderJob.objects.in_bulk(keys)
    for key in keys:
        if key not in rows:
            raise NotEnded(f"Render {key} is not in the database: was it rolled back?")
    return [rows[key] for key in keys]


def _first_steps(render: RenderJob) -> list[Step]:
    """The next steps of a render, from its state."""
    if render.is_terminal:
        return [Step("finish", render.pk)]
    if render.status == Status.PENDING:
        return [Step("submit", render.pk)]
    if render.status == Status.SUBMITTING:
        return []
    to_cancel = render.cancel_requested_at and not render.cancel_answered_at
    due = render.next_poll_at or timezone.now()
    wait = max(0.0, (due - timezone.now()).total_seconds())
    return [*([Step("cancel", render.pk)] if to_cancel else []), Step("poll", render.pk, wait)]


def _take(step: Step) -> None:
    """Run the task for this step, as a worker would."""
    task, arguments = dispatch.task_of(step)
    task(*arguments)


def _why(render: RenderJob) -> str:
    """Why a render has stopped, as far as the database shows."""
    last = RenderEvent.objects.filter(render=render).order_by("at", "pk").last()
    sentences = [f"Render {render.pk} is {render.status}, and nothing moves it on."]
    if render.status == Status.SUBMITTING:
        sentences.append("Somebody claimed it and has not sent it.")
    elif render.is_terminal:
        sentences = [f"Render {render.pk} is {render.status}, and finishing it fails."]
    if last:
        sentences.append(f"Its timeline ends with: {last.what} {last.detail}".rstrip())
    for gate in standing.gates(render.workspace):
        if gate.closed:
            sentences.append(f"The gate for {gate.sort} is closed: {gate.reason}")
    return "\n".join(sentences)


@contextmanager
def _committed() -> Iterator[None]:
    """Run `on_commit` callbacks after the block: a test's own transaction never commits."""
    connection = transaction.get_connection()
    before = len(connection.run_on_commit)
    with TestCase.captureOnCommitCallbacks(execute=True):
        yield
    del connection.run_on_commit[before:]


@contextmanager
def _logged() -> Iterator[list[BaseException]]:
    """The exceptions that the app logs and survives in the block, above all those of receivers."""
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
