"""How a row changes: one conditional UPDATE, and its line in the timeline."""

from collections.abc import Iterable
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db import transaction
from django.db.models import Q

from renders.queries import RenderQueries

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
