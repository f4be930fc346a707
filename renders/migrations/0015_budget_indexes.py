"""What a workspace and each user has spent, and what waits for a budget, is found by indexes.

It runs in no transaction: if it is interrupted, run it again.
"""

from django.db import migrations, models

from ._concurrently import AddIndexConcurrently, RemoveIndexConcurrently

NOT_FREE = models.Q(("cost_usd_micros", 0), _negated=True)


class Migration(migrations.Migration):
    atomic = False
    dependencies = [("renders", "0014_door_permissions")]

    operations = [
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
        RemoveIndexConcurrently(model_name="renderjob", name="renders_billed"),
    ]
