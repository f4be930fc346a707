"""One row per handled signal: exactly-once is counted here."""

from django.db import models


class Effect(models.Model):
    """A receiver ran to its end and its transaction was committed."""

    render_id = models.UUIDField()
    signal = models.CharField(max_length=20)

    def __str__(self) -> str:
        return f"{self.signal} {self.render_id}"
