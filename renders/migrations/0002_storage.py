"""How PostgreSQL keeps the tables whose rows change often; other databases have no such settings.

Room on each page lets an UPDATE that changes nothing indexed stay there, without touching an
index (HOT). Vacuum comes after a fixed share of changes that is small where the table is large:
the small indexes of what waits and runs are searched all the time, and shall not fill with the
dead.
"""

from django.db import migrations

STORAGE = {
    "RenderJob": {
        "fillfactor": 85,
        "autovacuum_vacuum_threshold": 1000,
        "autovacuum_vacuum_scale_factor": 0.01,
        "autovacuum_vacuum_insert_scale_factor": 0.02,
        "autovacuum_analyze_threshold": 1000,
        "autovacuum_analyze_scale_factor": 0.01,
    },
    # Lines are added and stay: vacuum marks them as seen by all, for scans of the index alone.
    "RenderEvent": {
        "autovacuum_vacuum_insert_scale_factor": 0.02,
        "autovacuum_analyze_scale_factor": 0.02,
    },
    # Two rows, which every claim locks and many change.
    "Gate": {
        "fillfactor": 10,
        "autovacuum_vacuum_threshold": 100,
        "autovacuum_vacuum_scale_factor": 0,
    },
}


def set_storage(apps, schema_editor):
    for table, values in _tables(apps, schema_editor):
        settings = ", ".join(f"{name} = {value}" for name, value in values.items())
        schema_editor.execute(f"ALTER TABLE {table} SET ({settings})")


def reset_storage(apps, schema_editor):
    for table, values in _tables(apps, schema_editor):
        schema_editor.execute(f"ALTER TABLE {table} RESET ({', '.join(values)})")


def _tables(apps, schema_editor):
    if schema_editor.connection.vendor != "postgresql":
        return
    for name, values in STORAGE.items():
        table = apps.get_model("renders", name)._meta.db_table
        yield schema_editor.quote_name(table), values


class Migration(migrations.Migration):
    dependencies = [("renders", "0001_initial")]

    operations = [migrations.RunPython(set_storage, reset_storage)]
