"""What happened to a render, and when."""

from django.db import models
from django.db.models import Q
from django.utils import timezone

from renders.models.jobs import RenderJob
from renders.models.querysets import EventQuerySet
from renders.states import WRITES


class RenderEvent(models.Model):
    """One line of a render's timeline."""

    render = models.ForeignKey(RenderJob, on_delete=models.CASCADE, related_name="events")
    at = models.DateTimeField(default=timezone.now)
    what = models.CharField(max_length=40)
    detail = models.CharField(max_length=500, blank=True)

    objects = EventQuerySet.as_manager()

    class Meta:
        ordering = ["at", "id"]
        indexes = [
            models.Index(fields=["at"], name="renders_writes", condition=Q(what__in=WRITES)),
            models.Index(
                fields=["at"], name="renders_unstored", condition=Q(what="media not stored")
            ),
            models.Index(fields=["at"], name="renders_media_lost", condition=Q(what="media lost")),
        ]

    def __str__(self) -> str:
        return f"{self.what}: {self.detail}" if self.detail else self.what
