"""One hop of a poll chain: lease → GET status → the next hop, or the end.

Redis keeps duplicates from reading; the database keeps them from writing: what a read learned
is written only where nobody has read since (`poll_count`), and only the winner goes on.
"""

import logging
import random
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from django.db.models import Q
from django.utils import timezone

from renders import admission, claims, gate
from renders.client import SumeClient
from renders.conf import conf
from renders.connections import REDIS_DOWN
from renders.exceptions import BackOff, Closed, NotFound, SumeError
from renders.lease import Leases
from renders.models import RenderJob
from renders.pacing import back_off, clamp
from renders.replies import JobStatus
from renders.states import Status
from renders.steps import Step

logger = logging.getLogger(__name__)


def poll(render_id: UUID, token: str | None, client: SumeClient, leases: Leases) -> list[Step]:
    """Read the job's status once, if it is due and nobody else reads it.

    `token` is the lease this hop was handed, None to take a free one, or that of a hop which
    waits where a read at once is asked for. Returns what follows.
    """
    hop = Hop(render_id, leases)
    if not hop.take(token):
        if token is not None or not RenderJob.objects.asked().filter(pk=render_id).exists():
            return []
        if not hop.overtake():
            # Somebody reads, perhaps since before it was asked for.
            return [Step("poll", render_id, conf.MIN_POLL_SECONDS)]
    render = RenderJob.objects.filter(pk=render_id).first()
    if render is None or render.status != Status.SUBMITTED:
        hop.release()
        return []
    early = (render.next_poll_at - timezone.now()).total_seconds() if render.next_poll_at else 0
    if early > 0:
        # Not asked for yet. This hop holds the lease now, so it carries the chain on. One
        # without a lease leaves that to the hop that named the time.
        return [hop.hand_on(early)] if hop.leased or early <= conf.MIN_POLL_SECONDS else []
    try:
        status = gate.read(lambda: client.status(render.sume_job_id))
    except Closed as closed:
        return _postponed(render, hop, closed)
    except SumeError as error:
        return _failed(render, hop, error)
    if status.ending and (status.ending != Status.COMPLETED or status.result_ready):
        return _ended(render, hop, status)
    return _running(render, hop, status)


class Hop:
    """The lease of one hop. Redis away: the hop goes on without one, and says so."""

    def __init__(self, render_id: UUID, leases: Leases) -> None:
        self._render_id = render_id
        self._name = str(render_id)
        self._leases = leases
        self._token: str | None = None

    @property
    def leased(self) -> bool:
        """Whether Redis keeps others from reading."""
        return self._token is not None

    def take(self, token: str | None) -> bool:
        """Whether this hop may read."""
        if token is None:
            return self._get(lambda life: self._leases.acquire(self._name, life))
        return self._get(lambda life: self._leases.swap(self._name, token, life))

    def overtake(self) -> bool:
        """Whether this hop may read in place of one that waits, whose token is spent then."""
        return self._get(lambda life: self._leases.overtake(self._name, life))

    def _get(self, lease: Callable[[float], str | None]) -> bool:
        try:
            self._token = lease(conf.grace_seconds)
        except REDIS_DOWN as error:
            self._without_lease(error)
            return True
        return self._token is not None

    def hand_on(self, wait: float) -> Step:
        """The next hop in `wait` seconds, with a fresh token if the lease is still ours."""
        token = None
        if self._token is not None:
            try:
                token = self._leases.hand_on(self._name, self._token, wait + conf.grace_seconds)
            except REDIS_DOWN as error:
                self._without_lease(error)
        return Step("poll", self._render_id, wait, token)

    def release(self) -> None:
        """Give the lease back; it runs out by itself otherwise."""
        if self._token is not None:
            try:
                self._leases.release(self._name, self._token)
            except REDIS_DOWN as error:
                self._without_lease(error)

    def _without_lease(self, error: Exception) -> None:
        logger.warning(
            "Redis unreachable (%s): render %s goes on without a lease.",
            type(error).__name__,
            self._render_id,
        )


def _postponed(render: RenderJob, hop: Hop, closed: Closed) -> list[Step]:
    """Reads pause for all: this chain goes on afterwards, at a moment of its own."""
    assert render.next_poll_at is not None  # noqa: S101 (a constraint says so)
    now = timezone.now()
    pause = (closed.until - now).total_seconds() if closed.until else 0.0
    wait = clamp(
        max(0.0, pause) + random.uniform(0.5, 1) * conf.DEFAULT_POLL_SECONDS,  # noqa: S311
        default=0,
        shortest=conf.MIN_POLL_SECONDS,
        longest=conf.MAX_POLL_SECONDS,
    )
    won = RenderJob.objects.postpone_read(
        render.pk, render.poll_count, render.next_poll_at, now + timedelta(seconds=wait)
    )
    return _go_on(render, hop, wait, won)


def _running(render: RenderJob, hop: Hop, status: JobStatus) -> list[Step]:
    now = timezone.now()
    # Rarely where an event will tell. If one has told, it is here before the reads know it.
    awaits = render.by_webhook and not (render.asked_at or status.ending)
    wait = clamp(
        status.next_poll_after,
        default=conf.DEFAULT_POLL_SECONDS,
        shortest=max(_shortest_wait(render, now), conf.webhook_poll_seconds if awaits else 0),
        longest=conf.MAX_POLL_SECONDS,
    )
    learned = {"sume_status": status.sume_status, "failed_reads": 0, "not_found_since": None}
    won = _record(render, now, wait, where=Q(asked_at=render.asked_at), asked_at=None, **learned)
    if not won:
        # Asked for since this read began, unless somebody else has read.
        wait = conf.MIN_POLL_SECONDS
        won = _record(render, now, wait, **learned)
    if won and status.sume_status != render.sume_status:
        RenderJob.objects.log(render.pk, "sume status", status.sume_status)
    return _go_on(render, hop, wait, won)


def _failed(render: RenderJob, hop: Hop, error: SumeError) -> list[Step]:
    now = timezone.now()
    since = (render.not_found_since or now) if isinstance(error, NotFound) else None
    if since and (now - since).total_seconds() > conf.NOT_FOUND_GRACE_SECONDS:
        return _lost(render, hop, now)
    wait = back_off(
        render.failed_reads + 1, base=conf.DEFAULT_POLL_SECONDS, longest=conf.MAX_POLL_SECONDS
    )
    if isinstance(error, BackOff):
        wait = max(wait, error.retry_after or 0)
    wait = clamp(
        wait, default=wait, shortest=_shortest_wait(render, now), longest=conf.MAX_POLL_SECONDS
    )
    logger.warning("Reading render %s failed (%s); again in %.1f s.", render.pk, error.code, wait)
    failures = render.failed_reads + 1
    won = _record(render, now, wait, failed_reads=failures, not_found_since=since)
    return _go_on(render, hop, wait, won)


def _record(render: RenderJob, now: datetime, wait: float, **learned: Any) -> bool:
    return RenderJob.objects.record_read(
        render.pk,
        render.poll_count,
        now,
        next_poll_at=now + timedelta(seconds=wait),
        **learned,
    )


def _shortest_wait(render: RenderJob, now: datetime) -> float:
    """Seconds; long for a job that Sume should have ended long ago."""
    overdue = conf.OVERDUE_HOURS * 3600
    if overdue and render.submitted_at and (now - render.submitted_at).total_seconds() > overdue:
        return conf.MAX_POLL_SECONDS
    return conf.MIN_POLL_SECONDS


def _go_on(render: RenderJob, hop: Hop, wait: float, won: bool) -> list[Step]:
    if not won:
        hop.release()  # somebody else has read meanwhile, and that chain goes on
        return []
    steps = [hop.hand_on(wait)]
    # Where no POST may be sent now, no message either: the next read looks again.
    unanswered = render.cancel_requested_at and not render.cancel_answered_at
    if unanswered and claims.cancels_left():
        steps.append(Step("cancel", render.pk))
    return steps


def _lost(render: RenderJob, hop: Hop, now: datetime) -> list[Step]:
    won = RenderJob.objects.end(
        render.pk,
        render.poll_count,
        now,
        Status.FAILED,
        sume_status=render.sume_status,
        code="job_not_found",
        message="Sume no longer knows this job. Look into your Sume account before you retry: "
        "a retry is a new job with a new bill.",
    )
    hop.release()
    return _after_the_end(render) if won else []


def _ended(render: RenderJob, hop: Hop, status: JobStatus) -> list[Step]:
    assert status.ending is not None  # noqa: S101 (the caller looked)
    completed = status.ending == Status.COMPLETED
    won = RenderJob.objects.end(
        render.pk,
        render.poll_count,
        timezone.now(),
        status.ending,
        sume_status=status.sume_status,
        code="" if completed else status.fault.code,
        message="" if completed else status.fault.message,
        # Sume refunds what failed or was canceled.
        cost=status.cost_usd_micros if completed else 0,
    )
    hop.release()
    if not won:
        return []
    logger.info("Render %s %s.", render.pk, status.ending)
    return _after_the_end(render)


def _after_the_end(render: RenderJob) -> list[Step]:
    """Finish it; and its place at Sume is free for the next in line."""
    admission.freed()
    return [Step("finish", render.pk), *claims.next_in_line()]
