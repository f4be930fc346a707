"""Tags that order the line, when the clock of the submit deadline stood still, and permissions.

Columns with constant defaults, so no row is written: what waits already has the lowest tag and
goes first, by age. The indexes come in the next migration, which runs in no transaction.
"""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("renders", "0011_avatars")]

    operations = [
        migrations.AddField(
            model_name="renderjob",
            name="turn",
            field=models.BigIntegerField(
                db_default=0,
                default=0,
                editable=False,
                help_text="Its tag in the line, lower first; empty while it does not fit into a budget.",
                null=True,
            ),
        ),
        migrations.AddField(
            model_name="gate",
            name="standstills",
            field=models.JSONField(
                db_default=models.Value([], models.JSONField()),
                default=list,
                editable=False,
                help_text="When the clock of the submit deadline stood still: see submit_deadline.",
            ),
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
                    ("prioritize_renderjob", "Can give a render a priority above 0"),
                    ("exceed_waiting_limit", "Can have any number of renders waiting"),
                ],
            },
        ),
    ]
