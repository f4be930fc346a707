"""One hop of a poll chain: lease → GET status → the next hop, or the end.

Redis keeps duplicates from reading, and the database keeps them from writing: an answer is written
only if no other read has been recorded since (`poll_count`), and only the winner goes on.
"""

import logging
import random
from collections.abc import Callable
from datetime import timedelta
from uuid import UUID

from django.utils import timezone

from renders import transitions
from renders.conf import conf
from renders.coordination.connections import REDIS_DOWN
from renders.coordination.leases import Leases
from renders.exceptions import Closed, SumeError
from renders.lifecycle.poll_results import Answer, cancel_if_asked, record
from renders.lifecycle.steps import Step
from renders.limits import read_quota
from renders.models import RenderJob
from renders.states import Status
from renders.sume.clients import Clients
from renders.sume.timing import clamp
from renders.telemetry import log_context, metrics

logger = logging.getLogger(__name__)


def poll(render_id: UUID, token: str | None, sume: Clients, leases: Leases) -> list[Step]:
    """Read the job's status once, if it is due and not leased elsewhere; returns the next steps.

    `token` is the lease that this hop was handed. With None, it acquires a free lease; if a check
    was asked for, it may take the lease of a hop that only waits.
    """
    hop = Hop(render_id, leases)
    if not hop.take(token):
        metrics.count("lease_losses", reason="held" if token is None else "spent")
        if token is not None or not RenderJob.objects.asked().filter(pk=render_id).exists():
            return []
        if not hop.overtake():
            # A read is in flight, and may have begun before the check was asked for.
            return [Step("poll", render_id, conf.MIN_POLL_SECONDS)]
    render = RenderJob.objects.filter(pk=render_id).first()
    if render is None or render.status != Status.SUBMITTED:
        hop.release()
        # A finish gave way to this lease: repeat it.
        return [Step("finish", render_id)] if render and hop.leased and _finish_due(render) else []
    log_context.note(job=render.sume_job_id)
    early = (render.next_poll_at - timezone.now()).total_seconds() if render.next_poll_at else 0
    if early > 0:
        # Not due yet. This hop holds the lease now, so it carries the chain on. A hop without a
        # lease leaves that to the hop that set the time.
        return [hop.hand_on(early)] if hop.leased or early <= conf.MIN_POLL_SECONDS else []
    answer: Answer
    try:
        answer = read_quota.read(
            render.workspace, lambda: sume(render.workspace).status(render.sume_job_id)
        )
    except Closed as closed:
        return _postponed(render, hop, closed)
    except SumeError as error:
        answer = error
    metrics.observe("poll_lateness_seconds", -early)
    following = record(render, answer)
    return _go_on(hop, following.wait, following.steps)


class Hop:
    """The lease of one hop. If Redis is unreachable, the hop goes on without one and logs it."""

    def __init__(self, render_id: UUID, leases: Leases) -> None:
        self._render_id = render_id
        self._name = str(render_id)
        self._leases = leases
        self._token: str | None = None

    @property
    def leased(self) -> bool:
        """True if Redis keeps other hops from reading."""
        return self._token is not None

    def take(self, token: str | None) -> bool:
        """True if this hop may read."""
        if token is None:
            return self._get(lambda life: self._leases.acquire(self._name, life))
        return self._get(lambda life: self._leases.swap(self._name, token, life))

    def overtake(self) -> bool:
        """True if this hop may read in place of a waiting one, whose token is then spent."""
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
                if token is None:
                    metrics.count("lease_losses", reason="lost")
            except REDIS_DOWN as error:
                self._without_lease(error)
        return Step("poll", self._render_id, wait, token)

    def release(self) -> None:
        """Give the lease back; if that fails, it expires by itself."""
        if self._token is not None:
            try:
                self._leases.release(self._name, self._token)
            except REDIS_DOWN as error:
                self._without_lease(error)

    def _without_lease(self, error: Exception) -> None:
        metrics.count("lease_losses", reason="unreachable")
        logger.warning(
            "Redis unreachable (%s): render %s goes on without a lease.",
            type(error).__name__,
            self._render_id,
        )


def _finish_due(render: RenderJob) -> bool:
    due = render.next_poll_at
    return bool(render.is_terminal and not render.handled_at and due and due <= timezone.now())


def _postponed(render: RenderJob, hop: Hop, closed: Closed) -> list[Step]:
    """Continue this chain after a pause of all reads, at a random moment to spread the load."""
    assert render.next_poll_at is not None  # noqa: S101 (a constraint says so)
    now = timezone.now()
    # A pause without an end lasts until the settings change: there is no hurry.
    pause = (closed.until - now).total_seconds() if closed.until else conf.MAX_POLL_SECONDS
    wait = clamp(
        max(0.0, pause) + random.uniform(0.5, 1) * conf.DEFAULT_POLL_SECONDS,  # noqa: S311
        default=0,
        shortest=conf.MIN_POLL_SECONDS,
        longest=conf.MAX_POLL_SECONDS,
    )
    won = transitions.postpone_read(
        render.pk, render.poll_count, render.next_poll_at, now + timedelta(seconds=wait)
    )
    if not won:
        return _go_on(hop, None, [])
    return _go_on(hop, wait, cancel_if_asked(render))


def _go_on(hop: Hop, wait: float | None, steps: list[Step]) -> list[Step]:
    """Hand the lease on. Without a wait, release it: the job ended, or another chain goes on."""
    if wait is None:
        hop.release()
        return steps
    return [hop.hand_on(wait), *steps]
