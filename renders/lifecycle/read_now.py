"""Moves the next read of a job to now, for a webhook or a person who does not want to wait.

The request is stored on the row (`asked_at`, and an earlier next read), so a lost message loses
nothing. A read answers all requests made before it began. If a request comes while a read is in
flight, that chain reads once more, a moment later. However many requests come, a job is read once
in `MIN_POLL_SECONDS`, and messages go out only for reads that were moved.
"""

from collections.abc import Iterable
from datetime import timedelta
from uuid import UUID

from django.db import transaction
from django.utils import timezone

from renders import transitions
from renders.conf import conf
from renders.lifecycle.steps import Step
from renders.models import RenderJob
from renders.states import Status


def ask(pks: Iterable[UUID]) -> tuple[int, list[Step]]:
    """Ask for reads now; returns how many jobs that is (those that Sume holds) and their steps."""
    now = timezone.now()
    moment = timedelta(seconds=conf.MIN_POLL_SECONDS)
    patience = timedelta(seconds=conf.grace_seconds)
    rested: list[Step] = []
    read_just_now: list[Step] = []
    stopped: list[Step] = []
    with transaction.atomic():
        # Locked in one order, so that two callers cannot deadlock.
        rows = RenderJob.objects.filter(pk__in=list(pks), status=Status.SUBMITTED)
        rows = rows.order_by("pk").select_for_update(no_key=True)
        jobs = rows.values_list("pk", "last_polled_at", "next_poll_at", "swept_at")
        for pk, last, next_poll_at, swept in jobs:
            due = next_poll_at or now
            if last and last > now - moment:
                if due > now + moment:
                    read_just_now.append(Step("poll", pk, moment.total_seconds()))
            elif due > now:
                rested.append(Step("poll", pk))
            elif due < now - moment and not (swept and swept > now - patience):
                stopped.append(Step("poll", pk))  # before the sweep finds it
        transitions.ask([pk for pk, *_ in jobs], now)
        transitions.bring_forward(_pks(rested), now)
        transitions.bring_forward(_pks(read_just_now), now + moment)
        transitions.mark_swept(_pks(stopped), now)
    return len(jobs), [*rested, *stopped, *read_just_now]


def _pks(steps: list[Step]) -> list[UUID]:
    return [step.render_id for step in steps]
