"""Renders that do not fit into a budget: put aside by the claim, back in the line once they fit.

So a dear clip does not hold up the pictures behind it. Its row says why it waits. Everything here
is done under the lock of the workspace's gate, so nobody else spends meanwhile.
"""

import random
from datetime import datetime
from uuid import UUID

from django.db import transaction
from django.db.models import Count, Max

from renders import gate, spending, turns, workspaces
from renders.conf import conf
from renders.models import RenderJob
from renders.queries import RenderQueries
from renders.spending import Funds
from renders.states import Sort

# One claim looks for a render that fits among so many.
LOOK_AT = 200


def claim_first_that_fits(
    line: RenderQueries, workspace: str, funds: Funds, now: datetime
) -> tuple[list[UUID], int]:
    """Claim the first render of the line that fits, and put aside those before it; says how many.

    One at a time: each is counted for the next.
    """
    misfits: dict[str, list[UUID]] = {}
    pks: list[UUID] = []
    for row in line.only("kind", "model", "created_by", "outcome_unknown_at")[:LOOK_AT]:
        # One that Sume may hold is counted already.
        is_new = row.outcome_unknown_at is None
        why = funds.misfit(row.created_by_id, row.kind, row.model) if is_new else ""
        if why:
            misfits.setdefault(why, []).append(row.pk)
            continue
        one = line.filter(pk=row.pk)
        pks = RenderJob.objects.claim_next(one, now, row.pk, workspace=workspace, within=1, limit=1)
        if pks:  # else somebody else has it just now
            break
    aside = [RenderJob.objects.put_aside(rows, why) for why, rows in misfits.items()]
    return pks, sum(map(len, aside))


def take_back(workspace: str, now: datetime) -> int:
    """Return to the line what fits now, of each user and sort no more than fits; how many.

    The sweep calls it: costs were lower than their price, a month has begun, a limit was raised.
    Whose renders are first is drawn each time, so that nobody always is.
    """
    aside = RenderJob.objects.over_budget().filter(workspace=workspace)
    limits = workspaces.find(workspace)
    if limits is None or not aside.exists():
        return 0
    with transaction.atomic():
        gate.lock(workspace, Sort.WRITES)
        funds, taken = Funds(limits, now), 0
        sorts = list(
            aside.order_by()
            .values_list("created_by", "kind", "model")
            .annotate(number=Count("pk"), top=Max("priority"))
        )
        random.shuffle(sorts)
        sorts.sort(key=lambda sort: -sort[-1])
        for user, kind, model, number, _ in sorts:
            number = funds.fitting(user, kind, model, min(number, conf.SWEEP_BATCH - taken))
            if spending.limited(limits):  # the same money is for what they have in the line
                theirs = RenderJob.objects.in_line().filter(workspace=workspace, created_by=user)
                number -= theirs.order_by()[:number].count()
            rows = aside.filter(created_by=user, kind=kind, model=model)
            pks = rows.order_by("-priority", "created_at").pks(number)
            if pks:
                back = RenderJob.objects.take_back(pks, now)
                turns.give_again(RenderJob.objects.filter(pk__in=back))
                taken += len(back)
    return taken
