"""Which database a table lives in."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.db.models import Model


def store_alias() -> str:
    """The database of the embedded store: one of its own on SQLite, `default` where DATABASE_URL names one."""
    return str(settings.STORE_DATABASE)


class StoreRouter:
    """Sends the embedded store's table to its database, and everything else to `default`."""

    def db_for_read(self, model: type[Model], **hints: Any) -> str | None:
        return store_alias() if model._meta.label == "cluster.StoredObject" else None

    db_for_write = db_for_read

    def allow_migrate(self, db: str, app_label: str, model_name: str | None = None, **hints: Any) -> bool:
        is_store = app_label == "cluster" and model_name == "storedobject"
        return db == (store_alias() if is_store else "default")
