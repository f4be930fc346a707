"""When a late try to store media is due. Additive: a column without a default, so no row is written.

The indexes come in the migration after, which runs in no transaction.
"""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("renders", "0008_reference_of_scope")]

    operations = [
        migrations.AddField(
            model_name="renderjob",
            name="media_due_at",
            field=models.DateTimeField(
                editable=False, help_text="When a late try to store its media is due.", null=True
            ),
        ),
    ]
