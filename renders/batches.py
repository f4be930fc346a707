"""Services for any number of rows: cancel, retry, send again, hold, release, check now.

A selection is walked in batches, each a transaction of its own: nothing is loaded but keys, a
crash leaves whole batches behind, and what a batch began is carried on by the sweep. A walk ends
after `PATIENCE_SECONDS`, since a person waits for it; it says how many it has not reached, and
the same call takes up there, for what is done is no candidate any more.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from django.db import connection, transaction
from django.db.models import Q
from django.utils import timezone

from renders import claims, prices, scheduling, services, turns
from renders.conf import conf
from renders.exceptions import InvalidRender
from renders.models import RenderJob
from renders.queries import CANCELABLE, HELD, HOLDABLE, MADE, RenderQueries
from renders.services import BATCH, STARTERS
from renders.states import Status
from renders.steps import Step

PATIENCE_SECONDS = 15.0
# So many are named in a tally.
NAMED = 100

Work = Callable[[list[UUID]], list[UUID]]


@dataclass
class Tally:
    """What became of a selection."""

    done: int = 0
    unreached: int = 0
    """Time was up, or the line was full; call again for these."""
    refused: str = ""
    """Why no more of them could be done now; empty where time was up."""
    named: list[UUID] = field(default_factory=list)
    """The first `NAMED` of what was done."""


def cancel_renders(renders: RenderQueries) -> Tally:
    """As `services.cancel_render`, for each of these.

    Few messages go out: each finish of one that was never sent starts the next, and Sume is asked
    as far as a minute's POSTs reach; what it was not asked for is asked at its next read.
    """
    finishes = STARTERS
    cancels: dict[str, int] = {}  # what each workspace's minute still holds

    def cancel(pks: list[UUID]) -> list[UUID]:
        nonlocal finishes
        now = timezone.now()
        unsent = RenderJob.objects.cancel_unsent_many(pks, now)
        asked = RenderJob.objects.request_cancel_many(set(pks).difference(unsent), now)
        # Meanwhile they may have been put back, certainly unsent.
        ended = [*unsent, *RenderJob.objects.cancel_unsent_many(asked, now, asked=True)]
        finishes -= _send("finish", ended[:finishes])
        _send("cancel", _within(cancels, asked))
        return [*unsent, *asked]

    return _walk(renders.filter(CANCELABLE), cancel)


def _within(cancels: dict[str, int], asked: list[UUID]) -> list[UUID]:
    """Those at Sume, as far as the minutes of their workspaces reach; what is left is noted."""
    at_sume = RenderJob.objects.filter(pk__in=asked, status=Status.SUBMITTED)
    found = []
    for pk, workspace in at_sume.values_list("pk", "workspace"):
        if workspace not in cancels:
            cancels[workspace] = min(claims.cancels_left(workspace), conf.SWEEP_BATCH)
        if cancels[workspace] > 0:
            cancels[workspace] -= 1
            found.append(pk)
    return found


def retry_renders(renders: RenderQueries, user: Any) -> Tally:
    """As `services.retry_render`, for each of these; names the new renders."""
    starters = STARTERS

    def retry(pks: list[UUID]) -> list[UUID]:
        nonlocal starters
        new = _retried(pks, user, starters)
        starters -= min(starters, len(new))
        return new

    return _walk(renders.unretried(), retry)


def resend_renders(renders: RenderQueries) -> Tally:
    """As `services.resend_render`, for each of these."""

    def resend(pks: list[UUID]) -> list[UUID]:
        rows = RenderJob.objects.filter(pk__in=pks).only("pk")
        return [row.pk for row in rows if services.resend_render(row)]

    return _walk(renders.resendable(), resend)


def store_media(renders: RenderQueries) -> Tally:
    """As `services.store_media`, for each of these."""

    def store(pks: list[UUID]) -> list[UUID]:
        rows = RenderJob.objects.filter(pk__in=pks).only("pk", "workspace")
        return [row.pk for row in rows if services.store_media(row)]

    return _walk(renders.filter(MADE), store)


def hold_renders(renders: RenderQueries) -> Tally:
    """Keep pending ones from being sent until they are released."""
    return _walk(
        renders.filter(HOLDABLE), lambda pks: RenderJob.objects.hold_many(pks, timezone.now())
    )


def release_renders(renders: RenderQueries) -> Tally:
    """Let held ones be sent in their turn."""

    def release(pks: list[UUID]) -> list[UUID]:
        turns.give_again(RenderJob.objects.filter(HELD, pk__in=pks))
        return RenderJob.objects.unhold_many(pks, timezone.now())

    tally = _walk(renders.filter(HELD), release)
    transaction.on_commit(lambda: scheduling.follow(claims.next_in_lines()), robust=True)
    return tally


def check_renders(renders: RenderQueries) -> Tally:
    """Have Sume asked about those it holds as soon as may be."""
    checked = 0

    def check(pks: list[UUID]) -> list[UUID]:
        nonlocal checked
        checked += services.check_now(pks)
        return pks

    tally = _walk(renders.filter(status=Status.SUBMITTED), check)
    tally.done = checked
    return tally


def _walk(renders: RenderQueries, work: Work) -> Tally:
    """Have all of them worked on, the oldest first; what is made meanwhile is not among them."""
    tally = Tally()
    until = time.monotonic() + PATIENCE_SECONDS
    rest = renders = renders.filter(created_at__lte=timezone.now()).order_by("created_at", "pk")
    while found := list(rest.values_list("created_at", "pk")[:BATCH]):
        try:
            done = work([pk for _, pk in found])
        except InvalidRender as error:  # nothing was done of these
            tally.refused, tally.unreached = error.message, rest.count()
            break
        tally.done += len(done)
        tally.named += done[: NAMED - len(tally.named)]
        at, last = found[-1]
        later = Q(created_at__gt=at) | Q(created_at=at, pk__gt=last)
        rest = renders.filter(later, created_at__gte=at)
        if time.monotonic() > until:
            tally.unreached = rest.count()
            break
    return tally


def _retried(pks: list[UUID], user: Any, starters: int) -> list[UUID]:
    """The new renders; what somebody else holds just now is passed over, then retried by itself."""
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
                continue  # a limit that was set since
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
    transaction.on_commit(lambda: scheduling.follow(steps), robust=True)
    return len(steps)
