"""Counts of all processes, where there is no Redis to keep them.

What ran last, and when.
"""

from collections.abc import Mapping

from django.db import connections, models


class TallyQuerySet(models.QuerySet):
    """What `renders.telemetry.store` asks the table."""

    def add(self, counts: Mapping[str, int]) -> None:
        """Add to these, in one statement; sorted, so that two callers never wait for each other."""
        table = self.model._meta.db_table
        words = [word for item in sorted(counts.items()) for word in item]
        rows = ", ".join(["(%s, %s)"] * len(counts))
        with connections[self.db].cursor() as cursor:
            cursor.execute(
                f"INSERT INTO {table} (name, value) VALUES {rows} "  # noqa: S608 (no value in it)
                f"ON CONFLICT (name) DO UPDATE SET value = {table}.value + EXCLUDED.value",
                words,
            )

    def totals(self) -> dict[str, int]:
        """All of them."""
        return dict(self.values_list("name", "value"))


class Tally(models.Model):
    """One count; what it counts is said in `renders.telemetry.metrics`."""

    name = models.CharField(max_length=200, primary_key=True, editable=False)
    value = models.BigIntegerField(default=0, editable=False)

    objects = TallyQuerySet.as_manager()

    class Meta:
        verbose_name_plural = "tallies"

    def __str__(self) -> str:
        return f"{self.name} {self.value}"


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
