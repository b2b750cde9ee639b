"""Projection: the cluster's objects as rows, moving only forward; and the rows of nodes, network domains and events.

Each app projects its own kinds with what is here. A row is replaced only by one of a higher resourceVersion, and a
tombstone (`deleted_at`) is final, so events may arrive late, twice or in any order. Whoever changes rows says so by
`notify`; the live channel listens to `projected`.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from copy import copy
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from typing import Any, Generic, TypeVar
from zlib import crc32

import structlog
from django.db import connection, transaction
from django.db.models import Model
from django.dispatch import Signal

from cluster import gpu_usage, objects
from cluster.events import SAID
from cluster.gpu_facts import gpu_facts
from cluster.kinds import EVENT, HYPER_NODE, NODE
from cluster.leaving import drain_of
from cluster.models import Event, HyperNode, Node, Projected
from cluster.port import Obj
from cluster.runtime import now
from cluster.said import LONGEST
from cluster.topology import TopologyError, parse_topology

log = structlog.get_logger(__name__)
P = TypeVar("P", bound=Projected)

projected = Signal()
"""Rows were changed and committed: `topic` (str) and `uids` (frozenset of what the topic's rows are named by)."""


def notify(topic: str, uids: Iterable[str]) -> None:
    """Tell whoever listens, once the transaction is committed, that rows of a topic changed."""
    if found := frozenset(uids):
        transaction.on_commit(partial(projected.send, sender=None, topic=topic, uids=found))


@contextmanager
def writing(model: type[Projected]) -> Iterator[None]:
    """A transaction in which nobody else projects this model (SQLite has one writer anyway)."""
    with transaction.atomic():
        if connection.vendor == "postgresql":
            with connection.cursor() as cursor:
                cursor.execute("SELECT pg_advisory_xact_lock(%s)", [crc32(model._meta.label.encode())])
        yield


@dataclass(frozen=True, slots=True)
class Batch:
    """What to project at once, of one kind: objects as they are, objects as they were last, and uids known to be gone."""

    upserts: Sequence[Obj] = ()
    deletes: Sequence[Obj] = ()
    gone: Collection[str] = ()


@dataclass(frozen=True, slots=True)
class Change(Generic[P]):
    """A row that moved: what was there (None: nothing) and what is there now."""

    before: P | None
    after: P


@dataclass(frozen=True, slots=True)
class Projection:
    """How one kind becomes rows; `project` does its own transaction."""

    model: type[Projected]
    project: Callable[[Batch], None]


def apply(model: type[P], make: Callable[[Obj, bool], P], batch: Batch, keep: Collection[str] = ()) -> list[Change[P]]:
    """Write what moves forward, and say what did. Call it inside `writing`.

    A tombstone always wins, once. Columns in `keep` belong to somebody else: they are written with a new row only.
    """
    newest: dict[str, P] = {}
    for row in _rows(make, batch):
        if row.uid not in newest or _is_newer(row, newest[row.uid]):
            newest[row.uid] = row
    held = {row.uid: row for row in model._default_manager.filter(pk__in={*newest, *batch.gone})}
    forward = [row for uid, row in newest.items() if uid not in held or _is_newer(row, held[uid])]
    columns = [f for f in model._meta.concrete_fields if not f.primary_key and f.name not in keep]
    model._default_manager.bulk_create(
        [row for row in forward if row.uid not in held],
        batch_size=500,
        update_conflicts=True,
        unique_fields=["uid"],
        update_fields=[column.name for column in columns],
    )
    _rewrite(model, [(held[row.uid], row) for row in forward if row.uid in held], columns)
    for row in forward:
        for column in keep if row.uid in held else ():
            setattr(row, column, getattr(held[row.uid], column))
    changes = [Change(held.get(row.uid), row) for row in forward]
    return changes + _bury(model, [row for uid, row in held.items() if uid in set(batch.gone)])


def _rewrite(model: type[P], pairs: Sequence[tuple[P, P]], columns: Sequence[Any]) -> None:
    """Write what is new of rows that are there, by one statement for all in which the same columns changed.

    By far the most that a busy cluster tells is a pod's or job's status, a few columns of many.
    """
    alike: defaultdict[tuple[Any, ...], list[P]] = defaultdict(list)
    for before, row in pairs:
        alike[tuple(c for c in columns if getattr(before, c.attname) != getattr(row, c.attname))].append(row)
    for changed, rows in alike.items():
        write_columns(rows, changed)


def write_columns(rows: Sequence[Model], columns: Sequence[Any]) -> None:
    """Write these columns (fields of the rows' model) of rows that are there: one statement, prepared once, for all of them.

    Django's own way builds a condition for each row and column, which takes many times as long.
    """
    if not rows or not columns:
        return
    meta, quote = rows[0]._meta, connection.ops.quote_name
    places = ", ".join(f"{quote(column.column)} = %s" for column in columns)
    statement = f"UPDATE {quote(meta.db_table)} SET {places} WHERE {quote(str(meta.pk.column))} = %s"  # noqa: S608 - names of ours
    values = [[c.get_db_prep_save(getattr(row, c.attname), connection) for c in (*columns, meta.pk)] for row in rows]
    with connection.cursor() as cursor:
        cursor.executemany(statement, values)


def _is_newer(row: Projected, held: Projected) -> bool:
    if held.deleted_at is not None:
        return False
    return row.deleted_at is not None or row.resource_version > held.resource_version


def _bury(model: type[P], rows: Sequence[P]) -> list[Change[P]]:
    changes = []
    for row in rows:
        if row.deleted_at is None:
            before = copy(row)
            row.deleted_at = now()
            changes.append(Change(before, row))
    model._default_manager.bulk_update([change.after for change in changes], ["deleted_at"])
    return changes


def _rows(make: Callable[[Obj, bool], P], batch: Batch) -> Iterator[P]:
    """A row for each object that can be read; one that cannot is logged and counted, and never stops the others."""
    for deleted, group in ((False, batch.upserts), (True, batch.deletes)):
        for obj in group:
            try:
                yield make(obj, deleted)
            except (KeyError, TypeError, ValueError, AttributeError) as error:
                unreadable(obj, error)


refused: dict[str, int] = {}
"""How many objects of a kind could not be projected since this process began."""


def unreadable(obj: Obj, error: Exception) -> None:
    """Log and count an object that could not become a row."""
    kind = str(obj.get("kind"))
    refused[kind] = refused.get(kind, 0) + 1
    log.error("object cannot be projected", kind=kind, object=objects.key(obj), error=f"{type(error).__name__}: {error}")


def instant(text: str | None) -> datetime | None:
    """A Kubernetes time stamp, or None where there is none. Raises ValueError."""
    return datetime.fromtimestamp(objects.parse_time(text), UTC) if text else None


def common(obj: Obj, deleted: bool) -> dict[str, Any]:
    """The columns that every projected row has. Raises KeyError, ValueError for an object that no cluster gave."""
    meta = obj["metadata"]
    return {
        "uid": meta["uid"],
        "name": meta["name"],
        "resource_version": int(meta["resourceVersion"]),
        "created_at": instant(meta.get("creationTimestamp")) or now(),
        "deleted_at": now() if deleted else None,
    }


def node(obj: Obj, deleted: bool = False) -> Node:
    """A Node object as its row."""
    labels, notes, spec = objects.labels(obj), objects.annotations(obj), obj.get("spec") or {}
    allocatable = objects.resource_units((obj.get("status") or {}).get("allocatable"))
    ready, gpus = objects.condition(obj, "Ready") or {}, gpu_facts(obj, allocatable)
    return Node(
        **common(obj, deleted),
        ready=ready.get("status") == "True",
        heard=ready.get("status") in ("True", "False"),
        cordoned=bool(spec.get("unschedulable")),
        draining=bool(drain_of(obj)),
        labels=dict(labels),
        taints=spec.get("taints") or [],
        allocatable=allocatable,
        gpu_count=gpus.count,
        gpu_model=gpus.model[:80],
        gpu_memory_mib=gpus.memory,
        gpu_unhealthy=list(gpus.unhealthy),
        gpu_cards=[list(card) for card in gpus.cards],
        gpu_usage=gpu_usage.as_row(gpu_usage.read(notes.get(objects.GPU_USAGE))) if gpus.count else {},
        gpu_links=_links(notes.get(objects.GPU_TOPOLOGY)),
        rack=labels.get(objects.RACK_LABEL, ""),
        spine=labels.get(objects.SPINE_LABEL, ""),
        conditions=_conditions(obj),
        seen_at=instant(ready.get("lastHeartbeatTime")),
    )


def _conditions(obj: Obj) -> list[dict[str, str]]:
    """The node's conditions as texts; heartbeats are left out, for they change all the time."""
    keys = {"type": "type", "status": "status", "reason": "reason", "message": "message", "since": "lastTransitionTime"}
    listed = (obj.get("status") or {}).get("conditions") or []
    return [{name: str(each.get(key) or "") for name, key in keys.items()} for each in listed if isinstance(each, dict)]


def indices(text: str | None) -> list[int]:
    """`"0,3"` as numbers. Raises ValueError."""
    return sorted(int(part) for part in (text or "").split(",") if part.strip())


def _links(text: str | None) -> list[list[str]]:
    """The paths between GPUs, as the words of a topology table; none when the table cannot be read."""
    try:
        return [list(row) for row in parse_topology(text).links] if text else []
    except TopologyError:
        return []


def hyper_node(obj: Obj, deleted: bool = False) -> HyperNode:
    """A HyperNode object as its row."""
    spec = obj.get("spec") or {}
    tier, tier_name, members = int(spec.get("tier") or 0), spec.get("tierName") or "", spec.get("members") or []
    return HyperNode(**common(obj, deleted), tier=tier, tier_name=tier_name, members=members)


def event(obj: Obj, deleted: bool = False) -> Event:
    """An Event object (core/v1) as its row."""
    shared = common(obj, deleted)
    about = obj.get("involvedObject") or {}
    first = instant(obj.get("firstTimestamp") or obj.get("eventTime")) or shared["created_at"]
    return Event(
        **shared,
        namespace=objects.namespace(obj),
        about_kind=about.get("kind") or "",
        about_name=about.get("name") or "",
        about_uid=about.get("uid") or "",
        type=obj.get("type") or "Normal",
        reason=(obj.get("reason") or "")[:128],
        message=obj.get("message") or "",
        said=(objects.annotations(obj).get(SAID) or "")[: LONGEST + 1],
        count=int(obj.get("count") or 1),
        source=((obj.get("source") or {}).get("component") or obj.get("reportingComponent") or "")[:128],
        first_seen=first,
        last_seen=instant(obj.get("lastTimestamp")) or first,
    )


def project_nodes(batch: Batch) -> None:
    """Nodes. A heartbeat alone moves the row and tells nobody."""
    with writing(Node):
        changes = apply(Node, node, batch)
        notify("topology", (change.after.name for change in changes if differs(change, NODE_SHOWS)))


NODE_SHOWS = (
    "ready", "heard", "cordoned", "draining", "gpu_count", "gpu_unhealthy", "gpu_model", "gpu_cards", "gpu_usage", "rack",
    "spine", "allocatable", "deleted_at",
)  # fmt: skip


def differs(change: Change[P], columns: Sequence[str]) -> bool:
    """Whether anything that is shown changed."""
    before = change.before
    return before is None or any(getattr(before, name) != getattr(change.after, name) for name in columns)


def project_hyper_nodes(batch: Batch) -> None:
    """Network domains."""
    with writing(HyperNode):
        apply(HyperNode, hyper_node, batch)


def project_events(batch: Batch) -> None:
    """Events. One that the cluster forgets stays as history for as long as its job's row does."""
    with writing(Event):
        changes = apply(Event, event, batch)
        notify("about", (change.after.about_uid for change in changes if change.after.deleted_at is None))


PROJECTIONS = {
    NODE: Projection(Node, project_nodes),
    HYPER_NODE: Projection(HyperNode, project_hyper_nodes),
    EVENT: Projection(Event, project_events),
}
