"""A draft of what might be changed: queues' weights and quotas, nodes. It lives in the address of its page.

`weight.QUEUE=3`, `deserved.QUEUE=16` and `capability.QUEUE=32` (GPUs of the kind that the fleet has most of, "-" for no such
limit), `cordon=NODE,NODE`, `drain=…`, `remove=…`, `add=4*NODE` (so many more nodes like that one).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from django.utils.http import urlencode
from django.utils.translation import gettext as _

from cluster import objects
from cluster.kinds import NODE, POD, QUEUE
from cluster.port import Obj, WatchEvent
from cluster.quantities import is_gpu
from portal.dryrun.reading import made_up_uid
from portal.maintenance.going import Going, look
from portal.unblock.copy import View

QUOTAS = ("deserved", "capability")
QUEUE_FIELDS = ("weight", *QUOTAS)
FIELDS = ("cordon", "drain", "remove", "add")
WEIGHTS = 2**31 - 1
MOST_NODES = 1000
"""Nodes that a draft may add."""
_ADD = re.compile(r"\s*(\d{1,6})\s*[*×x]\s*(\S+)\s*", re.ASCII)
_NUMBER = re.compile(r"\d{1,9}(\.\d{1,3})?", re.ASCII)
NONE = "-"


@dataclass(slots=True)
class Draft:
    """What is to be changed; `faults` by field say what is wrong with what was given."""

    queues: dict[str, dict[str, str]] = field(default_factory=dict)
    cordon: list[str] = field(default_factory=list)
    drain: list[str] = field(default_factory=list)
    remove: list[str] = field(default_factory=list)
    add: list[tuple[int, str]] = field(default_factory=list)
    faults: dict[str, str] = field(default_factory=dict)

    @classmethod
    def read(cls, given: Mapping[str, Any]) -> Draft:
        """Read an address or a form; empty fields change nothing."""
        found = cls()
        for key in given:
            name, _dot, queue = str(key).partition(".")
            value = str(given[key] or "").strip()
            if queue and name in QUEUE_FIELDS and value:
                found.queues.setdefault(queue, {})[name] = value
                found._check(name, queue, value)
        for name in ("cordon", "drain", "remove"):
            setattr(found, name, list(dict.fromkeys(re.findall(r"[^\s,]+", str(given.get(name) or "")))))
        more: dict[str, int] = {}
        for part in re.split(r"[,\n]", str(given.get("add") or "")):
            if not part.strip():
                continue
            match = _ADD.fullmatch(part)
            if match is None or not int(match[1]):
                found.faults["add"] = _("Write how many and like which node, such as 4*node-a; not %(given)s") % {"given": part}
            else:
                more[match[2]] = more.get(match[2], 0) + int(match[1])
        found.add = [(count, like) for like, count in more.items()]
        if sum(count for count, _like in found.add) > MOST_NODES:
            found.faults["add"] = _("At most %(count)s nodes can be added") % {"count": MOST_NODES}
        return found

    def _check(self, name: str, queue: str, value: str) -> None:
        key = f"{name}.{queue}"
        if name == "weight":
            if not (value.isascii() and value.isdigit() and len(value) <= 10 and 1 <= int(value) <= WEIGHTS):
                self.faults[key] = _("The weight of %(queue)s must be a whole number from 1 on, not %(given)s") % {
                    "queue": queue, "given": value,
                }  # fmt: skip
        elif value != NONE and not _NUMBER.fullmatch(value):
            self.faults[key] = _("The GPUs of %(queue)s must be a number, or - for no limit, not %(given)s") % {
                "queue": queue, "given": value,
            }  # fmt: skip

    @property
    def is_empty(self) -> bool:
        """Whether nothing is to be changed."""
        return not (self.queues or self.cordon or self.drain or self.remove or self.add)

    def query(self) -> str:
        """The draft as an address says it."""
        found = {f"{name}.{queue}": value for queue, fields in self.queues.items() for name, value in fields.items()}
        found |= {name: ",".join(getattr(self, name)) for name in ("cordon", "drain", "remove") if getattr(self, name)}
        if self.add:
            found["add"] = ",".join(f"{count}*{like}" for count, like in self.add)
        return urlencode(found)

    def without_unchanged(self, now: Mapping[str, Mapping[str, str]]) -> Draft:
        """The same without what says what is there already: `now` has the fields of each queue."""
        for queue in list(self.queues):
            fields = {name: value for name, value in self.queues[queue].items() if now.get(queue, {}).get(name, "") != value}
            if fields:
                self.queues[queue] = fields
            else:
                del self.queues[queue]
        return self


def resource_of(view: View) -> str:
    """The kind of GPU that the fleet has most of; the usual one where it has none."""
    nodes = view.cache.nodes
    total = view.cache.dims.units(nodes.total().values)
    found = {name: units for name, units in total.items() if is_gpu(name) and units}
    return max(found, key=lambda name: (found[name], name), default="nvidia.com/gpu")


def fields_of(queue: Obj, resource: str) -> dict[str, str]:
    """A queue's weight and quotas as a draft writes them."""
    spec = queue.get("spec") or {}
    found = {"weight": str(spec.get("weight") or 1)}
    for name in QUOTAS:
        amount = (spec.get(name) or {}).get(resource)
        found[name] = NONE if amount is None else str(amount)
    return found


@dataclass(slots=True)
class Changes:
    """A draft as a cluster would tell of it. `moved` counts the pods, by job, that have to leave their nodes."""

    events: list[WatchEvent] = field(default_factory=list)
    moved: dict[str, int] = field(default_factory=dict)


def changes(view: View, draft: Draft, resource: str) -> Changes:
    """The events of a draft. What does not exist is told in the draft's `faults`."""
    found = Changes()
    for name, fields in sorted(draft.queues.items()):
        queue = view.cache.queues.get(name)
        if queue is None or not queue.obj:
            draft.faults[f"weight.{name}"] = _("There is no queue %(queue)s") % {"queue": name}
        else:
            found.events.append(WatchEvent("MODIFIED", QUEUE, _queue(dict(queue.obj), fields, resource)))
    for name in dict.fromkeys([*draft.cordon, *draft.drain]):
        node = _node(view, draft, "cordon" if name in draft.cordon else "drain", name)
        if node is not None and name not in draft.remove:
            found.events.append(
                WatchEvent("MODIFIED", NODE, {**node, "spec": {**(node.get("spec") or {}), "unschedulable": True}})
            )
    _leave(view, look(view, draft.drain, draft.remove), found)
    index = view.cache.nodes.index
    for name in sorted(draft.remove, key=lambda name: -index.get(name, 0)):  # they come back into the rows that they had
        node = _node(view, draft, "remove", name)
        if node is not None:
            found.events.append(WatchEvent("DELETED", NODE, node))
    for count, like in draft.add:
        node = _node(view, draft, "add", like)
        if node is not None:
            found.events += [WatchEvent("ADDED", NODE, more) for more in _like(view, node, count)]
    return found


def _queue(queue: Obj, fields: Mapping[str, str], resource: str) -> Obj:
    spec = dict(queue.get("spec") or {})
    if "weight" in fields:
        spec["weight"] = int(fields["weight"])
    for name in QUOTAS:
        if name in fields:
            amounts = {key: value for key, value in (spec.get(name) or {}).items() if key != resource}
            spec[name] = amounts if fields[name] == NONE else {**amounts, resource: fields[name]}
    return {**queue, "spec": spec}


def _node(view: View, draft: Draft, fields: str, name: str) -> Obj | None:
    row = view.cache.nodes.index.get(name)
    node = view.cache.nodes.objects[row] if row is not None else None
    if node is None:
        draft.faults[fields] = _("There is no node %(node)s") % {"node": name}
        return None
    return dict(node)


def _leave(view: View, going: Going, found: Changes) -> None:
    """Pods leave, with those that the policies of their jobs take along, and their controllers make them anew where they do."""
    found.events += [WatchEvent("DELETED", POD, each.pod) for each in going.evicted if not each.group]
    for gang in going.gangs.values():
        for pod in gang.pods:
            if objects.uid(pod) not in gang.leaving:
                continue
            found.events.append(WatchEvent("DELETED", POD, pod))
            found.moved[gang.key] = found.moved.get(gang.key, 0) + 1
            if gang.is_made_again(pod):
                found.events.append(WatchEvent("ADDED", POD, _anew(view, pod)))


def _anew(view: View, pod: Obj) -> Obj:
    """A pod as its controller makes it again: on no node."""
    created = objects.stamp(view.at)
    meta = dict(pod["metadata"])
    meta |= {"uid": made_up_uid("Pod", objects.key(pod), created), "creationTimestamp": created}
    annotations = {key: value for key, value in (meta.get("annotations") or {}).items() if key != objects.GPU_INDICES}
    meta["annotations"] = annotations
    meta.pop("deletionTimestamp", None)
    spec = {key: value for key, value in pod["spec"].items() if key != "nodeName"}
    return {**pod, "metadata": meta, "spec": spec, "status": {"phase": "Pending"}}


def _like(view: View, node: Obj, count: int) -> Iterable[Obj]:
    """Nodes like one, empty and open, under names that no node has."""
    made, number = 0, 0
    while made < count:
        number += 1
        name = f"{node['metadata']['name']}-new-{number}"
        if name in view.cache.nodes.index:
            continue
        made += 1
        meta = node["metadata"]
        labels = {**(meta.get("labels") or {}), objects.HOSTNAME_LABEL: name}
        new = {**meta, "name": name, "uid": made_up_uid("Node", name, str(number)), "labels": labels}
        spec = {key: value for key, value in (node.get("spec") or {}).items() if key != "unschedulable"}
        yield {**node, "metadata": new, "spec": spec}
