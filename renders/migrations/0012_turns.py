"""Tags that order the line, and when the clock of the submit deadline stood still.

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
    ]
