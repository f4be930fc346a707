"""A reference is unique in its scope. On PostgreSQL, built while others write.

Apart from the migration before, since it runs in no transaction: where it was broken off, it is
run again.
"""

from django.db import migrations, models

ONE_IN_A_SCOPE = models.UniqueConstraint(
    condition=models.Q(("reference__isnull", False)),
    fields=("reference", "reference_scope"),
    name="renders_reference_of_scope",
)


class AddUniqueConcurrently(migrations.AddConstraint):
    """As `AddConstraint`, for a unique one with a condition, which is an index."""

    def database_forwards(self, app_label, schema_editor, from_state, to_state):
        if schema_editor.connection.vendor != "postgresql":
            super().database_forwards(app_label, schema_editor, from_state, to_state)
            return
        model = to_state.apps.get_model(app_label, self.model_name)
        if self.allow_migrate_model(schema_editor.connection.alias, model):
            # What a try that was broken off left behind is not valid.
            schema_editor.execute(f"DROP INDEX CONCURRENTLY IF EXISTS {self.constraint.name}")
            created = str(self.constraint.create_sql(model, schema_editor))
            schema_editor.execute(created.replace("UNIQUE INDEX", "UNIQUE INDEX CONCURRENTLY", 1))


class RemoveUniqueConcurrently(migrations.RemoveConstraint):
    """As `RemoveConstraint`, for a unique one with a condition."""

    def database_forwards(self, app_label, schema_editor, from_state, to_state):
        if schema_editor.connection.vendor != "postgresql":
            super().database_forwards(app_label, schema_editor, from_state, to_state)
            return
        model = to_state.apps.get_model(app_label, self.model_name)
        if self.allow_migrate_model(schema_editor.connection.alias, model):
            schema_editor.execute(f"DROP INDEX CONCURRENTLY IF EXISTS {self.name}")


class Migration(migrations.Migration):
    atomic = False
    dependencies = [("renders", "0007_reference_scope")]

    operations = [
        AddUniqueConcurrently(model_name="renderjob", constraint=ONE_IN_A_SCOPE),
        RemoveUniqueConcurrently(model_name="renderjob", name="renders_reference_unique"),
    ]
