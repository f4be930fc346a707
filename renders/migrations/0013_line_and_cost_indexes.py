"""Indexes of the line, of budgets and of costs. On PostgreSQL, built while others write.

It runs in no transaction: if it is interrupted, run it again.
"""

from django.db import migrations, models

from ._concurrently import AddIndexConcurrently, RemoveIndexConcurrently

NOT_FREE = models.Q(("cost_usd_micros", 0), _negated=True)


class Migration(migrations.Migration):
    atomic = False
    dependencies = [("renders", "0012_turns")]

    operations = [
        AddIndexConcurrently(
            model_name="renderjob",
            index=models.Index(
                models.F("workspace"),
                models.OrderBy(models.F("priority"), descending=True),
                models.F("turn"),
                models.F("created_at"),
                condition=models.Q(
                    ("held_at__isnull", True), ("status", "pending"), ("turn__isnull", False)
                ),
                name="renders_line",
            ),
        ),
        AddIndexConcurrently(
            model_name="renderjob",
            index=models.Index(
                condition=models.Q(("held_at__isnull", True), ("status", "pending")),
                fields=["workspace", "created_by", "priority", "turn"],
                name="renders_waiting",
            ),
        ),
        AddIndexConcurrently(
            model_name="renderjob",
            index=models.Index(
                condition=models.Q(("claimed_at__isnull", False)),
                fields=["workspace", "priority", "-turn"],
                name="renders_claimed",
            ),
        ),
        AddIndexConcurrently(
            model_name="renderjob",
            index=models.Index(
                condition=models.Q(
                    ("held_at__isnull", True), ("status", "pending"), ("turn__isnull", True)
                ),
                fields=["workspace", "created_by", "kind", "model"],
                name="renders_over_budget",
            ),
        ),
        AddIndexConcurrently(
            model_name="renderjob",
            index=models.Index(
                condition=models.Q(("finished_at__isnull", False), NOT_FREE),
                fields=["workspace", "finished_at", "kind", "model", "cost_usd_micros"],
                name="renders_costs",
            ),
        ),
        AddIndexConcurrently(
            model_name="renderjob",
            index=models.Index(
                condition=models.Q(
                    ("created_by__isnull", False), ("finished_at__isnull", False), NOT_FREE
                ),
                fields=[
                    "workspace",
                    "created_by",
                    "finished_at",
                    "kind",
                    "model",
                    "cost_usd_micros",
                ],
                name="renders_costs_of_user",
            ),
        ),
        AddIndexConcurrently(
            model_name="renderjob",
            index=models.Index(
                condition=models.Q(("cost_usd_micros__gt", 0)),
                fields=["kind", "model", "-cost_usd_micros"],
                name="renders_dearest",
            ),
        ),
        RemoveIndexConcurrently(model_name="renderjob", name="renders_pending"),
        RemoveIndexConcurrently(model_name="renderjob", name="renders_pending_of_user"),
        RemoveIndexConcurrently(model_name="renderjob", name="renders_served"),
        RemoveIndexConcurrently(model_name="renderjob", name="renders_billed"),
    ]
