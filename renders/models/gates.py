"""The gate's rows: the state of pauses, quotas and capacity that all workers share."""

from django.conf import settings
from django.db import models

from renders.states import DEFAULT_WORKSPACE, RequestType


def key_of(workspace: str, sort: RequestType) -> str:
    """The key of a gate's row: `writes` in the default workspace, `acme:writes` in another."""
    return str(sort) if workspace == DEFAULT_WORKSPACE else f"{workspace}:{sort}"


class Gate(models.Model):
    """The shared state of one type of requests to one Sume account.

    The rules are in `renders.limits.gate`.
    """

    key = models.CharField(max_length=60, db_column="sort", primary_key=True, editable=False)
    paused_until = models.DateTimeField(null=True, editable=False)
    code = models.CharField(max_length=100, blank=True, editable=False)
    reason = models.CharField(max_length=500, blank=True, editable=False)
    # Pauses in a row because key or account were refused: then one request at a time is a probe.
    refusals = models.PositiveIntegerField(default=0, editable=False)
    # Pauses in a row for which Sume named no time.
    back_offs = models.PositiveIntegerField(default=0, editable=False)
    key_mark = models.CharField(
        max_length=16,
        blank=True,
        default="",
        db_default="",
        editable=False,
        help_text="Tells which key was refused; another one is tried at once.",
    )
    probe_until = models.DateTimeField(null=True, editable=False)  # a probe is running
    wake_at = models.DateTimeField(
        null=True, editable=False, help_text="When a message that waits goes on with the line."
    )
    held_at = models.DateTimeField(null=True, editable=False, help_text="When a person paused it.")
    held_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL, editable=False
    )
    standstills = models.JSONField(
        default=list,
        db_default=models.Value([], models.JSONField()),
        editable=False,
        help_text="When the clock of the submit deadline stood still: see submit_deadline.",
    )
    capacity = models.IntegerField(
        null=True, editable=False, help_text="Places left in Sume's queue, as last told."
    )
    capacity_at = models.DateTimeField(null=True, editable=False)
    # Reads taken from the quota of one span of time, counted here if there is no Redis.
    span = models.BigIntegerField(default=0, editable=False)
    span_taken = models.PositiveIntegerField(default=0, editable=False)

    class Meta:
        verbose_name_plural = "gate"

    def __str__(self) -> str:
        name = self.sort.label
        return name if self.workspace == DEFAULT_WORKSPACE else f"{name} of {self.workspace}"

    @property
    def sort(self) -> RequestType:
        """The type of requests: reads or writes."""
        return RequestType(self.key.rpartition(":")[2])

    @property
    def workspace(self) -> str:
        """The workspace whose account is asked."""
        return self.key.rpartition(":")[0] or DEFAULT_WORKSPACE
