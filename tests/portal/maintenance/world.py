"""A cluster with real controllers and scheduler, its rows, and a worker of drains."""

from __future__ import annotations

from typing import Any

from cluster import objects, runtime
from cluster.errors import NotFound
from cluster.kinds import DISRUPTION_BUDGET, JOB, NODE, POD, POD_GROUP, QUEUE, Kind
from cluster.leaving import has_to_go
from cluster.port import Binding, Obj
from cluster.projection import Batch
from jobs import operations
from portal.maintenance.acts import Wish, begin, cancel
from portal.maintenance.models import Drain, DrainedNode
from portal.maintenance.worker import Worker
from portal.mirror import PROJECTIONS
from portal.unblock import copy
from tests.portal.unblock.world import Stage, manifest

KINDS = (QUEUE, NODE, JOB, POD_GROUP, POD)
WHY = "the fan is loud"


class Site(Stage):
    """Nodes n0, n1, … with 8 GPUs each. It is this process's cluster until it is closed."""

    def __init__(self, nodes: int = 2, **setup: Any) -> None:
        super().__init__(nodes=[{"name": f"n{i}", "cpu": 32, "memory": "128Gi", "gpu": 8} for i in range(nodes)], **setup)
        runtime.use(self.cluster)
        self.worker = Worker("one")
        self.project()

    def close(self) -> None:
        copy.current().close()
        runtime.use(None)
        self.world.close()

    def project(self) -> None:
        for kind in KINDS:
            PROJECTIONS[kind].project(Batch(self.cluster.list(kind).items))

    def run(self, name: str, replicas: int, *, owner: str = "ada", node: str = "", **words: Any) -> Obj:
        """A job whose pods run, on one node if one is named."""
        pod = {"nodeSelector": {objects.HOSTNAME_LABEL: node}} if node else {}
        spec = manifest(name, replicas, pod={**pod, **words.pop("pod", {})}, **words)
        found = operations.submit(self.cluster, spec, owner=owner)
        self.rest()
        self.project()
        return found

    def put(
        self, name: str, node: str, *, by: Kind | None = None, spec: Obj | None = None, phase: str = "Running", **meta: Any
    ) -> Obj:
        """A pod that somebody else put on a node: something of another kind, or nobody."""
        references = {"ownerReferences": [self._owner(by)]} if by else {}
        container = {"name": "main", "image": "busybox"}
        body = {"metadata": {"name": name, "namespace": "default", **references, **meta}}
        made = self.cluster.create(POD, {**body, "spec": {"schedulerName": "other", "containers": [container], **(spec or {})}})
        self.cluster.bind(Binding("default", name, objects.uid(made), node))
        self.world.settle()
        if phase != "Running":
            self.cluster.patch_status(POD, name, "default", {"phase": phase})
        self.project()
        return self.cluster.get(POD, name, "default")

    def _owner(self, kind: Kind) -> Obj:
        try:
            found = self.cluster.get(kind, "them", "default")
        except NotFound:
            found = self.cluster.create(kind, {"metadata": {"name": "them", "namespace": "default"}, "spec": {}})
        return objects.owner_reference(found)

    def budget(self, name: str, least: int, **labels: str) -> Obj:
        """A PodDisruptionBudget."""
        spec = {"minAvailable": least, "selector": {"matchLabels": labels}}
        return self.cluster.create(DISRUPTION_BUDGET, {"metadata": {"name": name, "namespace": "default"}, "spec": spec})

    def drain(self, user: Any, *nodes: str, **wish: Any) -> Drain:
        return begin(user, nodes, Wish(**({"reason": WHY} | wish)))

    def cancel(self, user: Any, drain: Drain, *, uncordon: bool = False) -> None:
        cancel(user, drain, uncordon=uncordon)

    def look(self, times: int = 1) -> None:
        """The worker looks, and the cluster does what follows."""
        for _ in range(times):
            self.worker.look()
            self.world.settle()

    def until_done(self, drain: Drain, most: int = 30) -> Drain:
        for _ in range(most):
            self.look()
            self.rest()
            drain.refresh_from_db()
            if drain.finished_at is not None:
                return drain
        raise AssertionError([(row.node, row.state, row.left, row.held) for row in drain.nodes.all()])

    def on(self, node: str) -> set[str]:
        """Names of the pods on a node."""
        return {objects.name(pod) for pod in self.cluster.list(POD, fields=f"spec.nodeName={node}").items}

    def going(self, node: str) -> set[str]:
        """Those of them that a drain evicts."""
        return {objects.name(pod) for pod in self.cluster.list(POD, fields=f"spec.nodeName={node}").items if has_to_go(pod)}

    def node(self, name: str) -> Obj:
        return self.cluster.get(NODE, name)

    def is_cordoned(self, name: str) -> bool:
        return bool(self.node(name)["spec"].get("unschedulable"))

    def row(self, drain: Drain, node: str) -> DrainedNode:
        return drain.nodes.get(node=node)


LOCAL = {"volumes": [{"name": "scratch", "emptyDir": {}}]}
