"""Transitions on the way to Sume: claimed, sent, put back, refused, given up."""

from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from django.db import connections
from django.db.models import F, Q, Value
from django.db.models.functions import Coalesce

from renders.moves import Moves
from renders.queries import RESENDABLE, WITHDRAWN, RenderQueries, note_of
from renders.states import BACK_IN_LINE, OUTCOME_UNKNOWN, OVER_BUDGET, PUT_ASIDE, SENDING, Status

# Where places are many, the one named is looked for among so many of the first in line.
MOST_AHEAD = 1_000
LOOK = (
    "Look into your Sume account before you retry: a retry has a new key and a new bill. If Sume "
    "has not made it, send it again with the same key."
)


class Sending(Moves):
    """What happens to a row until Sume holds its job."""

    def claim(self, pk: UUID, now: datetime, workspace: str) -> bool:
        """pending → submitting, if it is of this workspace."""
        return self._move(
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
        self,
        line: RenderQueries,
        now: datetime,
        named: UUID,
        *,
        workspace: str,
        within: int,
        limit: int,
    ) -> list[UUID]:
        """Claim up to `limit`, and no more than `within`, the first in a workspace's line; `named`
        before the others, if it is among the first `within`.

        By statements that pass over rows which others hold, where the database can; elsewhere each
        by a conditional UPDATE. No two callers get one row.
        """
        line, most = line.filter(workspace=workspace), min(limit, within)
        turns = line.values("pk")[: min(within, MOST_AHEAD)]
        its_turn = line.filter(pk=named, pk__in=turns)
        if not connections[self.db].features.has_select_for_update_skip_locked:
            wanted = dict.fromkeys([*its_turn.pks(1), *line.pks(most)])
            return [pk for pk in list(wanted)[:most] if self.claim(pk, now, workspace)]
        taken = self._claim_unlocked(its_turn[:1], now, workspace)
        if len(taken) < most:  # where others hold some of the first, whoever comes after them
            taken += self._claim_unlocked(line[: most - len(taken)], now, workspace)
        return taken

    def freeze_request(
        self, pk: UUID, claimed_at: datetime, path: str, body: str, *, by_webhook: bool = False
    ) -> bool:
        """Fix what is sent, once, by the one who holds the claim.

        So a row without a body was certainly never sent, even if its claimer is only slow.
        """
        return self._move(
            pk,
            [Status.SUBMITTING],
            None,
            where=Q(request_body="", claimed_at=claimed_at),
            request_path=path,
            request_body=body,
            by_webhook=by_webhook,
        )

    def record_submitted(
        self,
        pk: UUID,
        now: datetime,
        *,
        job_id: str,
        sume_status: str,
        hit: bool,
        next_poll_at: datetime,
    ) -> bool:
        """pending or submitting → submitted.

        Not guarded by the claim: the same key means the same job, so a late answer is welcome.
        """
        return self._move(
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
        self,
        pk: UUID,
        claimed_at: datetime,
        *,
        not_before: datetime,
        code: str,
        message: str,
        unknown_at: datetime | None = None,
    ) -> bool:
        """submitting → pending, to be sent again; `unknown_at` if Sume may hold the job."""
        changes: dict[str, Any] = {"outcome_unknown_at": unknown_at} if unknown_at else {}
        return self._move(
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

    def reap(self, pk: UUID, now: datetime, age: float) -> bool:
        """submitting for longer than `age` seconds → pending.

        The outcome is unknown, unless its request was not frozen: then nothing was sent.
        """
        stuck = Q(claimed_at__lt=now - timedelta(seconds=age))
        words = "The worker that was sending it died or took too long"
        moved = {"status": Status.PENDING, "claimed_at": None, "swept_at": now}
        unsent, sent = stuck & Q(request_body=""), stuck & ~Q(request_body="")
        return self._move(
            pk,
            [Status.SUBMITTING],
            ("put back", f"{words}; nothing was sent."),
            where=unsent,
            **moved,
        ) or self._move(
            pk,
            [Status.SUBMITTING],
            ("put back", f"{words}; Sume may hold it."),
            where=sent,
            outcome_unknown_at=now,
            **moved,
        )

    def refuse(
        self,
        pk: UUID,
        claimed_at: datetime,
        now: datetime,
        *,
        code: str,
        message: str,
        key_taken: bool = False,
    ) -> bool:
        """submitting → failed: Sume will never take this request.

        If an earlier try ended without a clear answer, or Sume has another request under this key
        (`key_taken`), Sume may have made it all the same: then the cost is not known.
        """
        claimed = Q(claimed_at=claimed_at)
        sure = claimed & Q(outcome_unknown_at__isnull=True)
        if not key_taken and self._end(
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
        return self._end(
            pk,
            [Status.SUBMITTING],
            now,
            Status.FAILED,
            where=claimed,
            code=OUTCOME_UNKNOWN,
            message="Sume refused this request, but may have accepted an earlier one with the same "
            f"key: it may exist, and be billed. {LOOK} Sume said: {message} ({code})",
        )

    def resend(self, pk: UUID, now: datetime) -> bool:
        """failed without a known outcome → pending: to be sent again, with its key and body."""
        return self._move(
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

    def give_up(self, pk: UUID, now: datetime) -> bool:
        """pending → failed: Sume has not taken it in time."""
        known = {
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
            self._end(
                pk,
                [Status.PENDING],
                now,
                Status.FAILED,
                where=Q(outcome_unknown_at__isnull=is_known, held_at__isnull=True),
                **words,
            )
            for is_known, words in ((True, known), (False, unknown))
        )

    def put_aside(self, pks: Iterable[UUID], why: str) -> list[UUID]:
        """Take these out of the line until they fit into a budget.

        Not where Sume may hold the job: it is counted already, and sent again.
        """
        return self._move_many(
            pks,
            [Status.PENDING],
            (PUT_ASIDE, why),
            where=Q(turn__isnull=False, outcome_unknown_at__isnull=True),
            turn=None,
            error_code=OVER_BUDGET,
            error_message=why,
        )

    def take_back(self, pks: Iterable[UUID], now: datetime) -> list[UUID]:
        """Clear the reason of those that were put aside and fit now, before they get a turn again.

        They have all the time that a new render has.
        """
        return self._move_many(
            pks,
            [Status.PENDING],
            (BACK_IN_LINE, ""),
            where=Q(held_at__isnull=True, turn__isnull=True),
            released_at=now,
            error_code="",
            error_message="",
        )

    def recall(self, workspace: str) -> int:
        """Let all of it that wait after a refusal be sent as soon as there is room."""
        theirs = self.waiting().filter(workspace=workspace, not_before__isnull=False)
        return theirs.update(not_before=None)

    def _claim_unlocked(self, picked: RenderQueries, now: datetime, workspace: str) -> list[UUID]:
        """pending → submitting in one statement, past all rows that somebody else holds."""
        from renders.models import RenderEvent

        rows = picked.select_for_update(skip_locked=True).values("pk")
        chosen, values = rows.query.get_compiler(self.db).as_sql()
        table, events = self.model._meta.db_table, RenderEvent._meta.db_table
        with connections[self.db].cursor() as cursor:
            # MATERIALIZED: chosen once, whatever plan the database makes.
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
