"""Two things that matter where many processes share a database which is restarted, and upgraded, under them.

A column that a migration adds keeps its default in the database. Django drops it, for it gives the value itself. But while a new
version is put in place, processes of the old one still write rows, and know nothing of the column: without a default the
database refuses all of them.

A connection that broke is made anew at the next use, outside of a transaction. Django looks for broken ones at the beginning and
end of requests; threads that have none would find it broken for ever.
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

    def ensure_connection(self) -> None:
        """Be connected."""
        if self.connection is not None and self.connection.closed and not self.in_atomic_block:
            self.close()
        super().ensure_connection()
