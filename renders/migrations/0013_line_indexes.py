"""The line is ordered by tags. On PostgreSQL, its indexes are built while others write.

It runs in no transaction: if it is interrupted, run it again.
"""

from django.db import migrations, models

from ._concurrently import AddIndexConcurrently, RemoveIndexConcurrently


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
        RemoveIndexConcurrently(model_name="renderjob", name="renders_pending"),
        RemoveIndexConcurrently(model_name="renderjob", name="renders_pending_of_user"),
        RemoveIndexConcurrently(model_name="renderjob", name="renders_served"),
    ]
