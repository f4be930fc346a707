"""The webhook events received from Sume, each stored once."""

from datetime import datetime

from django.db import models
from django.utils import timezone

from renders.states import DEFAULT_WORKSPACE


class WebhookEventQuerySet(models.QuerySet):
    """Named queries on the events."""

    def record(self, workspace: str, event_id: str, *, type: str, job_id: str) -> bool:
        """Store an event of a workspace; False if it is stored already."""
        facts = {"type": type, "job_id": job_id}
        _, new = self.get_or_create(workspace=workspace, event_id=event_id, defaults=facts)
        return new

    def about(self, workspace: str, job_id: str) -> "WebhookEventQuerySet":
        """The events of one job of a workspace."""
        return self.filter(workspace=workspace, job_id=job_id)

    def prune(self, before: datetime, limit: int) -> int:
        """Delete up to `limit` events received before that time; returns how many."""
        old = self.filter(received_at__lt=before).order_by("received_at")
        return self.filter(pk__in=list(old.values_list("pk", flat=True)[:limit])).delete()[0]


class WebhookEvent(models.Model):
    """One event of Sume's. It only triggers a read: its content is not trusted."""

    event_id = models.CharField(max_length=200, editable=False)
    workspace = models.CharField(
        max_length=40,
        default=DEFAULT_WORKSPACE,
        db_default=DEFAULT_WORKSPACE,
        editable=False,
        help_text="Whose secret signed it.",
    )
    type = models.CharField(max_length=100, blank=True, editable=False)
    job_id = models.CharField(
        max_length=200, blank=True, editable=False, help_text="Empty where the event names none."
    )
    received_at = models.DateTimeField(default=timezone.now, editable=False)

    objects = WebhookEventQuerySet.as_manager()

    class Meta:
        constraints = [
            # The id first, so that the index also serves look-ups by id alone.
            models.UniqueConstraint(
                fields=["event_id", "workspace"], name="renders_webhook_event_unique"
            )
        ]
        indexes = [
            models.Index(fields=["received_at"], name="renders_event_received"),
            models.Index(
                fields=["job_id"], name="renders_event_job", condition=~models.Q(job_id="")
            ),
        ]

    def __str__(self) -> str:
        return f"{self.type or 'event'} {self.event_id}"
