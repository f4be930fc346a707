"""Transitions of a submit: a render is claimed, sent, put back, refused or given up."""

from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from django.db import connections
from django.db.models import F, Q, Value
from django.db.models.functions import Coalesce

from renders.models import RenderEvent, RenderJob
from renders.models.querysets import RESENDABLE, WITHDRAWN, RenderQuerySet, note_of
from renders.states import BACK_IN_LINE, OUTCOME_UNKNOWN, OVER_BUDGET, PUT_ASIDE, SENDING, Status
from renders.transitions.moves import database, move, move_many, move_to_end

# The named render is looked for among this many at the front of the line, even if more may be
# claimed.
MOST_AHEAD = 1_000
LOOK = (
    "Look into your Sume account before you retry: a retry has a new key and a new bill. If Sume "
    "has not made it, send it again with the same key."
)


def claim(pk: UUID, now: datetime, workspace: str) -> bool:
    """pending → submitting, if the render is due and belongs to this workspace."""
    return move(
        pk,
        [Status.PENDING],
        (SENDING, note_of(workspace)),
        where=~WITHDRAWN
        & Q(workspace=workspace)
        & Q(held_at__isnull=True, turn__isnull=False)
        & (Q(not_before__isnull=True) | Q(not_before__lte=now)),
        status=Status.SUBMITTING,
        claimed_at=now,
        submit_attempts=F("submit_attempts") + 1,
    )


def claim_next(
    line: RenderQuerySet,
    now: datetime,
    named: UUID,
    *,
    workspace: str,
    within: int,
    limit: int,
) -> list[UUID]:
    """Claim up to `limit` renders from the front of a workspace's line; returns their ids.

    Never more than `within`; `named` goes first if it is among the first `within`. If the database
    can, statements skip rows that others hold; otherwise each row is claimed by a conditional
    UPDATE. No two callers get the same row.
    """
    line, most = line.filter(workspace=workspace), min(limit, within)
    turns = line.values("pk")[: min(within, MOST_AHEAD)]
    its_turn = line.filter(pk=named, pk__in=turns)
    if not connections[database()].features.has_select_for_update_skip_locked:
        wanted = dict.fromkeys([*its_turn.pks(1), *line.pks(most)])
        return [pk for pk in list(wanted)[:most] if claim(pk, now, workspace)]
    taken = _claim_unlocked(its_turn[:1], now, workspace)
    if len(taken) < most:  # rows at the front are locked by others: take the next ones
        taken += _claim_unlocked(line[: most - len(taken)], now, workspace)
    return taken


def freeze_request(
    pk: UUID, claimed_at: datetime, path: str, body: str, *, by_webhook: bool = False
) -> bool:
    """Freeze the request before it is first sent; only the claim's holder may, and once.

    So a row without a body was certainly never sent, even if its worker is merely slow.
    """
    return move(
        pk,
        [Status.SUBMITTING],
        None,
        where=Q(request_body="", claimed_at=claimed_at),
        request_path=path,
        request_body=body,
        by_webhook=by_webhook,
    )


def record_submitted(
    pk: UUID,
    now: datetime,
    *,
    job_id: str,
    sume_status: str,
    hit: bool,
    next_poll_at: datetime,
) -> bool:
    """pending or submitting → submitted.

    Not guarded by the claim: the same key means the same job, so a late answer is accepted.
    """
    return move(
        pk,
        [Status.PENDING, Status.SUBMITTING],
        ("submitted", f"Sume job {job_id}" + (" (it had this request already)" * hit)),
        status=Status.SUBMITTED,
        submitted_at=now,
        sume_job_id=job_id,
        sume_status=sume_status,
        idempotency_hit=hit,
        next_poll_at=next_poll_at,
        swept_at=None,
        held_at=None,
        error_code="",
        error_message="",
    )


def release(
    pk: UUID,
    claimed_at: datetime,
    *,
    not_before: datetime,
    code: str,
    message: str,
    unknown_at: datetime | None = None,
) -> bool:
    """submitting → pending, to be resent; `unknown_at` is set if Sume may hold the job."""
    changes: dict[str, Any] = {"outcome_unknown_at": unknown_at} if unknown_at else {}
    return move(
        pk,
        [Status.SUBMITTING],
        ("put back", message),
        where=Q(claimed_at=claimed_at),
        status=Status.PENDING,
        claimed_at=None,
        not_before=not_before,
        swept_at=None,
        error_code=code[:100],
        error_message=message,
        **changes,
    )


def reap(pk: UUID, now: datetime, age: float) -> bool:
    """submitting for longer than `age` seconds → pending.

    The outcome is unknown, unless the request was not frozen yet: then nothing was sent.
    """
    stuck = Q(claimed_at__lt=now - timedelta(seconds=age))
    words = "The worker that was sending it died or took too long"
    moved = {"status": Status.PENDING, "claimed_at": None, "swept_at": now}
    unsent, sent = stuck & Q(request_body=""), stuck & ~Q(request_body="")
    return move(
        pk,
        [Status.SUBMITTING],
        ("put back", f"{words}; nothing was sent."),
        where=unsent,
        **moved,
    ) or move(
        pk,
        [Status.SUBMITTING],
        ("put back", f"{words}; Sume may hold it."),
        where=sent,
        outcome_unknown_at=now,
        **moved,
    )


def refuse(
    pk: UUID,
    claimed_at: datetime,
    now: datetime,
    *,
    code: str,
    message: str,
    key_taken: bool = False,
) -> bool:
    """submitting → failed: Sume will never take this request.

    If the outcome of an earlier try is unknown, or Sume has another request under this key
    (`key_taken`), Sume may have made the render all the same. Then its cost is unknown.
    """
    claimed = Q(claimed_at=claimed_at)
    sure = claimed & Q(outcome_unknown_at__isnull=True)
    if not key_taken and move_to_end(
        pk,
        [Status.SUBMITTING],
        now,
        Status.FAILED,
        where=sure,
        code=code,
        message=message,
        cost_usd_micros=0,
    ):
        return True
    return move_to_end(
        pk,
        [Status.SUBMITTING],
        now,
        Status.FAILED,
        where=claimed,
        code=OUTCOME_UNKNOWN,
        message="Sume refused this request, but may have accepted an earlier one with the same "
        f"key: it may exist, and be billed. {LOOK} Sume said: {message} ({code})",
    )


def resend(pk: UUID, now: datetime) -> bool:
    """failed with an unknown outcome → pending, to be resent with the same key and body."""
    return move(
        pk,
        [Status.FAILED],
        ("sent again", "With the same key: if Sume has made it, it answers with that job."),
        where=RESENDABLE,
        status=Status.PENDING,
        turn=Coalesce("turn", Value(0)),
        outcome_unknown_at=Coalesce("outcome_unknown_at", Value(now)),
        released_at=now,
        claimed_at=None,
        not_before=None,
        next_poll_at=None,
        swept_at=None,
        cancel_requested_at=None,
        finished_at=None,
        handled_at=None,
        error_code="",
        error_message="",
    )


def give_up(pk: UUID, now: datetime) -> bool:
    """pending → failed: Sume did not accept the render before the submit deadline."""
    unsent = {
        "code": "submit_deadline",
        "message": "Sume could not take it in time, so it was never made; nothing was billed. "
        "Retry it when Sume takes renders again.",
        "cost_usd_micros": 0,
    }
    unknown = {
        "code": OUTCOME_UNKNOWN,
        "message": f"It was sent, and no clear answer came in time. {LOOK}",
    }
    return any(
        move_to_end(
            pk,
            [Status.PENDING],
            now,
            Status.FAILED,
            where=Q(outcome_unknown_at__isnull=is_known, held_at__isnull=True),
            **words,
        )
        for is_known, words in ((True, unsent), (False, unknown))
    )


def put_aside(pks: Iterable[UUID], why: str) -> list[UUID]:
    """Take renders out of the line until they fit into a budget; returns the ids put aside.

    Renders that Sume may hold stay in the line: the budget counts them already.
    """
    return move_many(
        pks,
        [Status.PENDING],
        (PUT_ASIDE, why),
        where=Q(turn__isnull=False, outcome_unknown_at__isnull=True),
        turn=None,
        error_code=OVER_BUDGET,
        error_message=why,
    )


def take_back(pks: Iterable[UUID], now: datetime) -> list[UUID]:
    """Clear the reason of renders that were put aside and fit now; returns their ids.

    The caller gives each a new turn afterwards. Their submit deadline starts again.
    """
    return move_many(
        pks,
        [Status.PENDING],
        (BACK_IN_LINE, ""),
        where=Q(held_at__isnull=True, turn__isnull=True),
        released_at=now,
        error_code="",
        error_message="",
    )


def recall(workspace: str) -> int:
    """Make a workspace's delayed renders due now; returns how many."""
    delayed = RenderJob.objects.waiting().filter(workspace=workspace, not_before__isnull=False)
    return delayed.update(not_before=None)


def _claim_unlocked(picked: RenderQuerySet, now: datetime, workspace: str) -> list[UUID]:
    """pending → submitting in one statement that skips rows locked by others; returns the ids."""
    rows = picked.select_for_update(skip_locked=True).values("pk")
    chosen, values = rows.query.get_compiler(database()).as_sql()
    table, events = RenderJob._meta.db_table, RenderEvent._meta.db_table
    with connections[database()].cursor() as cursor:
        # MATERIALIZED: the rows are chosen once, with any query plan.
        cursor.execute(
            f"WITH chosen(id) AS MATERIALIZED ({chosen}), "  # noqa: S608 (no value in it)
            f"taken AS (UPDATE {table} SET status = %s, claimed_at = %s, "
            f"submit_attempts = submit_attempts + 1 "
            f"FROM chosen WHERE {table}.id = chosen.id RETURNING {table}.id) "
            f"INSERT INTO {events} (render_id, at, what, detail) "
            "SELECT id, %s, %s, %s FROM taken RETURNING render_id",
            [*values, Status.SUBMITTING, now, now, SENDING, note_of(workspace)],
        )
        return [pk for (pk,) in cursor.fetchall()]
