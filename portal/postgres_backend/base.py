"""A column that a migration adds keeps its default in the database.

Django drops it, for it gives the value itself. But while a new version is put in place, processes of the old one still write rows,
and know nothing of the column: without a default the database refuses all of them.
"""

from __future__ import annotations

from typing import Any

from django.db.backends.postgresql import base, schema


class DatabaseSchemaEditor(schema.DatabaseSchemaEditor):
    """See above."""

    def skip_default_on_alter(self, field: Any) -> bool:
        """Whether the default stays as it was made with the column."""
        return True


class DatabaseWrapper(base.DatabaseWrapper):
    """See above."""

    SchemaEditorClass = DatabaseSchemaEditor
