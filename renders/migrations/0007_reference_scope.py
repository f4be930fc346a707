"""Whose a reference is, and which installation this is. Additive, and takes no long lock."""

import uuid

from django.db import migrations, models


def store_id(apps, schema_editor):
    """Now, and not at first use: a backup must hold the id that keys follow from."""
    objects = apps.get_model("renders", "Installation")._base_manager
    objects.using(schema_editor.connection.alias).get_or_create(row=1)


class Migration(migrations.Migration):
    dependencies = [("renders", "0006_workspaces")]

    operations = [
        migrations.AddField(
            model_name="renderjob",
            name="reference_scope",
            field=models.CharField(
                # Of the rows that there are, and of those that the release before still makes.
                db_default="",
                default="code",
                editable=False,
                help_text="Whose reference it is: the site's own code, or one user's.",
                max_length=200,
            ),
        ),
        migrations.CreateModel(
            name="Installation",
            fields=[
                (
                    "row",
                    models.PositiveSmallIntegerField(
                        default=1, editable=False, primary_key=True, serialize=False
                    ),
                ),
                ("uuid", models.UUIDField(default=uuid.uuid4, editable=False)),
            ],
            options={"default_permissions": ()},
        ),
        migrations.RunPython(store_id, migrations.RunPython.noop),
    ]
