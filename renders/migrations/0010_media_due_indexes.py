"""Indexes of media that wait for a late try, or are lost. On PostgreSQL, built while others write.

It runs in no transaction: if it is interrupted, run it again.
"""

from django.db import migrations, models

from ._concurrently import AddIndexConcurrently


class Migration(migrations.Migration):
    atomic = False
    dependencies = [("renders", "0009_media_due")]

    operations = [
        AddIndexConcurrently(
            model_name="renderjob",
            index=models.Index(
                condition=models.Q(("media_due_at__isnull", False)),
                fields=["media_due_at"],
                name="renders_media_due",
            ),
        ),
        AddIndexConcurrently(
            model_name="renderevent",
            index=models.Index(
                condition=models.Q(("what", "media lost")),
                fields=["at"],
                name="renders_media_lost",
            ),
        ),
    ]
