"""Services for any number of rows: cancel, retry, resend, hold, release, check now.

A selection is processed in batches, each in its own transaction, and only ids are loaded. After a
crash, complete batches are left, and the sweep continues what they began. A call ends after
`PATIENCE_SECONDS`, since a person waits for it, and returns how many rows it has not reached. The
same call continues there, since processed rows no longer match.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from django.db import connection, transaction
from django.db.models import Q
from django.utils import timezone

from renders import services, transitions
from renders.conf import conf
from renders.exceptions import InvalidRender
from renders.lifecycle import claims
from renders.lifecycle.steps import Step
from renders.limits import prices, turns
from renders.models import RenderJob
from renders.models.querysets import CANCELABLE, HELD, HOLDABLE, MADE, RenderQuerySet
from renders.schedulers import dispatch
from renders.services import BATCH, STARTERS
from renders.states import Status

PATIENCE_SECONDS = 15.0
# Most ids in a `BulkResult`.
NAMED = 100

Work = Callable[[list[UUID]], list[UUID]]


@dataclass
class BulkResult:
    """The outcome for a selection."""

    done: int = 0
    unreached: int = 0
    """Not processed, since time was up or the line was full; call again for these."""
    refused: str = ""
    """Why no more could be processed now; empty if time was up."""
    named: list[UUID] = field(default_factory=list)
    """The first `NAMED` ids that were processed."""


def cancel_renders(renders: RenderQuerySet) -> BulkResult:
    """As `services.cancel_render`, for each of these.

    Few messages go out: each finish of an unsent render starts the next one. Sume is asked up to
    the minute's quota of POSTs; for the other jobs, it is asked at their next read.
    """
    finishes = STARTERS
    cancels: dict[str, int] = {}  # by workspace: POSTs left in this minute

    def cancel(pks: list[UUID]) -> list[UUID]:
        nonlocal finishes
        now = timezone.now()
        unsent = transitions.cancel_unsent_many(pks, now)
        asked = transitions.request_cancel_many(set(pks).difference(unsent), now)
        # Meanwhile they may have been put back as provably unsent.
        ended = [*unsent, *transitions.cancel_unsent_many(asked, now, asked=True)]
        finishes -= _send("finish", ended[:finishes])
        _send("cancel", _within(cancels, asked))
        return [*unsent, *asked]

    return _walk(renders.filter(CANCELABLE), cancel)


def retry_renders(renders: RenderQuerySet, user: Any) -> BulkResult:
    """As `services.retry_render`, for each of these; `named` holds the new renders."""
    starters = STARTERS

    def retry(pks: list[UUID]) -> list[UUID]:
        nonlocal starters
        new = _retried(pks, user, starters)
        starters -= min(starters, len(new))
        return new

    return _walk(renders.unretried(), retry)


def resend_renders(renders: RenderQuerySet) -> BulkResult:
    """As `services.resend_render`, for each of these."""

    def resend(pks: list[UUID]) -> list[UUID]:
        rows = RenderJob.objects.filter(pk__in=pks).only("pk")
        return [row.pk for row in rows if services.resend_render(row)]

    return _walk(renders.resendable(), resend)


def store_media(renders: RenderQuerySet) -> BulkResult:
    """As `services.store_media`, for each of these."""

    def store(pks: list[UUID]) -> list[UUID]:
        rows = RenderJob.objects.filter(pk__in=pks).only("pk", "workspace")
        return [row.pk for row in rows if services.store_media(row)]

    return _walk(renders.filter(MADE), store)


def hold_renders(renders: RenderQuerySet) -> BulkResult:
    """Hold pending renders: they are not sent until they are released."""
    return _walk(renders.filter(HOLDABLE), lambda pks: transitions.hold_many(pks, timezone.now()))


def release_renders(renders: RenderQuerySet) -> BulkResult:
    """Release held renders: they are sent in their turn."""

    def release(pks: list[UUID]) -> list[UUID]:
        turns.give_again(RenderJob.objects.filter(HELD, pk__in=pks))
        return transitions.unhold_many(pks, timezone.now())

    tally = _walk(renders.filter(HELD), release)
    transaction.on_commit(lambda: dispatch.follow(claims.next_in_lines()), robust=True)
    return tally


def check_renders(renders: RenderQuerySet) -> BulkResult:
    """Poll the jobs that Sume holds as soon as possible."""
    checked = 0

    def check(pks: list[UUID]) -> list[UUID]:
        nonlocal checked
        checked += services.check_now(pks)
        return pks

    tally = _walk(renders.filter(status=Status.SUBMITTED), check)
    tally.done = checked
    return tally


def _walk(renders: RenderQuerySet, work: Work) -> BulkResult:
    """Process all of these in batches, the oldest first; renders made meanwhile are left out."""
    tally = BulkResult()
    until = time.monotonic() + PATIENCE_SECONDS
    rest = renders = renders.filter(created_at__lte=timezone.now()).order_by("created_at", "pk")
    while rows := list(rest.values_list("created_at", "pk")[:BATCH]):
        try:
            done = work([pk for _, pk in rows])
        except InvalidRender as error:  # this batch was rolled back
            tally.refused, tally.unreached = error.message, rest.count()
            break
        tally.done += len(done)
        tally.named += done[: NAMED - len(tally.named)]
        at, last = rows[-1]
        later = Q(created_at__gt=at) | Q(created_at=at, pk__gt=last)
        rest = renders.filter(later, created_at__gte=at)
        if time.monotonic() > until:
            tally.unreached = rest.count()
            break
    return tally


def _within(cancels: dict[str, int], asked: list[UUID]) -> list[UUID]:
    """The jobs at Sume within their workspaces' quotas; takes them from `cancels`."""
    at_sume = RenderJob.objects.filter(pk__in=asked, status=Status.SUBMITTED)
    within = []
    for pk, workspace in at_sume.values_list("pk", "workspace"):
        if workspace not in cancels:
            cancels[workspace] = min(claims.cancels_left(workspace), conf.SWEEP_BATCH)
        if cancels[workspace] > 0:
            cancels[workspace] -= 1
            within.append(pk)
    return within


def _retried(pks: list[UUID], user: Any, starters: int) -> list[UUID]:
    """The new renders. Rows that another process locks are skipped, then retried one by one."""
    skips = connection.features.has_select_for_update_skip_locked
    candidates = RenderJob.objects.filter(pk__in=pks)
    with transaction.atomic():
        rows = candidates.select_for_update(no_key=skips, skip_locked=skips)
        originals = {row.pk: row for row in rows.defer("result", "request_body")}
        unretried = RenderJob.objects.filter(pk__in=originals).unretried()
        new, refusal = [], prices.remembering()
        for pk in unretried.values_list("pk", flat=True):
            try:
                new.append(services.new_retry(originals[pk], user, refusal))
            except InvalidRender:
                continue  # a limit was set meanwhile
        stored = services.store_for(user, new, starters=starters)
        made = [row.pk for retry, row in zip(new, stored, strict=True) if row is retry]
    for render in candidates.exclude(pk__in=originals):
        try:
            again, is_new = services.retry_once(render, user)
        except InvalidRender:
            continue
        made += [again.pk] * is_new
    return made


def _send(do: Any, pks: list[UUID]) -> int:
    steps = [Step(do, pk) for pk in pks]
    transaction.on_commit(lambda: dispatch.follow(steps), robust=True)
    return len(steps)
