"""Workspaces. Additive: what the release before knows goes on in the workspace `default`."""

import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("renders", "0005_tally"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.AlterField(
            model_name="gate",
            name="sort",
            field=models.CharField(
                # The release before finds its rows by this column.
                db_column="sort",
                editable=False,
                max_length=60,
                primary_key=True,
                serialize=False,
            ),
        ),
        migrations.RenameField(model_name="gate", old_name="sort", new_name="key"),
        migrations.CreateModel(
            name="UserWorkspace",
            fields=[
                (
                    "user",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.CASCADE,
                        primary_key=True,
                        related_name="+",
                        serialize=False,
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                (
                    "workspace",
                    models.CharField(
                        help_text="Where this person's renders are made.", max_length=40
                    ),
                ),
            ],
            options={
                "verbose_name": "workspace of a user",
                "verbose_name_plural": "workspaces of users",
            },
        ),
        migrations.AlterModelOptions(
            name="renderjob",
            options={
                "ordering": ["-created_at", "-id"],
                "permissions": [
                    ("cancel_renderjob", "Can cancel render job"),
                    ("retry_renderjob", "Can retry render job"),
                    ("hold_renderjob", "Can hold and release render job"),
                    ("choose_workspace", "Can choose the workspace of a render"),
                ],
            },
        ),
        migrations.RemoveIndex(
            model_name="renderjob",
            name="renders_pending",
        ),
        migrations.RemoveIndex(
            model_name="renderjob",
            name="renders_pending_of_user",
        ),
        migrations.AddField(
            model_name="gate",
            name="key_mark",
            field=models.CharField(
                blank=True,
                db_default="",
                default="",
                editable=False,
                help_text="Tells which key was refused; another one is tried at once.",
                max_length=16,
            ),
        ),
        migrations.AddField(
            model_name="renderjob",
            name="workspace",
            field=models.CharField(
                db_default="default",
                default="default",
                editable=False,
                help_text="The Sume account that makes it and is billed.",
                max_length=40,
            ),
        ),
        migrations.AddField(
            model_name="webhookevent",
            name="workspace",
            field=models.CharField(
                db_default="default",
                default="default",
                editable=False,
                help_text="Whose secret signed it.",
                max_length=40,
            ),
        ),
        migrations.AlterField(
            model_name="webhookevent",
            name="event_id",
            field=models.CharField(editable=False, max_length=200),
        ),
        migrations.AddIndex(
            model_name="renderjob",
            index=models.Index(
                models.F("workspace"),
                models.OrderBy(models.F("priority"), descending=True),
                models.F("created_at"),
                condition=models.Q(("held_at__isnull", True), ("status", "pending")),
                name="renders_pending",
            ),
        ),
        migrations.AddIndex(
            model_name="renderjob",
            index=models.Index(
                models.F("workspace"),
                models.F("created_by"),
                models.OrderBy(models.F("priority"), descending=True),
                models.F("created_at"),
                condition=models.Q(("held_at__isnull", True), ("status", "pending")),
                name="renders_pending_of_user",
            ),
        ),
        migrations.AddIndex(
            model_name="renderjob",
            index=models.Index(
                condition=models.Q(("status", "submitted")),
                fields=["workspace", "submitted_at"],
                name="renders_running",
            ),
        ),
        migrations.AddIndex(
            model_name="renderjob",
            index=models.Index(
                condition=models.Q(("status", "completed")),
                fields=["workspace", "finished_at", "kind", "cost_usd_micros"],
                name="renders_billed",
            ),
        ),
        migrations.AddIndex(
            model_name="renderjob",
            index=models.Index(
                condition=models.Q(("workspace", "default"), _negated=True),
                fields=["workspace", "-created_at", "-id"],
                name="renders_newest_of_workspace",
            ),
        ),
        migrations.AddConstraint(
            model_name="webhookevent",
            constraint=models.UniqueConstraint(
                fields=("event_id", "workspace"), name="renders_webhook_event_unique"
            ),
        ),
    ]
