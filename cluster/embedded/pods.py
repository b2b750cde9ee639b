"""Binding and eviction of pods in the embedded store (its lock is held by the caller)."""

from __future__ import annotations

from typing import Any

from cluster.clock import Clock
from cluster.embedded.deletion import Deletion
from cluster.embedded.disruption import check_budgets
from cluster.embedded.journal import Journal
from cluster.embedded.memory import Change, Memory, key_of
from cluster.errors import BadRequest, Conflict, NotFound
from cluster.kinds import POD
from cluster.objects import now_stamp, with_condition
from cluster.port import Binding, Obj
from cluster.said import said


class Pods:
    """What the binding and eviction subresources do."""

    def __init__(self, memory: Memory, journal: Journal, deletion: Deletion, clock: Clock) -> None:
        self._memory, self._journal, self._deletion, self._clock = memory, journal, deletion, clock

    def bind(self, binding: Binding) -> None:
        """Set the node and the annotations, and the condition PodScheduled."""
        pod = self._memory.find(POD, (binding.namespace, binding.name))
        if pod is None:
            raise NotFound(
                said("there is no Pod %(name)r in namespace %(namespace)r", name=binding.name, namespace=binding.namespace)
            )
        self._check(pod, binding)
        metadata = dict(pod["metadata"])
        if binding.annotations:
            metadata["annotations"] = {**(metadata.get("annotations") or {}), **binding.annotations}
        bound = {**pod, "metadata": metadata, "spec": {**pod["spec"], "nodeName": binding.node}}
        self._keep(pod, bound, {"type": "PodScheduled", "status": "True"})

    @staticmethod
    def _check(pod: Obj, binding: Binding) -> None:
        name, uid = f"pod {binding.namespace}/{binding.name}", pod["metadata"]["uid"]
        if not binding.node:
            raise BadRequest(said("%(name)s cannot be bound to a node without a name", name=name))
        if binding.uid and binding.uid != uid:
            raise Conflict(
                said(
                    "%(name)s has uid %(uid)s, not %(meant)s: it is another pod of that name",
                    name=name,
                    uid=uid,
                    meant=binding.uid,
                )
            )
        if pod["metadata"].get("deletionTimestamp"):
            raise Conflict(said("%(name)s is being deleted", name=name))
        if node := (pod.get("spec") or {}).get("nodeName"):
            raise Conflict(said("%(name)s is already bound to node %(node)r", name=name, node=node))
        if gates := (pod.get("spec") or {}).get("schedulingGates"):
            raise Conflict(
                said(
                    "%(name)s is held by scheduling gates: %(gates)s",
                    name=name,
                    gates=", ".join(str(gate.get("name")) for gate in gates),
                )
            )

    def evict(self, pod: Obj, reason: str, message: str) -> None:
        """Say in the pod's conditions that it is disrupted, then delete it with its grace."""
        if (pod.get("status") or {}).get("phase") == "Running" and not pod["metadata"].get("deletionTimestamp"):
            check_budgets(pod, self._memory)
        condition = {
            "type": "DisruptionTarget",
            "status": "True",
            "reason": reason or "EvictionByEvictionAPI",
            "message": message or "evicted through the eviction API",
        }
        self._keep(pod, {**pod, "metadata": dict(pod["metadata"])}, condition)
        marked = self._memory.find(POD, key_of(pod))
        if marked is not None:
            self._deletion.ask(POD, marked)

    def _keep(self, old: Obj, new: Obj, condition: dict[str, Any]) -> None:
        status = dict(old.get("status") or {})
        stamped = {**condition, "lastProbeTime": None, "lastTransitionTime": now_stamp(self._clock)}
        new["status"] = {**status, "conditions": with_condition(status.get("conditions"), stamped)}
        new["metadata"]["resourceVersion"] = self._journal.next_version()
        self._journal.add(Change("MODIFIED", POD, new, old))
