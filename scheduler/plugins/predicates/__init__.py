"""predicates: which nodes a pod may run on, by the rules of Kubernetes's default scheduler.

In the order of the checks: room for one more pod, cordons, node selector and affinity, taints, host ports, inter-pod
affinity, topology spread, volumes (`volumes`), dynamic resources (`dynamic`). Whether the resources fit is the allocate
action's to ask.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from cluster.objects import tolerates, untolerated
from cluster.said import said
from scheduler.framework.registry import plugin
from scheduler.model.nodes import Block
from scheduler.model.plain import PlainNode
from scheduler.model.resources import PODS, Mask
from scheduler.model.tasks import HostPort, TaskClass, TaskInfo
from scheduler.plugins.kube import affinity, columns, population, spread
from scheduler.plugins.kube.columns import Columns
from scheduler.plugins.kube.population import Population
from scheduler.plugins.predicates.dynamic import DeviceRules
from scheduler.plugins.predicates.volumes import VolumeRules

if TYPE_CHECKING:
    from scheduler.conf import Arguments
    from scheduler.framework.session import Session

_CHECKS = ("NodeAffinity", "NodePorts", "TaintToleration", "PodAffinity", "NodeVolumeLimits", "VolumeZone",
           "PodTopologySpread", "VolumeBinding")  # fmt: skip
_NOT_READY = ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable")
_CORDONED = {"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"}
_DOWN = {"key": _NOT_READY[0], "effect": "NoSchedule"}
_ANY_ADDRESS = "0.0.0.0"  # noqa: S104 (a host port's address, not a socket of ours)


@plugin
class Predicates:
    """The filters of Kubernetes's default scheduler.

    Arguments (all true): `predicate.<check>Enable` for NodeAffinity, NodePorts, TaintToleration, PodAffinity,
    NodeVolumeLimits, VolumeZone, PodTopologySpread, VolumeBinding; `predicate.CacheEnable` (what it would cache is
    always cached here); `volumebinding.bindTimeoutSeconds` (600): how long a pod waits for its claims to be bound;
    `predicate.DynamicResourceAllocationEnable` (true).
    """

    name: ClassVar[str] = "predicates"
    _columns: Columns
    _population: Population

    def __init__(self, arguments: Arguments) -> None:
        self._on = {check: arguments.boolean(f"predicate.{check}Enable", True) for check in _CHECKS}
        arguments.boolean("predicate.CacheEnable", False)
        _read_binding(arguments)
        self._dynamic = arguments.boolean("predicate.DynamicResourceAllocationEnable", True)

    def on_session_open(self, ssn: Session) -> None:
        self._columns, self._population = columns.of_session(ssn), population.of_session(ssn)
        ssn.add_predicate(self.name, "pod_count", has_pod_slot, resolvable=True, alone=lambda cls: _has_slot)
        ssn.add_predicate(self.name, "cordoned", self._uncordoned, static=True)
        if self._on["NodeAffinity"]:
            ssn.add_predicate(self.name, "selector", self._selected, static=True, applies=_has_selector)
            ssn.add_predicate(self.name, "affinity", self._attracted, static=True, applies=_has_node_affinity)
        if self._on["TaintToleration"]:
            ssn.add_predicate(self.name, "not_ready", self._ready, static=True)
            ssn.add_predicate(self.name, "taint", self._tolerated, static=True)
        if self._on["NodePorts"]:
            ssn.add_predicate(self.name, "ports", has_free_ports, resolvable=True, applies=lambda cls: bool(cls.host_ports))
        if self._on["PodAffinity"]:
            ssn.add_task_predicate(self.name, "pod_affinity", self._befriended, self._population.concerns)
        if self._on["PodTopologySpread"]:
            ssn.add_task_predicate(self.name, "spread", self._spread, _must_spread)
        if any(cls.mounts for cls in ssn.classes):
            VolumeRules(ssn, self.name, self._on, self._columns)
        if self._dynamic and any(cls.claims for cls in ssn.classes):
            DeviceRules(ssn, self.name, self._columns)

    def on_session_close(self, ssn: Session) -> None:
        """Nothing to write."""

    # -- what a node is --------------------------------------------------------------------------------------------------

    def _uncordoned(self, cls: TaskClass, at: Block) -> Mask:
        cordoned: Mask = at.nodes.cordoned[at.rows]
        if cordoned.any() and _tolerates(cls, _CORDONED):
            return np.ones(len(at.rows), np.bool_)
        return ~cordoned

    def _selected(self, cls: TaskClass, at: Block) -> Mask:
        return self._columns.has_labels(cls.spec["nodeSelector"])[at.rows]

    def _attracted(self, cls: TaskClass, at: Block) -> Mask:
        fits: Mask = np.zeros(len(self._columns), np.bool_)
        for term in _required_terms(cls) or ():
            fits |= self._columns.matches(term)
        return fits[at.rows]

    def _ready(self, cls: TaskClass, at: Block) -> Mask:
        """Nodes that are down, by their taint or, where nobody taints them, by their condition."""
        tainted = self._untolerated(cls, down=True)[at.rows]
        down: Mask = ~at.nodes.ready[at.rows]
        if down.any() and _tolerates(cls, _DOWN):
            return ~tainted
        return ~(tainted | down)

    def _tolerated(self, cls: TaskClass, at: Block) -> Mask:
        return ~self._untolerated(cls, down=False)[at.rows]

    def _untolerated(self, cls: TaskClass, *, down: bool) -> Mask:
        """Rows with a hard taint that the class does not tolerate, those of nodes that are down counted apart."""
        tolerations = cls.spec.get("tolerations")

        def refused(taints: Sequence[Mapping[str, Any]]) -> int:
            return any((taint.get("key") in _NOT_READY) is down for taint in untolerated(tolerations, taints))

        return self._columns.by_taints(refused).astype(np.bool_)

    # -- what is on it -----------------------------------------------------------------------------------------------------

    def _befriended(self, task: TaskInfo, at: Block) -> Mask:
        people = self._population
        where = self._columns.topologies
        return affinity.allowed(people.kind(task), people.placed, where, people.namespaces)[at.rows]

    def _spread(self, task: TaskInfo, at: Block) -> Mask:
        kind, nodes = self._population.kind(task), self._columns
        asked = spread.constraints(kind, hard=True)
        placed = self._population.placed
        return spread.within_skew(kind, asked, placed, nodes.topologies, nodes.names, nodes.taints)[at.rows]


def _read_binding(arguments: Arguments) -> None:
    """What Volcano's volume binding reads; how room is scored matters only where capacities are scored, which is off."""
    for key, default in (("volumebinding.bindTimeoutSeconds", 600), ("volumebinding.weight", 1)):
        if arguments.integer(key, default) < 0:
            raise arguments.error(key, said("must not be negative"))
    if not isinstance(arguments.value("volumebinding.shape", []), list):
        raise arguments.error("volumebinding.shape", said("must be a list of points, each with utilization and score"))
    if arguments.integer("dynamicresources.filterTimeoutSeconds", 10) < 0:
        raise arguments.error("dynamicresources.filterTimeoutSeconds", said("must not be negative"))


def has_pod_slot(cls: TaskClass, at: Block) -> Mask:
    """Nodes that take one more pod; one that does not say how many takes none."""
    free: Mask = at.allocatable[:, PODS] > at.pod_count
    return free


def _has_slot(node: PlainNode) -> bool:
    return node.allocatable[PODS] > node.pod_count


def has_free_ports(cls: TaskClass, at: Block) -> Mask:
    """Nodes on which none of the class's host ports is taken."""
    taken = at.nodes.host_ports
    free: Mask = np.array([not taken[row] or not _clash(cls.host_ports, taken[row]) for row in at.rows.tolist()], np.bool_)
    return free


def _clash(wanted: Sequence[HostPort], taken: Mapping[HostPort, int]) -> bool:
    for protocol, address, port in wanted:
        for (other_protocol, other_address, other_port), holders in taken.items():
            if (
                holders > 0
                and (protocol, port) == (other_protocol, other_port)
                and (address == other_address or _ANY_ADDRESS in (address, other_address))
            ):
                return True
    return False


def _tolerates(cls: TaskClass, taint: Mapping[str, str]) -> bool:
    return any(tolerates(toleration, taint) for toleration in cls.spec.get("tolerations") or ())


def _has_selector(cls: TaskClass) -> bool:
    return bool(cls.spec.get("nodeSelector"))


def _required_terms(cls: TaskClass) -> Sequence[Mapping[str, Any]] | None:
    """The terms of the required node affinity, of which one must fit; None when there is no such affinity."""
    node_affinity = (cls.spec.get("affinity") or {}).get("nodeAffinity") or {}
    required = node_affinity.get("requiredDuringSchedulingIgnoredDuringExecution")
    return None if required is None else required.get("nodeSelectorTerms") or ()


def _has_node_affinity(cls: TaskClass) -> bool:
    return _required_terms(cls) is not None


def _must_spread(task: TaskInfo) -> bool:
    return any(
        (each.get("whenUnsatisfiable") or "DoNotSchedule") == "DoNotSchedule"
        for each in task.cls.spec.get("topologySpreadConstraints") or ()
    )
