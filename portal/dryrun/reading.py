"""Files of Kubernetes objects, each object with its place; what is wrong is told with file, document and line."""

from __future__ import annotations

import uuid
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from cluster import documents, objects
from cluster.documents import Document
from cluster.errors import BadRequest, NotFound
from cluster.kinds import JOB, POD, QUEUE, Kind, by_api
from cluster.port import Obj, Page
from jobs import manifest
from jobs.schedulers import scheduler_names
from scheduler.model import shapes
from scheduler.snapshot import CONF_KEY, Snapshot

_LIMIT = 1 << 30
_VALUES = 100_000_000
_START = objects.parse_time("2030-01-01T00:00:00Z")
_BUILT_IN: dict[str, Obj] = {
    name: {"apiVersion": QUEUE.api_version, "kind": "Queue", "metadata": {"name": name}, "spec": {"weight": 1}}
    for name in ("root", "default")
}


class FilesError(ValueError):
    """Files that cannot be used; `faults` has a line for everything that is wrong with them."""

    def __init__(self, faults: list[str]) -> None:
        super().__init__("\n".join(faults))
        self.faults = faults


@dataclass(frozen=True, slots=True)
class Source:
    """An object and where it stands."""

    file: str
    document: Document
    kind: Kind | None

    @property
    def obj(self) -> Obj:
        """The object."""
        return self.document.obj

    def place(self, pointer: str = "") -> str:
        """File, document and line of a field, for people."""
        line = self.document.line_of(pointer)
        return f"{self.file}, document {self.document.document}{f', line {line}' if line else ''}"


@dataclass(slots=True)
class Files:
    """All objects of some files: those that scheduling knows, those that mean nothing to it, and those of which a field is
    of a wrong type, with that fault. `conf` may be empty."""

    known: list[Source] = field(default_factory=list)
    others: list[Source] = field(default_factory=list)
    misshapen: list[tuple[Source, str]] = field(default_factory=list)
    conf: str = ""

    def of(self, kind: Kind) -> list[Obj]:
        """The objects of a kind, in order."""
        return [source.obj for source in self.known if source.kind == kind]

    def source(self, kind: str, key: str) -> Source | None:
        """The place of an object by its kind and `namespace/name`."""
        found = (s for s in self.known if s.kind and s.kind.kind == kind and objects.key(s.obj) == key)
        return next(found, None)


def read(paths: Iterable[Path]) -> Files:
    """Read files. Raises FilesError with every fault: unreadable, no YAML, no object, twice the same, a faulty Job."""
    files, faults = Files(), list[str]()
    for path in paths:
        try:
            found = documents.load(path.read_bytes(), limit=_LIMIT, most=_VALUES)
        except OSError as error:
            faults.append(f"{path}: {error.strerror}")
        except BadRequest as error:
            faults.append(f"{path}, {error.message}")
        else:
            for document in found:
                _sort(files, str(path), document, faults)
    faults += _twice(files.known)
    if not faults:
        for number, source in enumerate(files.known):
            _complete(source, number)
        _set_aside(files)
        faults += _faulty(files)
    if faults:
        raise FilesError(faults)
    return files


def _sort(files: Files, path: str, document: Document, faults: list[str]) -> None:
    obj = document.obj
    kind = by_api(str(obj.get("apiVersion")), str(obj.get("kind")))
    source = Source(path, document, kind)
    if isinstance(data := obj.get("data"), dict) and obj.get("kind") == "ConfigMap" and CONF_KEY in data:
        files.conf = str(data[CONF_KEY])
    if not obj.get("kind") or not obj.get("apiVersion"):
        faults.append(f"{source.place()}: an object has an apiVersion and a kind")
    elif kind is None or not (Snapshot.holds(kind) or kind == JOB):
        files.others.append(source)
    elif fault := _unnamed(obj, kind):
        faults.append(f"{source.place('/metadata')}: {kind.kind}: {fault}")
    else:
        if kind.namespaced:
            obj["metadata"].setdefault("namespace", "default")
        files.known.append(source)


def _unnamed(obj: Obj, kind: Kind) -> str:
    meta = obj.get("metadata")
    if not isinstance(meta, dict) or not isinstance(meta.get("name"), str) or not meta["name"]:
        return "metadata.name must be given"
    for name in ("labels", "annotations"):
        if not isinstance(meta.get(name) or {}, dict):
            return f"metadata.{name} must be a mapping"
    if not isinstance(obj.get("spec") or {}, dict) or not isinstance(obj.get("status") or {}, dict):
        return "spec and status must be mappings"
    return "metadata.namespace must be a text" if not isinstance(meta.get("namespace", ""), str) else ""


def _twice(known: list[Source]) -> list[str]:
    seen: dict[tuple[str, str], Source] = {}
    faults = []
    for source in known:
        key = (str(source.obj["kind"]), objects.key(source.obj))
        if key in seen:
            faults.append(f"{source.place()}: {key[0]} {key[1].lstrip('/')} is given twice; first in {seen[key].place()}")
        seen.setdefault(key, source)
    return faults


def _complete(source: Source, number: int) -> None:
    """What an API server would have added: a uid, a scheduler, and a time of creation that keeps the order of the files."""
    obj, meta = source.obj, source.obj["metadata"]
    if not meta.get("uid"):
        meta["uid"] = made_up_uid(str(obj["kind"]), objects.key(obj))
    if not meta.get("creationTimestamp"):
        meta["creationTimestamp"] = objects.stamp(_START + number)
    obj["spec"], obj["status"] = obj.get("spec") or {}, obj.get("status") or {}
    if source.kind == POD and "schedulerName" not in obj["spec"]:
        obj["spec"]["schedulerName"] = scheduler_names()[0]  # an API server always says; who writes by hand means us


def made_up_uid(*parts: str) -> str:
    """Always the same for the same thing."""
    return str(uuid.uuid5(uuid.NAMESPACE_URL, "/".join(parts)))


def _set_aside(files: Files) -> None:
    """Objects of which a field is of a wrong type take no part: nobody can tell what they mean."""
    for source in files.known:
        try:
            assert source.kind is not None
            shapes.check(source.kind, source.obj)
            if source.kind == POD:
                shapes.check_part(source.obj["spec"], shapes.POD_SPEC, "spec")
        except ValueError as error:
            files.misshapen.append((source, str(error)))
    bad = {id(source) for source, _ in files.misshapen}
    files.known = [source for source in files.known if id(source) not in bad]


# --- what admission would say -------------------------------------------------------------------------------------


class Reading:
    """The objects of files, to be read as a cluster is. The queues `root` and `default` are there in any case."""

    def __init__(self, files: Files) -> None:
        self._objects: dict[tuple[Kind, str, str], Obj] = {(QUEUE, "", name): obj for name, obj in _BUILT_IN.items()}
        for source in files.known:
            if source.kind is not None:
                meta = source.obj["metadata"]
                namespace = meta.get("namespace", "") if source.kind.namespaced else ""
                self._objects[source.kind, namespace, meta["name"]] = source.obj

    def get(self, kind: Kind, name: str, namespace: str = "") -> Obj:
        """The object. Raises NotFound."""
        try:
            return self._objects[kind, namespace if kind.namespaced else "", name]
        except KeyError:
            raise NotFound(f"there is no {kind.kind} {name!r} in the files") from None

    def list(self, kind: Kind, namespace: str = "", **_selectors: Any) -> Page:
        """All objects of a kind."""
        return Page([obj for (each, _, _), obj in self._objects.items() if each == kind], "1")


def _faulty(files: Files) -> list[str]:
    """New Jobs get their defaults, and are judged as at their admission; those that have a phase were let in once."""
    reading, faults = Reading(files), list[str]()
    for source in files.known:
        if source.kind != JOB:
            continue
        manifest.default(source.obj, scheduler_names()[0])
        if not isinstance(source.obj["status"].get("state"), dict):
            for fault in manifest.validate(source.obj, reading):
                faults.append(f"{source.place(fault.pointer)}: Job {objects.name(source.obj)}: {fault.pointer}: {fault.message}")
    return faults
