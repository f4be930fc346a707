"""What all workers know of the gate."""

from django.conf import settings
from django.db import models

from renders.states import Sort


class Gate(models.Model):
    """What all workers know of one sort of requests to Sume; the rules are in `renders.gate`."""

    sort = models.CharField(max_length=10, choices=Sort.choices, primary_key=True, editable=False)
    paused_until = models.DateTimeField(null=True, editable=False)
    code = models.CharField(max_length=100, blank=True, editable=False)
    reason = models.CharField(max_length=500, blank=True, editable=False)
    # Pauses in a row because key or account were refused: one request at a time tries then.
    refusals = models.PositiveIntegerField(default=0, editable=False)
    # Pauses in a row for which Sume named no time.
    back_offs = models.PositiveIntegerField(default=0, editable=False)
    probe_until = models.DateTimeField(null=True, editable=False)  # somebody tries
    wake_at = models.DateTimeField(
        null=True, editable=False, help_text="When a message that waits goes on with the line."
    )
    held_at = models.DateTimeField(null=True, editable=False, help_text="When a person paused it.")
    held_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL, editable=False
    )
    capacity = models.IntegerField(
        null=True, editable=False, help_text="Places left in Sume's queue, as last told."
    )
    capacity_at = models.DateTimeField(null=True, editable=False)
    # Reads taken from the budget of one span of time, counted here where there is no Redis.
    span = models.BigIntegerField(default=0, editable=False)
    span_taken = models.PositiveIntegerField(default=0, editable=False)

    class Meta:
        verbose_name_plural = "gate"

    def __str__(self) -> str:
        return self.get_sort_display()
