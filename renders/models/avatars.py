"""Avatars made here, each with its owner: others may use one only once staff released it."""

from django.conf import settings
from django.db import models
from django.utils import timezone

from renders.states import DEFAULT_WORKSPACE


class Avatar(models.Model):
    """An avatar at one Sume account: for its owner only, until staff releases it to everybody."""

    workspace = models.CharField(max_length=40, default=DEFAULT_WORKSPACE, editable=False)
    handle = models.CharField(max_length=100, help_text="Its name at Sume, without @.")
    owner = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        null=True,
        blank=True,
        on_delete=models.SET_NULL,
        related_name="+",
    )
    released = models.BooleanField(
        default=False, help_text="Everybody may have it speak in avatar videos."
    )
    created_at = models.DateTimeField(default=timezone.now, editable=False)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["workspace", "handle"], name="renders_avatar_unique")
        ]

    def __str__(self) -> str:
        return f"@{self.handle}"
