"""Which database a table lives in."""

from __future__ import annotations

from typing import Any

from django.db.models import Model

STORE = "cluster"


class StoreRouter:
    """The embedded store's table lives alone in the database `cluster`, everything else in `default`."""

    def db_for_read(self, model: type[Model], **hints: Any) -> str | None:
        return STORE if model._meta.label == "cluster.StoredObject" else None

    db_for_write = db_for_read

    def allow_migrate(self, db: str, app_label: str, model_name: str | None = None, **hints: Any) -> bool:
        return (db == STORE) == (app_label == "cluster" and model_name == "storedobject")
