"""Operations on indexes that, on PostgreSQL, let others write meanwhile.

They run in no transaction (`atomic = False`): if one is interrupted, run the migration again.
"""

from django.db import migrations


class AddIndexConcurrently(migrations.AddIndex):
    """As `AddIndex`; on PostgreSQL without a lock, and also after an interrupted try."""

    def database_forwards(self, app_label, schema_editor, from_state, to_state):
        model = to_state.apps.get_model(app_label, self.model_name)
        if self.allow_migrate_model(schema_editor.connection.alias, model):
            _drop(schema_editor, self.index)  # an interrupted try leaves one that is not valid
            _add(schema_editor, model, self.index)

    def database_backwards(self, app_label, schema_editor, from_state, to_state):
        model = from_state.apps.get_model(app_label, self.model_name)
        if self.allow_migrate_model(schema_editor.connection.alias, model):
            _drop(schema_editor, self.index)


class RemoveIndexConcurrently(migrations.RemoveIndex):
    """As `RemoveIndex`; on PostgreSQL without a lock, and also after an interrupted try."""

    def database_forwards(self, app_label, schema_editor, from_state, to_state):
        model = from_state.apps.get_model(app_label, self.model_name)
        if self.allow_migrate_model(schema_editor.connection.alias, model):
            state = from_state.models[app_label, self.model_name_lower]
            _drop(schema_editor, state.get_index_by_name(self.name))

    def database_backwards(self, app_label, schema_editor, from_state, to_state):
        model = to_state.apps.get_model(app_label, self.model_name)
        if self.allow_migrate_model(schema_editor.connection.alias, model):
            index = to_state.models[app_label, self.model_name_lower].get_index_by_name(self.name)
            _drop(schema_editor, index)
            _add(schema_editor, model, index)


def _add(schema_editor, model, index):
    if schema_editor.connection.vendor == "postgresql":
        schema_editor.add_index(model, index, concurrently=True)
    else:
        schema_editor.add_index(model, index)


def _drop(schema_editor, index):
    while_others_write = "CONCURRENTLY " * (schema_editor.connection.vendor == "postgresql")
    schema_editor.execute(f"DROP INDEX {while_others_write}IF EXISTS {index.name}")
