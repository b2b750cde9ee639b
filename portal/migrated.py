"""Whether the database has the tables that this version works with. Several processes start at once; one of them makes them."""

from __future__ import annotations

import threading
from collections.abc import Callable

import structlog
from django.db import DatabaseError, connections
from django.db.migrations.executor import MigrationExecutor

log = structlog.get_logger(__name__)
PAUSE = 2.0
"""Seconds between two looks at a database that is not ready."""
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


def after(run: Callable[[threading.Event], None]) -> Callable[[threading.Event], None]:
    """The same run, begun once the tables are there: without them all would be refused, and some of it not tried again."""

    def waiting(stop: threading.Event) -> None:
        said = ""
        while not stop.is_set():
            try:
                missing = lacks()
            except DatabaseError as error:
                missing = f"does not answer: {str(error).strip()}"
            if not missing:
                run(stop)
                return
            if missing != said:
                said = missing
                log.warning("waiting for the database", why=f"it {missing}")
            connections.close_all()
            stop.wait(PAUSE)

    return waiting
