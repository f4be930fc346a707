"""Bugs put in on purpose: the simulation has to find each of them.

Each is a context in which the code has the bug. They replace functions of `renders` from outside.
"""

import json
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any
from unittest import mock
from uuid import UUID

from django.db import transaction
from django.db.models import Q
from django.utils import timezone

from renders import transitions
from renders.coordination import leases
from renders.coordination.connections import REDIS_DOWN, redis_client, uses_redis
from renders.lifecycle import finishing, submission
from renders.limits import capacity
from renders.models import RenderJob
from renders.models.querysets import RenderQuerySet
from renders.states import TERMINAL, Status
from renders.sume.client import SumeClient
from renders.transitions.moves import move_to_end

Mutant = Callable[[], Any]


@contextmanager
def drop_the_poll_fence() -> Iterator[None]:
    """What a read learns is written, whichever read was recorded last."""

    def sequence_of(pk: UUID) -> int:
        row = RenderJob.objects.filter(pk=pk).values_list("poll_count", flat=True).first()
        return row or 0

    def record_read(pk: UUID, sequence: int, now: datetime, **learned: Any) -> bool:
        return _record_read(pk, sequence_of(pk), now, **learned)

    def end(pk: UUID, sequence: int, *args: Any, **learned: Any) -> bool:
        return _end(pk, sequence_of(pk), *args, **learned)

    with (
        mock.patch("renders.transitions.polling.record_read", record_read),
        mock.patch("renders.transitions.end", end),
    ):
        yield


@contextmanager
def reuse_a_token() -> Iterator[None]:
    """A lease is handed on with the token that it had."""

    def rotate(self: Any, script: Any, name: str, expected: str, does: str, life: float) -> Any:
        fresh = expected if len(expected) > 1 else leases._fresh(does)
        won = script(keys=[self._prefix + name], args=[expected, fresh, leases._millis(life)])
        return fresh if won else None

    with mock.patch.object(leases.Leases, "_rotate", rotate):
        yield


@contextmanager
def count_the_minute_in_redis_alone() -> Iterator[None]:
    """The POSTs of the last minute are known to Redis only."""
    load, entered, left = capacity.load, capacity.entered, capacity.writes_left

    def times(now: datetime) -> list[float]:
        kept = json.loads(redis_client().get("sume:minute") or "[]")
        return [at for at in kept if at > now.timestamp() - 62]

    def known(now: datetime) -> list[float] | None:
        try:
            return times(now) if uses_redis() else None
        except REDIS_DOWN:
            return None

    def counted_load(limits: Any, now: datetime) -> Any:
        usage, posts = load(limits, now), known(now)
        if posts is None:
            return usage
        most = capacity.most_sent(limits)
        full = now - timedelta(seconds=61) if len(posts) >= most else None
        return replace(usage, writes=len(posts), full_since=full)

    def counted_entered(gate: Any, count: int, probe: bool, now: datetime) -> None:
        entered(gate, count, probe, now)
        if (posts := known(now)) is not None:
            redis_client().set("sume:minute", json.dumps([*posts, *[now.timestamp()] * count]))

    def counted_left(limits: Any, now: datetime) -> int:
        posts = known(now)
        return left(limits, now) if posts is None else limits.writes_per_minute - len(posts)

    with (
        mock.patch.object(capacity, "load", counted_load),
        mock.patch.object(capacity, "entered", counted_entered),
        mock.patch.object(capacity, "writes_left", counted_left),
    ):
        yield


@contextmanager
def mark_handled_outside_the_receivers_transaction() -> Iterator[None]:
    """The receivers' effects are committed first."""

    def handle(render: RenderJob) -> None:
        render.refresh_from_db()
        if render.handled_at is None:
            with transaction.atomic():
                signal = finishing.SIGNALS[Status(render.status)]
                signal.send(sender=RenderJob, render=render)
            transitions.mark_handled(render.pk, timezone.now())

    with mock.patch.object(finishing, "_handle", handle):
        yield


@contextmanager
def free_the_place_before_the_answer_is_known() -> Iterator[None]:
    """A render that is being sent has no place yet."""

    def in_flight(workspace: str, now: datetime, most: int | None = None) -> int:
        rows = RenderJob.objects.filter(workspace=workspace, status=Status.SUBMITTED)
        return capacity.count(rows, most)

    with mock.patch.object(capacity, "in_flight", in_flight):
        yield


@contextmanager
def forget_the_frozen_body() -> Iterator[None]:
    """Each try builds a new request body."""
    frozen = submission.frozen

    def rebuilt(render_id: UUID, claimed_at: datetime) -> RenderJob | None:
        RenderJob.objects.filter(pk=render_id).update(request_body="")
        return frozen(render_id, claimed_at)

    with mock.patch.object(submission, "frozen", rebuilt):
        yield


@contextmanager
def resend_without_the_key() -> Iterator[None]:
    """Only the first try has the render's own key."""
    submit, tries = SumeClient.submit, Counter[str]()

    def keyless(self: SumeClient, path: str, body: str, key: str) -> Any:
        tries[key] += 1
        return submit(self, path, body, key if tries[key] == 1 else f"{key}-{tries[key]}")

    with mock.patch.object(SumeClient, "submit", keyless):
        yield


@contextmanager
def sweep_by_created_at() -> Iterator[None]:
    """A render counts as stuck by its age, not by when it was claimed."""

    def stuck(self: RenderQuerySet, now: datetime, age: float) -> RenderQuerySet:
        since = now - timedelta(seconds=age)
        return self.filter(status=Status.SUBMITTING, created_at__lt=since)

    def reap(pk: UUID, now: datetime, age: float) -> bool:
        return _reap(pk, now + timedelta(seconds=1), 0)

    with (
        mock.patch.object(RenderQuerySet, "stuck_submitting", stuck),
        mock.patch("renders.transitions.reap", reap),
    ):
        yield


@contextmanager
def settle_twice() -> Iterator[None]:
    """An end is written though the render has ended already."""

    def end(
        pk: UUID,
        sequence: int,
        now: datetime,
        status: str,
        *,
        sume_status: str,
        code: str = "",
        message: str = "",
        cost: int | None = None,
    ) -> bool:
        states = [Status.SUBMITTED, *TERMINAL]
        return move_to_end(
            pk, states, now, status, where=Q(), code=code, message=message, cost_usd_micros=cost
        )

    with mock.patch("renders.transitions.end", end):
        yield


@contextmanager
def take_a_refusal_after_an_unknown_outcome_for_a_failure() -> Iterator[None]:
    """Sume refuses a second try: the first one is forgotten."""

    def refuse(
        pk: UUID,
        claimed_at: datetime,
        now: datetime,
        *,
        code: str,
        message: str,
        key_taken: bool = False,
    ) -> bool:
        return move_to_end(
            pk,
            [Status.SUBMITTING],
            now,
            Status.FAILED,
            where=Q(claimed_at=claimed_at),
            code=code,
            message=message,
            cost_usd_micros=0,
        )

    with mock.patch("renders.transitions.refuse", refuse):
        yield


_record_read = transitions.polling.record_read
_end, _reap = transitions.end, transitions.reap
MUTANTS: dict[str, Mutant] = {
    mutant.__name__.replace("_", " "): mutant
    for mutant in (
        drop_the_poll_fence,
        reuse_a_token,
        count_the_minute_in_redis_alone,
        mark_handled_outside_the_receivers_transaction,
        free_the_place_before_the_answer_is_known,
        forget_the_frozen_body,
        resend_without_the_key,
        sweep_by_created_at,
        settle_twice,
        take_a_refusal_after_an_unknown_outcome_for_a_failure,
    )
}
