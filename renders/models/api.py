"""What the API has answered under an `Idempotency-Key`."""

from datetime import datetime

from django.conf import settings
from django.db import models
from django.utils import timezone


class ApiRequests(models.QuerySet):
    """What is asked of the table of answered requests."""

    def prune(self, made_before: datetime, batch: int) -> int:
        """Forget the oldest of those made before this time, at most `batch`."""
        old = self.filter(created_at__lt=made_before).order_by("created_at")
        keys = list(old.values_list("pk", flat=True)[:batch])
        return self.filter(pk__in=keys).delete()[0] if keys else 0


class ApiRequest(models.Model):
    """One request that made renders: whoever repeats it with its key gets the same renders."""

    user = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="+", editable=False
    )
    key = models.CharField(max_length=255, editable=False)
    body_hash = models.CharField(
        max_length=64, editable=False, help_text="SHA-256 of the canonical body, in hexadecimal."
    )
    render_ids = models.JSONField(default=list, editable=False)
    created_at = models.DateTimeField(default=timezone.now, editable=False)

    objects = ApiRequests.as_manager()

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["user", "key"], name="renders_api_request_unique"),
        ]
        indexes = [models.Index(fields=["created_at"], name="renders_api_request_age")]

    def __str__(self) -> str:
        return self.key
