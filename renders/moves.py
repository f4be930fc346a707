"""How a row changes: one conditional UPDATE, and its line in the timeline."""

from collections.abc import Iterable
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db import connections, transaction
from django.db.models import Q

from renders.queries import RenderQueries, note_of

ANY = Q()


class Moves(RenderQueries):
    """What the transitions in `querysets` are made of."""

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
        ended = self._ended(now, status, code=code, message=message)
        return self._move(pk, states, (status, message), where=where, **ended, **changes)

    def _ended(self, now: datetime, status: str, *, code: str, message: str) -> dict[str, Any]:
        """What changes when a render ends, however."""
        return {
            "status": status,
            "finished_at": now,
            "next_poll_at": now,
            "failed_reads": 0,
            "swept_at": None,
            "held_at": None,
            "error_code": code[:100],
            "error_message": message,
        }

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

    def _move_many(
        self,
        pks: Iterable[UUID],
        states: Iterable[str],
        event: tuple[str, str],
        *,
        where: Q,
        **changes: Any,
    ) -> list[UUID]:
        """As `_move`, for many at once; returns those that this caller won.

        Nobody waits for one row while holding others, so no two callers wait for each other:
        what somebody else holds just now is passed over, and then moved by itself. Inside a
        transaction of the caller's, which may hold others, it is passed over for good.
        """
        from renders.models import RenderEvent

        what, detail = event
        rows = self.filter(where, pk__in=list(pks), status__in=list(states))
        skips = connections[self.db].features.has_select_for_update_skip_locked
        holds_others = connections[self.db].in_atomic_block
        with transaction.atomic(using=self.db):
            won = list(
                rows.select_for_update(no_key=skips, skip_locked=skips).values_list("pk", flat=True)
            )
            self.filter(pk__in=won).update(**changes)
            RenderEvent.objects.using(self.db).bulk_create(
                [RenderEvent(render_id=pk, what=what, detail=detail[:500]) for pk in won]
            )
        if holds_others or not skips:
            return won
        passed_over = set(rows.values_list("pk", flat=True)).difference(won)
        one_by_one = [
            pk for pk in passed_over if self._move(pk, states, event, where=where, **changes)
        ]
        return [*won, *one_by_one]

    def log_post(self, pk: UUID, what: str, workspace: str) -> None:
        """Add the line of one POST, which counts against that workspace's minute."""
        self.log(pk, what, note_of(workspace))

    def log(self, pk: UUID, what: str, detail: str = "") -> None:
        """Add a line to the render's timeline."""
        from renders.models import RenderEvent

        RenderEvent.objects.using(self.db).create(render_id=pk, what=what, detail=detail[:500])
