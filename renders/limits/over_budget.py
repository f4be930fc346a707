"""Renders that do not fit into a budget: put aside by the claim, back in the line once they fit.

So an expensive clip does not hold up the pictures behind it. Its row says why it waits. Everything
here runs under the lock of the workspace's gate, so no other worker spends meanwhile.
"""

import random
from datetime import datetime
from uuid import UUID

from django.db import transaction
from django.db.models import Count, Max

from renders import transitions
from renders.conf import conf, workspaces
from renders.limits import gate, spending, turns
from renders.limits.spending import Funds
from renders.models import RenderJob
from renders.models.querysets import RenderQuerySet
from renders.states import RequestType

# One claim looks for a render that fits among this many.
LOOK_AT = 200


def claim_first_that_fits(
    line: RenderQuerySet, workspace: str, funds: Funds, now: datetime
) -> tuple[list[UUID], int]:
    """Claim the first render in line that fits; returns its id, and how many were put aside.

    Renders before it that do not fit are put aside. Only one is claimed, because its price
    reduces what is left for the next one.
    """
    misfits: dict[str, list[UUID]] = {}
    pks: list[UUID] = []
    for row in line.only("kind", "model", "created_by", "outcome_unknown_at")[:LOOK_AT]:
        # A render that Sume may hold is counted already.
        is_new = row.outcome_unknown_at is None
        why = funds.misfit(row.created_by_id, row.kind, row.model) if is_new else ""
        if why:
            misfits.setdefault(why, []).append(row.pk)
            continue
        only = line.filter(pk=row.pk)
        pks = transitions.claim_next(only, now, row.pk, workspace=workspace, within=1, limit=1)
        if pks:  # else another worker has locked it
            break
    aside = [transitions.put_aside(rows, why) for why, rows in misfits.items()]
    return pks, sum(map(len, aside))


def take_back(workspace: str, now: datetime) -> int:
    """Return to the line as many renders as fit now, per user and model; returns how many.

    The sweep calls it, since a cost can be lower than its price, a month can begin and a limit can
    be raised. Among equal priorities the order of the users is random, so that none always goes
    first.
    """
    aside = RenderJob.objects.over_budget().filter(workspace=workspace)
    limits = workspaces.find(workspace)
    if limits is None or not aside.exists():
        return 0
    with transaction.atomic():
        gate.lock(workspace, RequestType.WRITES)
        funds, taken = Funds(limits, now), 0
        groups = list(
            aside.order_by()
            .values_list("created_by", "kind", "model")
            .annotate(number=Count("pk"), top=Max("priority"))
        )
        random.shuffle(groups)
        groups.sort(key=lambda group: -group[-1])
        for user, kind, model, number, _ in groups:
            alike = {"created_by": user, "kind": kind, "model": model}
            number = min(number, conf.SWEEP_BATCH - taken)
            if spending.limited(limits):  # renders in line need the same money: reserve it first
                in_line = RenderJob.objects.in_line().filter(workspace=workspace, **alike)
                funds.reserve(user, kind, model, in_line.order_by()[:number].count())
            number = funds.reserve(user, kind, model, number)
            rows = aside.filter(**alike)
            pks = rows.order_by("-priority", "created_at").pks(number)
            if pks:
                back = transitions.take_back(pks, now)
                turns.give_again(RenderJob.objects.filter(pk__in=back))
                taken += len(back)
    return taken
