"""A Django of its own for a bench: an empty data folder, migrated, that is gone afterwards."""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path


@contextlib.contextmanager
def django_in_scratch() -> Iterator[Path]:
    """Set Django up over a temporary folder, on SQLite and in memory; import models only inside."""
    with tempfile.TemporaryDirectory(prefix="basalt-bench-") as folder:
        os.environ |= {"BASALT_DATA": folder, "DJANGO_SETTINGS_MODULE": "portal.settings", "BASALT_LOG": "error"}
        for service in ("DATABASE_URL", "REDIS_URL"):
            os.environ.pop(service, None)
        import django
        from django.core.management import call_command
        from django.db import connections

        django.setup()
        for alias in connections:
            call_command("migrate", database=alias, interactive=False, verbosity=0)
        try:
            yield Path(folder)
        finally:
            connections.close_all()


def percentile(values: list[float], share: float) -> float:
    """The value below which this share of the values lies (nearest rank)."""
    ranked = sorted(values)
    return ranked[min(len(ranked) - 1, max(0, round(share * len(ranked)) - 1))]
