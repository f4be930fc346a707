"""What Sume told by webhook: each event once."""

from datetime import datetime

from django.db import models
from django.utils import timezone


class WebhookEventQuerySet(models.QuerySet):
    """What the app asks the table."""

    def record(self, event_id: str, *, type: str, job_id: str) -> bool:
        """Keep an event; False if it is there already."""
        known = {"type": type, "job_id": job_id}
        _, new = self.get_or_create(event_id=event_id, defaults=known)
        return new

    def about(self, job_id: str) -> "WebhookEventQuerySet":
        """The events of one job."""
        return self.filter(job_id=job_id)

    def prune(self, before: datetime, limit: int) -> int:
        """Delete up to `limit` events that came before that time."""
        old = self.filter(received_at__lt=before).order_by("received_at")
        return self.filter(pk__in=list(old.values_list("pk", flat=True)[:limit])).delete()[0]


class WebhookEvent(models.Model):
    """One event of Sume's. It says that there is something to read, and is never believed more."""

    event_id = models.CharField(max_length=200, unique=True, editable=False)
    type = models.CharField(max_length=100, blank=True, editable=False)
    job_id = models.CharField(
        max_length=200, blank=True, editable=False, help_text="Empty where the event names none."
    )
    received_at = models.DateTimeField(default=timezone.now, editable=False)

    objects = WebhookEventQuerySet.as_manager()

    class Meta:
        indexes = [
            models.Index(fields=["received_at"], name="renders_event_received"),
            models.Index(
                fields=["job_id"], name="renders_event_job", condition=~models.Q(job_id="")
            ),
        ]

    def __str__(self) -> str:
        return f"{self.type or 'event'} {self.event_id}"
