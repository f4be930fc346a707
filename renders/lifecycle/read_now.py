"""A read at once: by a webhook, or by a person who does not want to wait for the next poll.

The row says that one is asked for (`asked_at`) and its next read moves to now, so that nothing is
lost with a message. Whoever reads serves all who asked before; where somebody asks while a read
is under way, that chain reads once more a moment later. However many ask, a job is read once in
`MIN_POLL_SECONDS`, and messages go out only for what was moved.
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
    """Have these read at once: how many are (those that Sume holds), and what is to be sent."""
    now = timezone.now()
    moment = timedelta(seconds=conf.MIN_POLL_SECONDS)
    patience = timedelta(seconds=conf.grace_seconds)
    rested: list[Step] = []
    read_just_now: list[Step] = []
    stopped: list[Step] = []
    with transaction.atomic():
        # Locked in one order, so that two who ask never wait for each other.
        rows = RenderJob.objects.filter(pk__in=list(pks), status=Status.SUBMITTED)
        rows = rows.order_by("pk").select_for_update(no_key=True)
        known = rows.values_list("pk", "last_polled_at", "next_poll_at", "swept_at")
        for pk, last, next_poll_at, swept in known:
            due = next_poll_at or now
            if last and last > now - moment:
                if due > now + moment:
                    read_just_now.append(Step("poll", pk, moment.total_seconds()))
            elif due > now:
                rested.append(Step("poll", pk))
            elif due < now - moment and not (swept and swept > now - patience):
                stopped.append(Step("poll", pk))  # before the sweep finds it
        transitions.ask([pk for pk, *_ in known], now)
        transitions.bring_forward(_pks(rested), now)
        transitions.bring_forward(_pks(read_just_now), now + moment)
        transitions.mark_swept(_pks(stopped), now)
    return len(known), [*rested, *stopped, *read_just_now]


def _pks(steps: list[Step]) -> list[UUID]:
    return [step.render_id for step in steps]
