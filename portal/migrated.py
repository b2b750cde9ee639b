"""Whether the database has the tables that this version works with. Several processes start at once; one of them makes them."""

from __future__ import annotations

from django.core.management import CommandError
from django.db import DatabaseError, connections
from django.db.migrations.executor import MigrationExecutor

_known = False


def lacks() -> str:
    """What is missing, in words; empty when nothing is, which is asked of the database once. Raises DatabaseError."""
    global _known
    if _known:
        return ""
    executor = MigrationExecutor(connections["default"])
    plan = executor.migration_plan(executor.loader.graph.leaf_nodes())
    _known = not plan
    return f"lacks {len(plan)} migrations (manage.py migrate)" if plan else ""


def need() -> None:
    """End a command that would work without its tables. Raises CommandError."""
    try:
        missing = lacks()
    except DatabaseError as error:
        raise CommandError(f"the database does not answer: {str(error).strip()}") from None
    if missing:
        raise CommandError(f"the database {missing}")
