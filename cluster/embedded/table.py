"""The store's objects in a database table: written before any watcher sees them, read back at start.

One connection of its own, to the database that the router names for StoredObject, used under the journal's commit
lock by whichever thread commits. A row of no kind keeps the highest resourceVersion ever used, so that none is used
twice even when the newest objects were deleted.
"""

from __future__ import annotations

import contextlib
import gc
import logging
from collections.abc import Iterator, Sequence
from operator import itemgetter
from typing import Any

import orjson
from django.db import connections
from django.db.backends.base.base import BaseDatabaseWrapper

from cluster.embedded.memory import Change, Key, key_of
from cluster.kinds import KINDS, Kind
from cluster.models import StoredObject
from cluster.port import Obj
from cluster.routers import store_alias

logger = logging.getLogger(__name__)

_KINDS = {str(kind): kind for kind in KINDS}
_COUNTER = ("", "", "version")
_KEY_COLUMNS = ("kind", "namespace", "name")
_COLUMNS = (*_KEY_COLUMNS, "uid", "resource_version", "body")
Row = tuple[str, str, str, str, int, bytes]


class StoreTable:
    """Reads and writes the table; one thread at a time."""

    def __init__(self) -> None:
        self._alias = alias = store_alias()
        self._connection: BaseDatabaseWrapper | None = None
        self._doubtful: dict[tuple[Kind, Key], Obj | None] = {}
        quote = connections[alias].ops.quote_name
        table = quote(StoredObject._meta.db_table)
        columns, key = ", ".join(map(quote, _COLUMNS)), ", ".join(map(quote, _KEY_COLUMNS))
        renewed = ", ".join(f"{quote(column)} = excluded.{quote(column)}" for column in _COLUMNS[3:])
        # Only names of our own model are put into the statements; every value is a parameter.
        self._upsert = (
            f"INSERT INTO {table} ({columns}) VALUES ({', '.join(['%s'] * len(_COLUMNS))}) "  # noqa: S608
            f"ON CONFLICT ({key}) DO UPDATE SET {renewed}"
        )
        self._delete = f"DELETE FROM {table} WHERE " + " AND ".join(f"{quote(column)} = %s" for column in _KEY_COLUMNS)  # noqa: S608
        self._select = f"SELECT {columns} FROM {table}"  # noqa: S608

    def load(self) -> tuple[int, list[tuple[Kind, Obj]]]:
        """The highest version used, and the objects, oldest change first. A row that cannot be read is left alone and said."""
        version, objects = 0, []
        with self._open().cursor() as cursor, _without_collector():
            cursor.execute(self._select)
            for kind_name, namespace, name, _, row_version, body in _rows(cursor):
                version = max(version, row_version)
                if (kind_name, namespace, name) == _COUNTER:
                    continue
                try:
                    objects.append((row_version, *_read(kind_name, (namespace, name), bytes(body))))
                except (ValueError, KeyError, AttributeError) as error:
                    logger.error("stored object %s %s/%s cannot be read and is left out: %s", kind_name, namespace, name, error)
        objects.sort(key=itemgetter(0))
        return version, [(kind, obj) for _, kind, obj in objects]

    def write(self, changes: Sequence[Change], version: int) -> None:
        """Keep all changes in one transaction, only the last of each object."""
        last: dict[tuple[Kind, Key], Obj | None] = dict(self._doubtful)
        for change in changes:
            last[change.kind, key_of(change.obj)] = None if change.type == "DELETED" else change.obj
        gone = [(str(kind), *key) for (kind, key), obj in last.items() if obj is None]
        rows = [_row(kind, key, obj) for (kind, key), obj in last.items() if obj is not None]
        rows.append((*_COUNTER, "", version, b"{}"))
        try:
            self._transact(gone, rows)
        except Exception:
            self._doubt(changes)
            self.close()
            raise
        self._doubtful.clear()

    def close(self) -> None:
        """Let the connection go; the next use opens another."""
        connection, self._connection = self._connection, None
        if connection is not None:
            with contextlib.suppress(Exception):  # it may be the very thing that is broken
                connection.close()

    def _transact(self, gone: list[tuple[str, str, str]], rows: list[Row]) -> None:
        connection = self._open()
        connection.set_autocommit(False, force_begin_transaction_with_broken_autocommit=True)
        try:
            with connection.cursor() as cursor:
                if gone:
                    cursor.executemany(self._delete, gone)
                cursor.executemany(self._upsert, rows)
            connection.commit()
        except BaseException:
            connection.rollback()
            raise
        finally:
            connection.set_autocommit(True)

    def _doubt(self, changes: Sequence[Change]) -> None:
        """A commit whose answer was lost may have been done: the next write puts these objects right first."""
        for change in changes:
            self._doubtful.setdefault((change.kind, key_of(change.obj)), change.old)

    def _open(self) -> BaseDatabaseWrapper:
        if self._connection is None:
            self._connection = connections.create_connection(self._alias)
            self._connection.inc_thread_sharing()
        return self._connection


def _row(kind: Kind, key: Key, obj: Obj) -> Row:
    metadata = obj["metadata"]
    return str(kind), *key, metadata["uid"], int(metadata["resourceVersion"]), orjson.dumps(obj)


def _read(kind_name: str, key: Key, body: bytes) -> tuple[Kind, Obj]:
    """A row's object. Raises ValueError for one that is of no known kind or not what its row says."""
    kind = _KINDS.get(kind_name)
    if kind is None:
        raise ValueError("of an unknown kind")
    obj = orjson.loads(body)
    if not isinstance(obj, dict) or key_of(obj) != key:
        raise ValueError("not the object that its row names")
    return kind, obj


@contextlib.contextmanager
def _without_collector() -> Iterator[None]:
    """Reading makes millions of containers and no garbage: looking for some would take most of the time."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


def _rows(cursor: Any) -> Iterator[tuple[Any, ...]]:
    while found := cursor.fetchmany(2_000):
        yield from found
