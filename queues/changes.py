"""What became of queues: every change that is seen of a row is kept as a difference, with who made it where that is known."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.utils.translation import gettext as _

from cluster.display import amount, resource_name
from cluster.port import Obj
from cluster.projection import Change
from cluster.runtime import now
from queues.choices import QueueState
from queues.forms import LABELS
from queues.models import Queue, QueueChange, Verb

SCALARS = ("parent", "weight", "priority", "reclaimable", "state")
AMOUNTS = ("guarantee", "deserved", "capability")
SHOWN = 50

Diff = dict[str, list[Any]]


def record(changes: Iterable[Change[Queue]], user: str = "") -> None:
    """Keep what changed. Call it in the transaction that wrote the rows; a change that is seen twice is kept once."""
    found = []
    for change in changes:
        before, after = change.before, change.after
        verb = Verb.CREATED if before is None else Verb.DELETED if after.deleted_at is not None else Verb.CHANGED
        diff = {} if verb == Verb.DELETED else _diff(before, after)
        if diff or verb != Verb.CHANGED:
            found.append(_row(after, verb, diff, user))
    QueueChange.objects.bulk_create(found, ignore_conflicts=True)


def asked(obj: Obj, action: str, user: str) -> None:
    """Keep that somebody asked for a queue to be opened or closed; that it was, is seen later."""
    meta = obj["metadata"]
    row = QueueChange(
        uid=meta["uid"], name=meta["name"], at=now(), user=user, verb=Verb.ASKED,
        version=int(meta["resourceVersion"]), diff={"action": ["", action]},
    )  # fmt: skip
    QueueChange.objects.bulk_create([row], ignore_conflicts=True)


def name_author(obj: Obj, user: str) -> None:
    """Say who made the change that led to an object, also where somebody else saw it first."""
    meta = obj["metadata"]
    QueueChange.objects.filter(uid=meta["uid"], version=int(meta["resourceVersion"]), user="").update(user=user)


def name_end(obj: Obj, user: str) -> None:
    """Say who deleted an object."""
    QueueChange.objects.filter(uid=obj["metadata"]["uid"], verb=Verb.DELETED, user="").update(user=user)


def _row(queue: Queue, verb: Verb, diff: Diff, user: str) -> QueueChange:
    return QueueChange(
        uid=queue.uid, name=queue.name, at=now(), user=user, verb=verb, version=queue.resource_version, diff=diff
    )  # fmt: skip


def _diff(before: Queue | None, after: Queue) -> Diff:
    found: Diff = {}
    for field in SCALARS:
        old, new = getattr(before, field, None), getattr(after, field)
        if old != new:
            found[field] = [old, new]
    for field in AMOUNTS:
        olds, news = getattr(before, field, {}), getattr(after, field)
        for resource in sorted({*olds, *news}):
            if olds.get(resource) != news.get(resource):
                found[f"{field}.{resource}"] = [olds.get(resource), news.get(resource)]
    return found


@dataclass(frozen=True, slots=True)
class Told:
    """One field that changed, in words."""

    label: str
    old: str
    new: str


@dataclass(frozen=True, slots=True)
class Entry:
    """One change, in words; `user` is empty for what did not come through Basalt's pages and API."""

    at: datetime
    user: str
    verb: str
    version: int
    fields: list[Told]


def of(queue: Queue) -> list[Entry]:
    """The newest changes of a queue and of those that had its name before."""
    return [_entry(row) for row in QueueChange.objects.filter(name=queue.name)[:SHOWN]]


def since(uid: str, version: str) -> list[Entry]:
    """What changed after somebody saw a version, the oldest first."""
    if not (version.isdecimal() and len(version) < 19):
        return []
    return [_entry(row) for row in QueueChange.objects.filter(uid=uid, version__gt=int(version)).order_by("version")[:SHOWN]]


def _entry(row: QueueChange) -> Entry:
    if row.verb == Verb.ASKED:
        action = row.diff.get("action", ["", ""])[1]
        words = {"open": _("asked to open it"), "close": _("asked to close it")}
        return Entry(row.at, row.user, words.get(action, action), row.version, [])
    fields = [_told(field, *values) for field, values in row.diff.items()] if row.verb == Verb.CHANGED else []
    return Entry(row.at, row.user, str(Verb(row.verb).label), row.version, fields)


def _told(field: str, old: Any, new: Any) -> Told:
    part, _dot, resource = field.partition(".")
    label = str(LABELS.get(part) or _("State"))
    return Told(
        f"{label} {resource_name(resource)}" if resource else label, _text(part, resource, old), _text(part, resource, new)
    )


def _text(part: str, resource: str, value: Any) -> str:
    if value is None or value == "":
        return _("none")
    if resource:
        return " ".join(amount(value, resource)).strip()
    if part == "reclaimable":
        return _("yes") if value else _("no")
    if part == "state":
        return str(QueueState(value).label) if value in QueueState.values else str(value)
    return str(value)
