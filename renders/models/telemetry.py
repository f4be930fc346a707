"""Counts and heartbeats of all processes, kept in the database.

The counts are stored here only if no Redis is used.
"""

from collections.abc import Mapping

from django.db import connections, models


class TallyQuerySet(models.QuerySet):
    """The queries of `renders.telemetry.store`."""

    def add(self, counts: Mapping[str, int]) -> None:
        """Add to the counts, in one statement; sorted, so that two callers cannot deadlock."""
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
        """All counts, by name."""
        return dict(self.values_list("name", "value"))


class Tally(models.Model):
    """One count: `renders.telemetry.metrics` defines the names."""

    name = models.CharField(max_length=200, primary_key=True, editable=False)
    value = models.BigIntegerField(default=0, editable=False)

    objects = TallyQuerySet.as_manager()

    class Meta:
        verbose_name_plural = "tallies"

    def __str__(self) -> str:
        return f"{self.name} {self.value}"


class Heartbeat(models.Model):
    """One row for each kind of work that must keep running, written by the process that does it."""

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
