"""Named queries: what the app asks the table of renders."""

from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from django.db import models
from django.db.models import Q

from renders.states import TERMINAL, Status


class RenderQueries(models.QuerySet):
    """What the app asks the table."""

    def pending(self) -> "RenderQueries":
        """Waiting to be sent."""
        return self.filter(status=Status.PENDING)

    def in_flight(self) -> "RenderQueries":
        """Sent, or being sent, and not ended."""
        return self.filter(status__in=[Status.SUBMITTING, Status.SUBMITTED])

    def terminal(self) -> "RenderQueries":
        """Ended, however."""
        return self.filter(status__in=TERMINAL)

    def unhandled(self) -> "RenderQueries":
        """Ended, but result and signals are not done."""
        return self.terminal().filter(handled_at__isnull=True)

    def due(self, now: datetime) -> "RenderQueries":
        """Pending and free to be sent now, in the order to send them."""
        due = Q(not_before__isnull=True) | Q(not_before__lte=now)
        return self.pending().filter(due).order_by("-priority", "created_at")

    def stuck_submitting(self, now: datetime, age: float) -> "RenderQueries":
        """Claimed more than `age` seconds ago: the claimer is taken for dead."""
        return self.filter(status=Status.SUBMITTING, claimed_at__lt=now - timedelta(seconds=age))

    def overdue(self, now: datetime, grace: float) -> "RenderQueries":
        """Submitted, and the next read is late by more than `grace` seconds."""
        return self.filter(status=Status.SUBMITTED, next_poll_at__lt=now - timedelta(seconds=grace))

    def unhandled_overdue(self, now: datetime, grace: float) -> "RenderQueries":
        """Ended, and the finish is late by more than `grace` seconds."""
        return self.unhandled().filter(next_poll_at__lt=now - timedelta(seconds=grace))

    def not_swept_since(self, moment: datetime) -> "RenderQueries":
        """Not put back by the sweep after `moment`."""
        return self.filter(Q(swept_at__isnull=True) | Q(swept_at__lt=moment))

    def stopped_since(self, moment: datetime) -> "RenderQueries":
        """Neither made, nor free to be sent, nor put back by the sweep after `moment`."""
        return self.not_swept_since(moment).filter(
            Q(not_before__isnull=True) | Q(not_before__lt=moment), created_at__lt=moment
        )

    def pks(self, limit: int) -> list[UUID]:
        """The keys of the first `limit`."""
        return list(self.values_list("pk", flat=True)[:limit])

    def visible_to(self, user: Any) -> "RenderQueries":
        """A person's own renders; all of them for staff who may view them."""
        if not user.is_authenticated:
            return self.none()
        if user.is_staff and user.has_perm("renders.view_renderjob"):
            return self
        return self.filter(created_by=user)
