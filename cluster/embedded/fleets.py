"""Fleets: the nodes, network domains, queues and priority classes that a cluster begins with."""

from __future__ import annotations

import csv
from dataclasses import dataclass
from pathlib import Path

from cluster import documents
from cluster.clock import Clock
from cluster.embedded.demo import demo_objects
from cluster.embedded.machines import GPU, make_node, ready_condition
from cluster.embedded.store import EmbeddedCluster
from cluster.errors import ApiError, BadRequest
from cluster.kinds import NODE, by_api
from cluster.objects import GPU_COUNT_LABEL, GPU_MEMORY_LABEL, GPU_PRODUCT_LABEL, clone, stamp
from cluster.port import Obj

_FILE_LIMIT = 64 * 2**20
_FILE_NODES = 10_000_000
_SYSTEM_METADATA = (
    "uid", "resourceVersion", "generation", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds",
    "managedFields", "selfLink",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Fleet:
    """Objects to begin with, in the order in which they are made."""

    name: str
    objects: tuple[Obj, ...]

    @property
    def nodes(self) -> list[Obj]:
        """The nodes among them."""
        return [obj for obj in self.objects if obj["kind"] == NODE.kind]


@dataclass(frozen=True, slots=True)
class Loaded:
    """How many objects of a fleet were made, and how many were there already."""

    created: int
    present: int


def load(cluster: EmbeddedCluster, fleet: Fleet, clock: Clock | None = None) -> Loaded:
    """Create what is missing, all of it or nothing: a start that dies over it, or finds no room, leaves no part of it behind.

    What is there stays as it is. Raises ApiError with what was refused.
    """
    now = stamp((clock or cluster.clock).now())
    wanted = []
    for obj in fleet.objects:
        kind = by_api(obj["apiVersion"], obj["kind"])
        if kind is None:
            raise BadRequest(f"fleet {fleet.name!r}: kind {obj['kind']!r} of {obj['apiVersion']!r} is not known")
        wanted.append((kind, _stamped(obj, now) if kind == NODE else obj))
    try:
        made = cluster.create_together(wanted)
    except ApiError as error:
        raise type(error)(f"fleet {fleet.name!r}: {error.message}", error.fields) from None
    return Loaded(len(made), len(wanted) - len(made))


def _stamped(node: Obj, now: str) -> Obj:
    """The node with a condition Ready, and conditions that say since when."""
    node = clone(node)
    status = node.setdefault("status", {})
    conditions = status.setdefault("conditions", [])
    if not any(condition.get("type") == "Ready" for condition in conditions):
        conditions.append(ready_condition())
    for condition in conditions:
        condition.setdefault("lastTransitionTime", now)
        condition["lastHeartbeatTime"] = now
    return node


def demo() -> Fleet:
    """32 nodes with 192 GPUs of four kinds in eight racks on two spines, a small tree of queues, priority classes."""
    return Fleet("demo", tuple(demo_objects()))


def from_file(path: Path) -> Fleet:
    """The objects of a YAML or JSON file, of any kinds that Basalt knows. Raises BadRequest that names file and line."""
    try:
        content = path.read_bytes()
    except OSError as error:
        raise BadRequest(f"the fleet file {path} cannot be read: {error.strerror}") from None
    objects = []
    try:
        found = documents.load(content, limit=_FILE_LIMIT, most=_FILE_NODES)
    except BadRequest as error:
        raise BadRequest(f"{path}: {error.message}", error.fields) from None
    for document in found:
        obj = document.obj
        kind = by_api(str(obj.get("apiVersion")), str(obj.get("kind")))
        if kind is None:
            where = f"{path}: document {document.document}, line {document.line_of('/kind') or document.line_of('')}"
            raise BadRequest(f"{where}: kind {obj.get('kind')!r} of apiVersion {obj.get('apiVersion')!r} is not known")
        objects.append(_fresh(obj))
    return Fleet(path.name, tuple(objects))


def _fresh(obj: Obj) -> Obj:
    """The object without what another API server wrote into its metadata."""
    metadata = obj.get("metadata")
    if not isinstance(metadata, dict):
        return obj
    return {**obj, "metadata": {key: value for key, value in metadata.items() if key not in _SYSTEM_METADATA}}


# Memory in MiB of the models that the openb node list names openly; its G2 and G3 are not disclosed.
_OPENB_MEMORY = {"P100": 16384, "V100M16": 16384, "V100M32": 32768, "T4": 15360, "A10": 23028}
_OPENB_COLUMNS = ("sn", "cpu_milli", "memory_mib", "gpu", "model")


def openb(path: Path) -> Fleet:
    """The nodes of an openb node list (CSV). Raises BadRequest that names file and line."""
    try:
        with path.open(newline="", encoding="utf-8") as file:
            rows = csv.DictReader(file)
            if tuple(rows.fieldnames or ()) != _OPENB_COLUMNS:
                raise BadRequest(f"{path}, line 1: an openb node list has the columns {', '.join(_OPENB_COLUMNS)}")
            return Fleet(path.name, tuple(_openb_node(path, number, row) for number, row in enumerate(rows, 2)))
    except (OSError, UnicodeDecodeError) as error:
        raise BadRequest(f"the node list {path} cannot be read: {error}") from None


def _openb_node(path: Path, line: int, row: dict[str, str | None]) -> Obj:
    name, model = row["sn"] or "", row["model"] or ""
    try:
        cpu, memory, gpus = (int(row[column] or "") for column in ("cpu_milli", "memory_mib", "gpu"))
        if min(cpu, memory, gpus) < 0 or not name:
            raise ValueError
    except ValueError:
        raise BadRequest(
            f"{path}, line {line}: expected a name and whole numbers of 0 or more, not {list(row.values())}"
        ) from None
    amounts = {"cpu": f"{cpu}m", "memory": f"{memory}Mi", "pods": "110", **({GPU: str(gpus)} if gpus else {})}
    labels = {GPU_PRODUCT_LABEL: model, GPU_COUNT_LABEL: str(gpus)} if gpus else {}
    if gpus and model in _OPENB_MEMORY:
        labels[GPU_MEMORY_LABEL] = str(_OPENB_MEMORY[model])
    return make_node(name, capacity=amounts, allocatable=amounts, labels=labels, annotations={})
