"""Admission of what belongs to the cluster itself: Node, HyperNode, Numatopology, and what may change in a Pod.

The shapes are as far as Basalt reads these kinds; everything else in them passes.
"""

from __future__ import annotations

import re
from typing import Any, Literal

from cluster import configuration, networking
from cluster.admission import PlainRules, Request, Rules
from cluster.cpus import LARGEST, format_cpus, parse_cpus
from cluster.errors import FieldError
from cluster.kinds import HYPER_NODE, NODE, NUMATOPOLOGY, POD, Kind
from cluster.objects import GPU_INDICES, GPU_TOPOLOGY, GPU_UNHEALTHY, QUEUE_GATE
from cluster.pointers import pointer
from cluster.port import Obj
from cluster.quantities import to_units
from cluster.said import said
from cluster.topology import TopologyError, parse_topology
from cluster.validation import Count, Faults, Meta, Resources, Shape, Texts, check_shape, prune

_INDICES = re.compile(r"([0-9]{1,4}(,[0-9]{1,4})*)?")
_CPU = re.compile(r"0|[1-9][0-9]{0,3}", re.ASCII)
_NUMA_POLICIES = {
    "CPUManagerPolicy": ("", "none", "static"),
    "TopologyManagerPolicy": ("", "none", "best-effort", "restricted", "single-numa-node"),
}
_SELECTORS = ("exactMatch", "regexMatch", "labelMatch")
_LONGEST_PATTERN = 500


class _Taint(Shape):
    key: str
    value: str = ""
    effect: Literal["NoSchedule", "PreferNoSchedule", "NoExecute"]


class _NodeSpec(Shape):
    unschedulable: bool = False
    taints: list[_Taint] | None = None


class _Condition(Shape):
    type: str
    status: Literal["True", "False", "Unknown"]


class _NodeStatus(Shape):
    capacity: Resources | None = None
    allocatable: Resources | None = None
    conditions: list[_Condition] | None = None


class _Node(Shape):
    metadata: Meta
    spec: _NodeSpec | None = None
    status: _NodeStatus | None = None


class _Exact(Shape):
    name: str


class _Pattern(Shape):
    pattern: str


class _MemberSelector(Shape):
    exactMatch: _Exact | None = None
    regexMatch: _Pattern | None = None
    labelMatch: dict[str, Any] | None = None


class _Member(Shape):
    type: Literal["Node", "HyperNode"]
    selector: _MemberSelector


class _HyperNodeSpec(Shape):
    tier: Count
    tierName: str = ""
    members: list[_Member] | None = None


class HyperNodeShape(Shape):
    metadata: Meta
    spec: _HyperNodeSpec


class _CpuDetail(Shape):
    numa: Count = 0
    socket: Count = 0
    core: Count = 0


class _NumaResource(Shape):
    allocatable: str = ""
    capacity: Count = 0


class _ContainerAllocation(Shape):
    name: str = ""
    allocations: Texts | None = None


class _PodAllocation(Shape):
    uid: str = ""
    name: str = ""
    namespace: str = ""
    containerAllocations: list[_ContainerAllocation] | None = None


class _NumatopologySpec(Shape):
    policies: Texts | None = None
    resReserved: Resources | None = None
    numares: dict[str, _NumaResource] | None = None
    cpuDetail: dict[str, _CpuDetail] | None = None
    podAllocations: list[_PodAllocation] | None = None


class NumatopologyShape(Shape):
    metadata: Meta
    spec: _NumatopologySpec | None = None


class NodeRules(PlainRules):
    """Nodes: amounts that can be counted, sound taints, and GPU annotations that can be read."""

    def check(self, request: Request) -> list[FieldError]:
        """Shapes, then amounts and annotations."""
        shape = check_shape(_Node, request.obj)
        node = prune(request.obj, shape)
        faults = Faults(shape)
        for field in ("capacity", "allocatable"):
            for resource, amount in ((node.get("status") or {}).get(field) or {}).items():
                try:
                    to_units(resource, amount)
                except ValueError as error:
                    faults.add(pointer("status", field, resource), str(error))
        notes = (node.get("metadata") or {}).get("annotations") or {}
        if GPU_TOPOLOGY in notes:
            try:
                parse_topology(notes[GPU_TOPOLOGY])
            except TopologyError as error:
                faults.add(pointer("metadata", "annotations", GPU_TOPOLOGY), str(error))
        if not _INDICES.fullmatch(notes.get(GPU_UNHEALTHY, "")):
            where = pointer("metadata", "annotations", GPU_UNHEALTHY)
            faults.add(where, said("%(given)r is no list of GPU indices: write them as '0,3'", given=notes[GPU_UNHEALTHY]))
        return faults


class HyperNodeRules(PlainRules):
    """HyperNodes: members by exactly one selector, and domains only by their names."""

    def check(self, request: Request) -> list[FieldError]:
        """Shapes, then selectors."""
        faults = Faults(check_shape(HyperNodeShape, request.obj))
        if faults:
            return faults
        if not request.obj["spec"].get("members"):
            faults.add("/spec/members", said("must have at least one member: a node, or a domain below"), "required")
        for index, member in enumerate((request.obj["spec"].get("members")) or ()):
            self._check_member(member, pointer("spec", "members", index, "selector"), faults)
        return faults

    @staticmethod
    def _check_member(member: dict[str, Any], where: str, faults: Faults) -> None:
        given = [name for name in _SELECTORS if member["selector"].get(name) is not None]
        if len(given) != 1:
            faults.add(where, said("must have exactly one of %(selectors)s", selectors=", ".join(_SELECTORS)))
        elif member["type"] == "HyperNode" and given != ["exactMatch"]:
            faults.add(f"{where}/{given[0]}", said("a member of type HyperNode is named by exactMatch"))
        elif given == ["regexMatch"]:
            text = member["selector"]["regexMatch"]["pattern"]
            try:
                if len(text) > _LONGEST_PATTERN:
                    raise re.error(f"longer than {_LONGEST_PATTERN} characters")
                re.compile(text)
            except re.error as error:
                faults.add(f"{where}/regexMatch/pattern", said("is no regular expression: %(error)s", error=error))


class NumatopologyRules(PlainRules):
    """Numatopologies: CPUs by their ids, and lists of CPUs that say only those."""

    def check(self, request: Request) -> list[FieldError]:
        """Shapes, then policies, ids and lists."""
        shape = check_shape(NumatopologyShape, request.obj)
        faults, spec = Faults(shape), prune(request.obj, shape).get("spec") or {}
        for name, known in _NUMA_POLICIES.items():
            given = (spec.get("policies") or {}).get(name, "")
            if given not in known:
                faults.add(
                    pointer("spec", "policies", name),
                    said("%(given)r must be one of %(known)s", given=given, known=", ".join(filter(None, known))),
                )
        known_cpus = 0
        for text in spec.get("cpuDetail") or {}:
            if not _CPU.fullmatch(text) or int(text) > LARGEST:
                faults.add(pointer("spec", "cpuDetail", text), said("must be a CPU id from 0 to %(largest)s", largest=LARGEST))
            else:
                known_cpus |= 1 << int(text)
        self._check_list((spec.get("numares") or {}).get("cpu") or {}, known_cpus, faults)
        return faults

    @staticmethod
    def _check_list(cpu: dict[str, Any], known: int, faults: Faults) -> None:
        where = pointer("spec", "numares", "cpu", "allocatable")
        try:
            unknown = parse_cpus(cpu.get("allocatable") or "") & ~known
        except ValueError as error:
            faults.add(where, str(error))
            return
        if unknown:
            faults.add(where, said("%(unknown)s are not in /spec/cpuDetail", unknown=format_cpus(unknown)))


class PodChangeRules(PlainRules):
    """Which GPUs a pod holds, in figures; and what may change in a pod's spec once it is there, as in Kubernetes: little."""

    def default(self, request: Request) -> None:
        """The gate of its queue, for a pod that asks for one."""
        meta, spec = request.obj.get("metadata"), request.obj.get("spec")
        notes = meta.get("annotations") if isinstance(meta, dict) else None
        if not isinstance(notes, dict) or notes.get(QUEUE_GATE) != "true" or not isinstance(spec, dict):
            return
        gates = spec.get("schedulingGates") or []
        if isinstance(gates, list) and {"name": QUEUE_GATE} not in gates and not spec.get("nodeName"):
            spec["schedulingGates"] = [*gates, {"name": QUEUE_GATE}]

    def check(self, request: Request) -> list[FieldError]:
        """The GPUs always, the spec on update."""
        notes = request.obj["metadata"].get("annotations")
        held = notes.get(GPU_INDICES, "") if isinstance(notes, dict) else ""
        if isinstance(held, str) and not _INDICES.fullmatch(held):
            where = pointer("metadata", "annotations", GPU_INDICES)
            return [FieldError(where, said("%(given)r is no list of GPU indices: write them as '0,3'", given=held), "format")]
        return [] if request.old is None else self._check_change(request, request.old)

    @staticmethod
    def _check_change(request: Request, before: Obj) -> list[FieldError]:
        old, new = before.get("spec") or {}, request.obj.get("spec")
        if not isinstance(new, dict):
            return [FieldError("/spec", said("is a mapping"))]
        changed = [field for field in sorted({*old, *new}) if _fixed(field, old.get(field)) != _fixed(field, new.get(field))]
        faults = [
            FieldError(pointer("spec", field), said("cannot change: delete the pod and make another"), "immutable")
            for field in changed
        ]
        kept = new.get("tolerations") or []
        if any(toleration not in kept for toleration in old.get("tolerations") or ()):
            faults.append(FieldError("/spec/tolerations", said("can only be added to"), "immutable"))
        gates = old.get("schedulingGates") or []
        if any(gate not in gates for gate in new.get("schedulingGates") or ()):
            faults.append(FieldError("/spec/schedulingGates", said("can only be taken away"), "immutable"))
        return faults


def _fixed(field: str, value: Any) -> Any:
    """The part of a field of a pod's spec that must stay."""
    if field in ("activeDeadlineSeconds", "tolerations", "schedulingGates", "terminationGracePeriodSeconds"):
        return None
    if field in ("containers", "initContainers") and isinstance(value, list):
        return [{k: v for k, v in c.items() if k != "image"} if isinstance(c, dict) else c for c in value]
    return value


RULES: dict[Kind, Rules] = {
    NODE: NodeRules(),
    HYPER_NODE: HyperNodeRules(),
    NUMATOPOLOGY: NumatopologyRules(),
    **configuration.RULES,
    **networking.RULES,
    POD: PodChangeRules(),
}
