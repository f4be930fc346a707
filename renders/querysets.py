"""Claims and transitions: every change of a render's state.

A transition is one conditional UPDATE on the state it starts from; it returns whether this
caller won, and only the winner does what follows. No other module writes `status`.
"""

from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from django.db import transaction
from django.db.models import F, Q

from renders.queries import RenderQueries
from renders.states import TERMINAL, Status

ANY = Q()


class RenderQuerySet(RenderQueries):
    """The named queries, and transitions of one row by its primary key."""

    def claim(self, pk: UUID, now: datetime) -> bool:
        """pending → submitting."""
        return self._move(
            pk,
            [Status.PENDING],
            ("sending", ""),
            where=Q(not_before__isnull=True) | Q(not_before__lte=now),
            status=Status.SUBMITTING,
            claimed_at=now,
            submit_attempts=F("submit_attempts") + 1,
        )

    def freeze_request(self, pk: UUID, path: str, body: str) -> bool:
        """Fix what is sent, once; a later caller loses and must send what is stored."""
        return self._move(
            pk,
            [Status.SUBMITTING],
            None,
            where=Q(request_body=""),
            request_path=path,
            request_body=body,
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
        """submitting for longer than `age` seconds → pending; the outcome is unknown."""
        return self._move(
            pk,
            [Status.SUBMITTING],
            ("put back", "The worker that was sending it did not answer for."),
            where=Q(claimed_at__lt=now - timedelta(seconds=age)),
            status=Status.PENDING,
            claimed_at=None,
            outcome_unknown_at=now,
            swept_at=now,
        )

    def refuse(
        self, pk: UUID, claimed_at: datetime, now: datetime, *, code: str, message: str
    ) -> bool:
        """submitting → failed: Sume will never take this request."""
        return self._end(
            pk,
            [Status.SUBMITTING],
            now,
            Status.FAILED,
            where=Q(claimed_at=claimed_at),
            code=code,
            message=message,
        )

    def record_read(
        self, pk: UUID, sequence: int, now: datetime, *, sume_status: str, next_poll_at: datetime
    ) -> bool:
        """Note a read that found the job still running; `sequence` is the `poll_count` known."""
        moved = self._of_sequence(pk, sequence).update(
            poll_count=sequence + 1,
            last_polled_at=now,
            next_poll_at=next_poll_at,
            sume_status=sume_status,
            failed_reads=0,
            not_found_since=None,
            swept_at=None,
        )
        return bool(moved)

    def record_failed_read(
        self,
        pk: UUID,
        sequence: int,
        now: datetime,
        *,
        next_poll_at: datetime,
        not_found_since: datetime | None,
    ) -> bool:
        """Note a read that told nothing; the next one is later."""
        moved = self._of_sequence(pk, sequence).update(
            poll_count=sequence + 1,
            last_polled_at=now,
            next_poll_at=next_poll_at,
            failed_reads=F("failed_reads") + 1,
            not_found_since=not_found_since,
            swept_at=None,
        )
        return bool(moved)

    def end(
        self,
        pk: UUID,
        sequence: int,
        now: datetime,
        status: str,
        *,
        sume_status: str,
        code: str = "",
        message: str = "",
        cost: int | None = None,
    ) -> bool:
        """submitted → completed, failed or canceled, as Sume says."""
        return self._end(
            pk,
            [Status.SUBMITTED],
            now,
            status,
            where=Q(poll_count=sequence),
            code=code,
            message=message,
            sume_status=sume_status,
            cost_usd_micros=cost,
            poll_count=sequence + 1,
            last_polled_at=now,
        )

    def cancel_unsent(self, pk: UUID, now: datetime) -> bool:
        """pending → canceled, where Sume certainly holds no job for it."""
        return self._end(
            pk,
            [Status.PENDING],
            now,
            Status.CANCELED,
            where=Q(outcome_unknown_at__isnull=True),
            code="canceled_before_submit",
            message="Canceled before it was sent to Sume; nothing was billed.",
            cancel_requested_at=now,
        )

    def request_cancel(self, pk: UUID, now: datetime) -> bool:
        """Note that a person wants it canceled; Sume decides."""
        return self._move(
            pk,
            [Status.PENDING, Status.SUBMITTING, Status.SUBMITTED],
            ("cancel requested", ""),
            where=Q(cancel_requested_at__isnull=True),
            cancel_requested_at=now,
        )

    def record_cancel_answer(self, pk: UUID, now: datetime, answer: str) -> bool:
        """Note what Sume said to the request to cancel."""
        return self._move(
            pk,
            [Status.SUBMITTED],
            ("cancel answered", answer),
            where=Q(cancel_answered_at__isnull=True),
            cancel_answered_at=now,
        )

    def store_result(self, pk: UUID, result: dict[str, Any], cost: int | None) -> bool:
        """Keep what was made, until it is handled."""
        changes: dict[str, Any] = {"result": result}
        if cost is not None:
            changes["cost_usd_micros"] = cost
        return self._move(pk, TERMINAL, None, where=Q(handled_at__isnull=True), **changes)

    def store_error(self, pk: UUID, code: str, message: str) -> bool:
        """Keep why it failed, where Sume's status did not say."""
        return self._move(
            pk,
            TERMINAL,
            None,
            where=Q(handled_at__isnull=True, error_code=""),
            error_code=code[:100],
            error_message=message,
        )

    def postpone_finish(self, pk: UUID, failures: int, next_try_at: datetime, message: str) -> bool:
        """Note that finishing failed; `failures` is the count known, as with a read."""
        return self._move(
            pk,
            TERMINAL,
            ("finish postponed", message),
            where=Q(handled_at__isnull=True, failed_reads=failures),
            failed_reads=failures + 1,
            next_poll_at=next_try_at,
            swept_at=None,
        )

    def mark_handled(self, pk: UUID, now: datetime) -> bool:
        """Result and signals are done; call inside the transaction that runs the receivers."""
        return self._move(
            pk,
            TERMINAL,
            ("handled", ""),
            where=Q(handled_at__isnull=True),
            handled_at=now,
            next_poll_at=None,
        )

    def mark_swept(self, pks: Iterable[UUID], now: datetime) -> int:
        """Note that the sweep has put these back to work."""
        return self.filter(pk__in=list(pks)).update(swept_at=now)

    def _of_sequence(self, pk: UUID, sequence: int) -> "RenderQuerySet":
        return self.filter(pk=pk, status=Status.SUBMITTED, poll_count=sequence)

    def _end(
        self,
        pk: UUID,
        states: Iterable[str],
        now: datetime,
        status: str,
        *,
        where: Q,
        code: str,
        message: str,
        **changes: Any,
    ) -> bool:
        return self._move(
            pk,
            states,
            (status, message),
            where=where,
            status=status,
            finished_at=now,
            next_poll_at=now,
            failed_reads=0,
            swept_at=None,
            error_code=code[:100],
            error_message=message,
            **changes,
        )

    def _move(
        self,
        pk: UUID,
        states: Iterable[str],
        event: tuple[str, str] | None,
        *,
        where: Q = ANY,
        **changes: Any,
    ) -> bool:
        """One conditional UPDATE, and its line in the timeline, in one transaction."""
        with transaction.atomic(using=self.db):
            won = bool(self.filter(where, pk=pk, status__in=states).update(**changes))
            if won and event:
                self.log(pk, *event)
        return won

    def log(self, pk: UUID, what: str, detail: str = "") -> None:
        """Add a line to the render's timeline."""
        from renders.models import RenderEvent

        RenderEvent.objects.using(self.db).create(render_id=pk, what=what, detail=detail[:500])
