"""The index of the dearest cost of each model. On PostgreSQL, built while others write.

It runs in no transaction: if it is interrupted, run it again.
"""

from django.db import migrations, models


class AddIndexConcurrently(migrations.AddIndex):
    """As `AddIndex`; on PostgreSQL without a lock, and also where a try was interrupted."""

    atomic = False

    def database_forwards(self, app_label, schema_editor, from_state, to_state):
        if schema_editor.connection.vendor != "postgresql":
            super().database_forwards(app_label, schema_editor, from_state, to_state)
            return
        model = to_state.apps.get_model(app_label, self.model_name)
        if self.allow_migrate_model(schema_editor.connection.alias, model):
            # An interrupted try leaves an index that is not valid.
            schema_editor.execute(f"DROP INDEX CONCURRENTLY IF EXISTS {self.index.name}")
            schema_editor.add_index(model, self.index, concurrently=True)

    def database_backwards(self, app_label, schema_editor, from_state, to_state):
        if schema_editor.connection.vendor != "postgresql":
            super().database_backwards(app_label, schema_editor, from_state, to_state)
            return
        model = from_state.apps.get_model(app_label, self.model_name)
        if self.allow_migrate_model(schema_editor.connection.alias, model):
            schema_editor.execute(f"DROP INDEX CONCURRENTLY IF EXISTS {self.index.name}")


class Migration(migrations.Migration):
    atomic = False
    dependencies = [("renders", "0011_avatars")]

    operations = [
        AddIndexConcurrently(
            model_name="renderjob",
            index=models.Index(
                condition=models.Q(("cost_usd_micros__gt", 0)),
                fields=["kind", "model", "-cost_usd_micros"],
                name="renders_dearest",
            ),
        ),
    ]
