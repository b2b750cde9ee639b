"""What a Queue is given and refused: amounts, the tree, and the built-in queues."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from cluster.admission import Request
from cluster.errors import FieldError, Forbidden
from cluster.kinds import JOB, POD_GROUP, QUEUE
from cluster.names import SUBDOMAIN_ADVICE, is_dns_subdomain
from cluster.objects import key, owner
from cluster.pointers import pointer
from cluster.port import Obj, Reader
from cluster.quantities import format_units, is_counted, parse_quantity, to_units
from cluster.said import said
from cluster.validation import Faults, check_shape, prune
from queues.hierarchy import check_hierarchy, default_hierarchy
from queues.shapes import QueueShape
from queues.tree import BUILT_IN, DEFAULT, ROOT, Tree, parent_of

MAX_DEPTH = 5
"""Levels below root."""

_AMOUNTS = ("capability", "deserved", "guarantee")
_NATIVE = frozenset({"cpu", "memory", "ephemeral-storage"})


@dataclass(frozen=True)
class QueueRules:
    """Admission of Queues."""

    def default(self, request: Request) -> None:
        """`reclaimable` true, weight 1, and `root/` before an annotated path that lacks it."""
        default_hierarchy(request.obj)
        spec = request.obj.setdefault("spec", {})
        if isinstance(spec, dict):
            if spec.get("reclaimable") is None:
                spec["reclaimable"] = True
            if spec.get("weight") in (None, 0):
                spec["weight"] = 1

    def validate(self, request: Request) -> list[FieldError]:
        """Every fault of the queue by itself and in its tree. Raises Forbidden for a delete that may not be."""
        name = request.obj["metadata"].get("name", "")
        queues = request.reader.list(QUEUE).items
        if request.operation == "DELETE":
            _check_delete(name, Tree(queues), request.reader)
            return []
        shape = check_shape(QueueShape, request.obj)
        queue = prune(request.obj, shape)
        queue["metadata"] = {"name": name, **(queue.get("metadata") or {})}
        found = Faults()
        spec = queue.get("spec") or {}
        if request.operation == "CREATE" and not is_dns_subdomain(name):
            found.add("/metadata/name", f"{name!r} is no queue name: {SUBDOMAIN_ADVICE}", "format")
        _check_amounts(spec, found)
        _check_state(queue, found)
        check_hierarchy(queue, queues, found)
        old = request.old
        tree = Tree([*(other for other in queues if other["metadata"]["name"] != name), queue])
        if old is None or parent_of(old) != parent_of(queue):
            _check_parent(queue, tree, found)
        if old is not None and name == ROOT:
            _check_root(queue, old, found)
        elif not found and (old is None or _place_or_amounts_changed(queue, old)):
            _check_tree(queue, tree, found)
        return Faults(shape).with_apart(found)


def amounts(queue: Obj, field: str) -> dict[str, Any]:
    """A queue's `capability`, `deserved` or `guarantee` as it is written: resource to quantity, nulls left out."""
    spec = queue.get("spec") or {}
    written = (spec.get("guarantee") or {}).get("resource") if field == "guarantee" else spec.get(field)
    return {name: quantity for name, quantity in (written or {}).items() if quantity is not None}


def _units(queue: Obj, field: str) -> dict[str, int]:
    return {name: to_units(name, quantity) for name, quantity in amounts(queue, field).items() if is_counted(name)}


def _place(field: str, resource: str) -> str:
    return pointer("spec", *(("guarantee", "resource") if field == "guarantee" else (field,)), resource)


def _check_amounts(spec: dict[str, Any], faults: Faults) -> None:
    """guarantee ≤ deserved ≤ capability, in whole numbers where the resource has no parts."""
    lists = {field: amounts({"spec": spec}, field) for field in _AMOUNTS}
    for field, resources in lists.items():
        for name, quantity in resources.items():
            if name not in _NATIVE and not name.startswith("hugepages-") and parse_quantity(quantity) % 1:
                faults.add(
                    _place(field, name),
                    said("%(quantity)s is not whole: %(name)s is handed out in whole numbers", quantity=quantity, name=name),
                    "format",
                )
    for name, quantity in lists["guarantee"].items():
        deserved = lists["deserved"].get(name)
        if deserved is None or parse_quantity(deserved) < parse_quantity(quantity):
            if deserved is None:
                told = said("is missing and must be at least the guarantee of %(guarantee)s", guarantee=quantity)
            else:
                told = said(
                    "is %(deserved)s and must be at least the guarantee of %(guarantee)s", deserved=deserved, guarantee=quantity
                )
            faults.add(_place("deserved", name), told, "range")
    for name, quantity in lists["deserved"].items():
        cap = lists["capability"].get(name)
        if cap is not None and parse_quantity(quantity) > parse_quantity(cap):
            faults.add(
                _place("deserved", name),
                said(
                    "%(deserved)s is above the capability of %(capability)s: at most that much", deserved=quantity, capability=cap
                ),
                "range",
            )


def _check_state(queue: Obj, faults: Faults) -> None:
    state = (queue.get("status") or {}).get("state") or "Open"
    if state not in ("Open", "Closed"):
        faults.add(
            "/status/state", said("the queue is %(state)s: it can be changed when it is Open or Closed", state=state), "closed"
        )


def _check_parent(queue: Obj, tree: Tree, faults: Faults) -> None:
    name, above = queue["metadata"]["name"], parent_of(queue)
    where = "/spec/parent"
    if above in ("", ROOT):
        return
    if above == name:
        faults.add(where, said("a queue cannot be its own parent"), "cycle")
    elif above not in tree.queues:
        faults.add(where, said("there is no queue %(above)r: create it first or name another", above=above), "not_found")
    elif any(below["metadata"]["name"] == above for below in tree.descendants(name)):
        faults.add(where, said("%(above)r lies below this queue: a parent cannot", above=above), "cycle")
    elif (depth := 1 + sum(1 for _ in tree.ancestors(name))) > MAX_DEPTH:
        faults.add(
            where,
            said("puts the queue %(depth)s levels below root: at most %(most)s", depth=depth, most=MAX_DEPTH),
            "range",
        )
    elif len(tree.children(above)) == 1 and (pods := _allocated_pods(tree.queues[above])):  # its one child is this queue
        faults.add(
            where,
            said("%(above)r runs %(pods)s pods of its own: a queue that holds queues cannot run pods", above=above, pods=pods),
            "conflict",
        )


def _allocated_pods(queue: Obj) -> int:
    allocated = (queue.get("status") or {}).get("allocated") or {}
    return int(parse_quantity(allocated.get("pods") or 0))


def _place_or_amounts_changed(queue: Obj, old: Obj) -> bool:
    return parent_of(queue) != parent_of(old) or any(amounts(queue, f) != amounts(old, f) for f in _AMOUNTS)


def _check_root(queue: Obj, old: Obj, faults: Faults) -> None:
    for field in _AMOUNTS:
        if amounts(queue, field) != amounts(old, field):
            faults.add(pointer("spec", field), said("of root cannot be changed: set it on the queues below"), "immutable")


def _check_tree(queue: Obj, tree: Tree, faults: Faults) -> None:
    """A queue fits into its parent beside its siblings, and its children fit into it."""
    name, above = queue["metadata"]["name"], parent_of(queue)
    for resource, amount in _units(queue, "capability").items():
        for ancestor in tree.ancestors(name):
            limit = _units(ancestor, "capability").get(resource, 0)
            if limit:
                if amount > limit:
                    there, by = format_units(resource, limit), ancestor["metadata"]["name"]
                    told = said("is above the %(limit)s of %(queue)s, which holds this queue", limit=there, queue=by)
                    faults.add(_place("capability", resource), told, "range")
                break
        most = max((_units(below, "capability").get(resource, 0) for below in tree.descendants(name)), default=0)
        if amount < most:
            told = said("is below the %(limit)s of a queue that it holds", limit=format_units(resource, most))
            faults.add(_place("capability", resource), told, "range")
    for field in ("deserved", "guarantee"):
        if above != ROOT and above in tree.queues:
            _check_siblings(queue, tree.queues[above], field, tree, faults)
        if tree.children(name):
            _check_below(queue, field, tree, faults)


def _check_siblings(queue: Obj, parent: Obj, field: str, tree: Tree, faults: Faults) -> None:
    """Children together ask no more than their parent has."""
    above, limits, own = parent["metadata"]["name"], _units(parent, field), _units(queue, field)
    for resource, amount in _below(above, field, tree).items():
        limit = limits.get(resource, 0)
        if amount > limit:
            asked, there = format_units(resource, amount), format_units(resource, limit)
            fits = format_units(resource, max(0, limit - amount + own.get(resource, 0)))
            told = said(
                "with its siblings this queue asks %(asked)s %(resource)s (%(field)s), and %(above)s has %(there)s: "
                "at most %(fits)s fits here, unless %(above)s gets %(asked)s",
                asked=asked, resource=resource, field=field, above=above, there=there, fits=fits,
            )  # fmt: skip
            faults.add(_place(field, resource), told, "range")


def _check_below(queue: Obj, field: str, tree: Tree, faults: Faults) -> None:
    """A parent has at least what its children ask together."""
    name, limits = queue["metadata"]["name"], _units(queue, field)
    for resource, amount in _below(name, field, tree).items():
        limit = limits.get(resource, 0)
        if amount > limit:
            asked, there = format_units(resource, amount), format_units(resource, limit)
            told = said(
                "the queues below ask %(asked)s %(resource)s (%(field)s), and %(name)s would have %(there)s: "
                "at least %(asked)s, or less for those",
                asked=asked, resource=resource, field=field, name=name, there=there,
            )  # fmt: skip
            faults.add(_place(field, resource), told, "range")


def _below(name: str, field: str, tree: Tree) -> dict[str, int]:
    """What the children of a queue ask together."""
    total: dict[str, int] = {}
    for child in tree.children(name):
        for resource, amount in _units(child, field).items():
            total[resource] = total.get(resource, 0) + amount
    return total


_ENDED = ("Completed", "Failed", "Terminated")
"""Phases out of which nothing moves a job; a suspended one can be resumed."""


def _check_delete(name: str, tree: Tree, reader: Reader) -> None:
    if name in BUILT_IN:
        raise Forbidden(said("queue %(name)s is built in and cannot be deleted", name=name))
    if children := [child["metadata"]["name"] for child in tree.children(name)]:
        raise Forbidden(
            said(
                "queue %(name)s holds %(count)s queues (%(children)s): delete or move them first",
                name=name,
                count=len(children),
                children=", ".join(children),
            )
        )
    if left := sorted(_unfinished(name, reader)):
        some = ", ".join(left[:3]) + (", …" if len(left) > 3 else "")
        if len(left) == 1:
            told = said(
                "queue %(name)s holds a job that has not ended (%(some)s): close it and let it end, or move it first",
                name=name,
                some=some,
            )
        else:
            told = said(
                "queue %(name)s holds %(count)s jobs that have not ended (%(some)s): "
                "close it and let them end, or move them first",
                name=name, count=len(left), some=some,
            )  # fmt: skip
        raise Forbidden(told)


def _unfinished(name: str, reader: Reader) -> Iterator[str]:
    """Jobs of a queue that have not ended, and gangs of bare pods."""
    for job in reader.list(JOB).items:
        phase = ((job.get("status") or {}).get("state") or {}).get("phase")
        if (job.get("spec") or {}).get("queue", DEFAULT) == name and phase not in _ENDED:
            yield key(job)
    for group in reader.list(POD_GROUP).items:
        is_jobs = (owner(group) or {}).get("kind") == JOB.kind
        phase = (group.get("status") or {}).get("phase")
        if not is_jobs and (group.get("spec") or {}).get("queue", DEFAULT) == name and phase != "Completed":
            yield key(group)
