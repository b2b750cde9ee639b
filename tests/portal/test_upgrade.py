"""A new version is put in place while processes of the old one still write."""

from __future__ import annotations

import pytest
from django.db import connection, migrations, models
from django.db.migrations.loader import MigrationLoader
from django.db.migrations.operations.base import Operation
from django.db.migrations.state import ProjectState

from portal.models import Notice

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.services]


def apply(state: ProjectState, *operations: Operation) -> None:
    """Do them as one migration."""
    with connection.schema_editor() as editor:
        for operation in operations:
            before = state.clone()
            operation.state_forwards("portal", state)
            operation.database_forwards("portal", editor, before, state)


def test_the_old_version_writes_rows_into_a_table_that_has_more_columns_by_now() -> None:
    if connection.vendor != "postgresql":
        pytest.skip("on SQLite there is one process")
    state = ProjectState()
    table = migrations.CreateModel("Told", [("id", models.BigAutoField(primary_key=True)), ("text", models.TextField())])
    more = [
        migrations.AddField("told", "said", models.TextField(blank=True, default="")),
        migrations.AddField("told", "word", models.CharField(max_length=8, blank=True)),
        migrations.AddField("told", "done", models.BooleanField(default=False)),
        migrations.AddField("told", "facts", models.JSONField(default=dict)),
        migrations.AddField("told", "note", models.TextField(null=True)),
    ]
    try:
        apply(state, table, *more)
        with connection.cursor() as cursor:
            cursor.execute("INSERT INTO portal_told (text) VALUES ('by the old version')")
            cursor.execute("SELECT text, said, word, done, facts::text, note FROM portal_told")
            assert cursor.fetchall() == [("by the old version", "", "", False, "{}", None)]
    finally:
        with connection.cursor() as cursor:
            cursor.execute("DROP TABLE IF EXISTS portal_told")


def test_a_column_that_becomes_necessary_is_filled_where_it_was_empty() -> None:
    if connection.vendor != "postgresql":
        pytest.skip("on SQLite there is one process")
    state = ProjectState()
    table = migrations.CreateModel("Told", [("id", models.BigAutoField(primary_key=True)), ("text", models.TextField(null=True))])
    try:
        apply(state, table)
        with connection.cursor() as cursor:
            cursor.execute("INSERT INTO portal_told (text) VALUES (NULL)")
        apply(state, migrations.AlterField("told", "text", models.TextField(default="none")))
        with connection.cursor() as cursor:
            cursor.execute("SELECT text FROM portal_told")
            assert cursor.fetchall() == [("none",)]
    finally:
        with connection.cursor() as cursor:
            cursor.execute("DROP TABLE IF EXISTS portal_told")


def test_every_column_of_this_version_can_be_left_out_by_an_older_one_that_did_not_know_it() -> None:
    """All columns that were added after a table's first version."""
    if connection.vendor != "postgresql":
        pytest.skip("on SQLite there is one process")
    loader = MigrationLoader(connection)
    assert Notice._meta.db_table in connection.introspection.table_names()
    with connection.cursor() as cursor:
        strictly = "is_nullable = 'NO' AND column_default IS NULL"
        cursor.execute(f"SELECT table_name, column_name FROM information_schema.columns WHERE {strictly}")
        strict = set(cursor.fetchall())
    lacking = []
    for (app, name), migration in sorted(loader.disk_migrations.items()):
        if app in ("cluster", "jobs", "queues", "portal"):
            for operation in migration.operations:
                if isinstance(operation, migrations.AddField) and not operation.field.null and not operation.field.many_to_many:
                    table = f"{app}_{operation.model_name_lower}"
                    if (table, operation.name) in strict and operation.field.has_default():
                        lacking.append(f"{app}.{name}: {table}.{operation.name}")
    assert lacking == []
