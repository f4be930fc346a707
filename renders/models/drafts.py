"""Lists of renders that were previewed and wait for confirmation."""

from datetime import timedelta

from django.conf import settings
from django.db import models
from django.utils import timezone

KEPT = timedelta(days=1)


class Draft(models.Model):
    """One submitted form of “Add many”: kept from preview to confirmation, and added once."""

    token = models.CharField(max_length=64, primary_key=True, editable=False)
    created_by = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE)
    created_at = models.DateTimeField(default=timezone.now)
    layout = models.CharField(max_length=20)
    text = models.TextField()
    common = models.JSONField(help_text="What holds for all renders unless a line says otherwise.")
    added_at = models.DateTimeField(null=True)

    class Meta:
        default_permissions = ()
        indexes = [models.Index(fields=["created_by", "created_at"], name="renders_drafts_of_user")]

    def __str__(self) -> str:
        return self.token

    @property
    def prefix(self) -> str:
        """The beginning of its renders' references, for lines that name none."""
        return f"form:{self.created_by_id}:{self.token}:"
