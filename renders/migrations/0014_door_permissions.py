"""Permissions to give a priority, and to have any number of renders waiting."""

from django.db import migrations


class Migration(migrations.Migration):
    dependencies = [
        ("renders", "0013_line_indexes"),
    ]

    operations = [
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
