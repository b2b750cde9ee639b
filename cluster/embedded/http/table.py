"""Objects as the table that `kubectl get` asks for (meta.k8s.io/v1 Table): a row an object, columns by kind.

Volcano's kinds have the columns of their definitions, pods, nodes and events those of Kubernetes, the others their age.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from cluster.columns import COLUMNS, Column
from cluster.errors import BadRequest
from cluster.kinds import EVENT, NODE, POD, Kind
from cluster.objects import parse_time
from cluster.pod_state import PodState
from cluster.port import Obj

Cell = Callable[[Obj, float], Any]
_META = "meta.k8s.io/v1"
_INCLUDES = ("None", "Metadata", "Object")


def is_wanted(accept: str) -> bool:
    """Whether the first thing that an Accept header names is a Table."""
    return {"as=Table", "v=v1", "g=meta.k8s.io"} <= {part.strip() for part in accept.partition(",")[0].split(";")}


def as_table(kind: Kind, objects: Sequence[Obj], now: float, meta: Obj, include: str = "") -> Obj:
    """The table of `objects` at `now` (seconds since the epoch). `include` says what a row carries of its object."""
    if include and include not in _INCLUDES:
        raise BadRequest(f"includeObject={include!r} is none of {', '.join(_INCLUDES)}")
    columns = _columns(kind)
    rows = []
    for obj in objects:
        row: Obj = {"cells": [cell(obj, now) for _, cell in columns]}
        if include != "None":
            row["object"] = obj if include == "Object" else _metadata(obj)
        rows.append(row)
    definitions = [
        {"name": c.name, "type": c.type, "format": "name" if c.name == "Name" else "", "description": "", "priority": int(c.wide)}
        for c, _ in columns
    ]
    return {"kind": "Table", "apiVersion": _META, "metadata": meta, "columnDefinitions": definitions, "rows": rows}


def age(seconds: float) -> str:
    """A duration in the two largest units that matter, as kubectl writes ages: `90s`, `5m3s`, `3h12m`, `9d`."""
    whole = max(int(seconds), 0)
    minutes, hours, days = whole // 60, whole // 3600, whole // 86400
    if whole < 120:
        return f"{whole}s"
    if minutes < 10:
        return _two(minutes, "m", whole % 60, "s")
    if hours < 3:
        return f"{minutes}m"
    if hours < 8:
        return _two(hours, "h", minutes % 60, "m")
    if hours < 48:
        return f"{hours}h"
    if days < 8:
        return _two(days, "d", hours % 24, "h")
    return f"{days}d" if days < 2 * 365 else _two(days // 365, "y", days % 365 if days < 8 * 365 else 0, "d")


def _two(large: int, unit: str, small: int, lesser: str) -> str:
    return f"{large}{unit}{small}{lesser}" if small else f"{large}{unit}"


def _columns(kind: Kind) -> list[tuple[Column, Cell]]:
    own = _BUILT_IN.get(kind) or [(column, _at(column)) for column in COLUMNS.get(kind, (_AGE,))]
    return own if kind == EVENT else [(Column("Name", ".metadata.name"), lambda obj, _: obj["metadata"]["name"]), *own]


def _at(column: Column) -> Cell:
    steps = column.path.lstrip(".").split(".")

    def cell(obj: Obj, now: float) -> Any:
        found: Any = obj
        for step in steps:
            found = found.get(step) if isinstance(found, dict) else None
        return _since(found, now) if column.type == "date" and found else found

    return cell


def _since(text: Any, now: float) -> str:
    try:
        return age(now - parse_time(text))
    except ValueError:
        return "<unknown>"


def _ready(pod: Obj, _: float) -> str:
    state = PodState.of(pod)
    return f"{state.ready}/{state.containers}"


def _restarts(pod: Obj, now: float) -> str:
    state = PodState.of(pod)
    ago = f" ({_since(state.restarted_at, now)} ago)" if state.restarts and state.restarted_at else ""
    return f"{state.restarts}{ago}"


def _pod_status(pod: Obj, _: float) -> str:
    return PodState.of(pod).word


def _node_status(node: Obj, _: float) -> str:
    conditions = (node.get("status") or {}).get("conditions") or ()
    ready = next((c.get("status") for c in conditions if c.get("type") == "Ready"), "Unknown")
    said = "Ready" if ready == "True" else "NotReady"
    return f"{said},SchedulingDisabled" if (node.get("spec") or {}).get("unschedulable") else said


def _last_seen(event: Obj, now: float) -> str:
    return _since(event.get("lastTimestamp") or event.get("eventTime") or event["metadata"].get("creationTimestamp"), now)


def _about(event: Obj, _: float) -> str:
    about = event.get("involvedObject") or {}
    return f"{str(about.get('kind') or '').lower()}/{about.get('name') or ''}"


def _metadata(obj: Obj) -> Obj:
    return {"kind": "PartialObjectMetadata", "apiVersion": _META, "metadata": obj["metadata"]}


_AGE = Column("Age", ".metadata.creationTimestamp", "date")
_IP, _NODE = Column("IP", ".status.podIP", wide=True), Column("Node", ".spec.nodeName", wide=True)
_TYPE, _REASON, _MESSAGE = Column("Type", ".type"), Column("Reason", ".reason"), Column("Message", ".message")
_BUILT_IN: dict[Kind, list[tuple[Column, Cell]]] = {
    POD: [
        (Column("Ready", ""), _ready),
        (Column("Status", ""), _pod_status),
        (Column("Restarts", ""), _restarts),
        *((column, _at(column)) for column in (_AGE, _IP, _NODE)),
    ],
    NODE: [(Column("Status", ""), _node_status), (_AGE, _at(_AGE))],
    EVENT: [
        (Column("Last Seen", ""), _last_seen),
        (_TYPE, _at(_TYPE)),
        (_REASON, _at(_REASON)),
        (Column("Object", ""), _about),
        (_MESSAGE, _at(_MESSAGE)),
    ],
}
