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


def add(schema_editor, model, constraint):
    """Create the index, on PostgreSQL while others write."""
    created = str(constraint.create_sql(model, schema_editor))
    if schema_editor.connection.vendor == "postgresql":
        created = created.replace("UNIQUE INDEX", "UNIQUE INDEX CONCURRENTLY", 1)
    schema_editor.execute(created)


def drop(schema_editor, name):
    """Drop the index if it is there."""
    while_others_write = "CONCURRENTLY " * (schema_editor.connection.vendor == "postgresql")
    schema_editor.execute(f"DROP INDEX {while_others_write}IF EXISTS {name}")


class AddUniqueConcurrently(migrations.AddConstraint):
    """As `AddConstraint`, for a unique one with a condition, which is an index."""

    def database_forwards(self, app_label, schema_editor, from_state, to_state):
        model = to_state.apps.get_model(app_label, self.model_name)
        if self.allow_migrate_model(schema_editor.connection.alias, model):
            drop(schema_editor, self.constraint.name)  # what a try that was broken off left
            add(schema_editor, model, self.constraint)

    def database_backwards(self, app_label, schema_editor, from_state, to_state):
        model = to_state.apps.get_model(app_label, self.model_name)
        if self.allow_migrate_model(schema_editor.connection.alias, model):
            drop(schema_editor, self.constraint.name)


class RemoveUniqueConcurrently(migrations.RemoveConstraint):
    """As `RemoveConstraint`, for a unique one with a condition."""

    def database_forwards(self, app_label, schema_editor, from_state, to_state):
        model = to_state.apps.get_model(app_label, self.model_name)
        if self.allow_migrate_model(schema_editor.connection.alias, model):
            drop(schema_editor, self.name)

    def database_backwards(self, app_label, schema_editor, from_state, to_state):
        model = to_state.apps.get_model(app_label, self.model_name)
        if self.allow_migrate_model(schema_editor.connection.alias, model):
            drop(schema_editor, self.name)
            state = to_state.models[app_label, self.model_name_lower]
            add(schema_editor, model, state.get_constraint_by_name(self.name))


class Migration(migrations.Migration):
    atomic = False
    dependencies = [("renders", "0007_reference_scope")]

    operations = [
        AddUniqueConcurrently(model_name="renderjob", constraint=ONE_IN_A_SCOPE),
        RemoveUniqueConcurrently(model_name="renderjob", name="renders_reference_unique"),
    ]
