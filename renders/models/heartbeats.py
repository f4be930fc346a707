"""What ran last, and when."""

from django.db import models


class Heartbeat(models.Model):
    """One row for each sort of work that must go on; whoever does it writes it."""

    name = models.CharField(max_length=60, primary_key=True, editable=False)
    at = models.DateTimeField(
        editable=False, help_text="When it last ran, by the clock of who did it."
    )
    stored_at = models.DateTimeField(
        editable=False, help_text="The same moment by the database's clock."
    )
    host = models.CharField(
        max_length=200, blank=True, editable=False, help_text="The machine that did it."
    )

    def __str__(self) -> str:
        return self.name
