"""Compares Sume's list of jobs with the rows: jobs that no row names, jobs unknown to Sume.

Reads both sides and changes neither. Sume's paging is not documented, so the list is read once.
"""

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial
from itertools import pairwise
from typing import TypeVar
from uuid import UUID

from django.utils import timezone

from renders.exceptions import Closed, NotFound, Rejected
from renders.limits import read_quota
from renders.models import RenderJob
from renders.models.querysets import HELD, RenderQuerySet
from renders.states import TERMINAL, Status
from renders.sume.clients import Clients
from renders.sume.replies import ListedJob

T = TypeVar("T")

BATCH = 500
# Longest wait for the read limit, which other processes may use up.
PATIENCE_SECONDS = 60.0
STEP_SECONDS = 0.05


@dataclass(frozen=True)
class AcceptedRender:
    """A render that Sume accepted."""

    pk: UUID
    job_id: str
    kind: str
    status: str


@dataclass(frozen=True)
class Comparison:
    """What Sume's list and the rows of one workspace say."""

    listed: int
    """Jobs in the list."""
    cut: bool
    """The list is as long as the limit: older jobs may be missing from it."""
    ends_at: datetime | None
    """When the last listed job was created, if the list goes from the newest to the oldest."""
    reaches_back: bool
    """The list ends before the compared time begins."""
    without_row: list[ListedJob]
    """Jobs that no row names, in any workspace."""
    unlisted: list[AcceptedRender]
    """Renders of the compared time that the list does not contain; running ones first."""
    unchecked: int
    """Further ones, beyond the number that may be checked."""
    unsent: int
    """Renders that are pending or being sent."""
    unsure: int
    """Those of them that Sume may hold: the outcome of a submit is unknown."""
    unknown: int
    """Renders that failed with an unknown outcome: they can be resent with their keys."""

    def is_whole(self, check: "Check") -> bool:
        """True if neither Sume nor a limit left out a part of the compared time."""
        listed_all = self.reaches_back or not (self.cut or check.known)
        return listed_all and not (self.unchecked or check.refused)


@dataclass(frozen=True)
class Check:
    """Sume's answers for the renders that its list does not contain."""

    unknown: list[AcceptedRender]
    """Sume does not know the job (404)."""
    known: int
    refused: int
    """Sume answered with another refusal, which says nothing about the job."""


def compare(workspace: str, sume: Clients, *, limit: int, hours: float, checks: int) -> Comparison:
    """Read up to `limit` jobs from Sume and compare them with the rows.

    Rows count if Sume accepted them in the last `hours`; up to `checks` of those that are missing
    from the list are returned. Raises `SumeError`.
    """
    now = timezone.now()  # what Sume accepts from here on need not be in the list
    since = now - timedelta(hours=hours)
    listed = _read(workspace, lambda: sume(workspace).jobs(limit))
    jobs = {job.id: job for job in listed}
    named = _named(list(jobs))
    rows = RenderJob.objects.filter(workspace=workspace)
    unlisted = [part.exclude(sume_job_id__in=list(jobs)) for part in accepted(rows, since, now)]
    to_check: list[AcceptedRender] = []
    for part in unlisted:
        values = part.values_list("pk", "sume_job_id", "kind", "status")
        to_check += [AcceptedRender(*row) for row in values[: checks - len(to_check)]]
    missing = sum(part.count() for part in unlisted)  # other processes may delete meanwhile
    ends_at = _end_of(listed)
    sending = rows.filter(status=Status.SUBMITTING).count()
    return Comparison(
        listed=len(jobs),
        cut=len(listed) >= limit,
        ends_at=ends_at,
        reaches_back=ends_at is not None and ends_at < since,
        without_row=[job for job in jobs.values() if job.id not in named],
        unlisted=to_check,
        unchecked=max(0, missing - len(to_check)),
        unsent=rows.waiting().count() + rows.filter(HELD).count() + sending,
        unsure=rows.unsure().count(),
        unknown=rows.resendable().count(),
    )


def check(
    workspace: str,
    sume: Clients,
    renders: Sequence[AcceptedRender],
    told: Callable[[int], None] = lambda more: None,
) -> Check:
    """Ask Sume for the job of each of these renders; `told` is called after each answer.

    Raises `SumeError` if Sume does not answer; no answer is ever taken for an unknown job.
    """
    unknown: list[AcceptedRender] = []
    refused = 0
    for render in renders:
        try:
            _read(workspace, partial(sume(workspace).record_fault, render.job_id))
        except NotFound:
            unknown.append(render)
        except Rejected:
            refused += 1
        told(1)
    return Check(unknown, known=len(renders) - len(unknown) - refused, refused=refused)


def rows_of(job_ids: Sequence[str]) -> RenderQuerySet:
    """The rows that name one of these jobs, in any workspace."""
    # Without the second condition, PostgreSQL does not use the partial index for long lists.
    return RenderJob.objects.filter(sume_job_id__in=job_ids).exclude(sume_job_id="").order_by()


def accepted(rows: RenderQuerySet, since: datetime, until: datetime) -> Iterator[RenderQuerySet]:
    """The renders that Sume accepted in this time: running ones, then ended ones, newest first."""
    rows = rows.filter(submitted_at__gte=since, submitted_at__lt=until).exclude(sume_job_id="")
    yield rows.filter(status=Status.SUBMITTED).order_by("-submitted_at")
    # A render ends after it was submitted, and `finished_at` has an index.
    yield rows.filter(status__in=TERMINAL, finished_at__gte=since).order_by("-finished_at")


def _read(workspace: str, ask: Callable[[], T]) -> T:
    """Send one read, after a wait if the read limit of this second is used up."""
    end = time.monotonic() + PATIENCE_SECONDS
    while True:
        try:
            return read_quota.read(workspace, ask)
        except Closed as closed:
            if closed.code != read_quota.USED_UP or closed.until is None or time.monotonic() > end:
                raise
            left = (closed.until - timezone.now()).total_seconds()
            time.sleep(min(max(left, STEP_SECONDS), PATIENCE_SECONDS))


def _named(job_ids: Sequence[str]) -> set[str]:
    """The job ids that a row names."""
    named: set[str] = set()
    for start in range(0, len(job_ids), BATCH):
        named.update(rows_of(job_ids[start : start + BATCH]).values_list("sume_job_id", flat=True))
    return named


def _end_of(jobs: Sequence[ListedJob]) -> datetime | None:
    """When the last job of a list was created.

    None unless all times are readable and the newest comes first.
    """
    times = [_moment(job.created_at) for job in jobs]
    readable = [moment for moment in times if moment is not None]
    in_order = all(newer >= older for newer, older in pairwise(readable))
    return readable[-1] if readable and len(readable) == len(times) and in_order else None


def _moment(text: str) -> datetime | None:
    with suppress(ValueError):
        moment = datetime.fromisoformat(text)
        return moment if moment.tzinfo else None
    return None
