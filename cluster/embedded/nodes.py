"""The kubelet's and the node controller's part for nodes: heartbeats, loss and recovery."""

from __future__ import annotations

from collections.abc import Callable

from cluster.clock import Clock
from cluster.embedded.store import EmbeddedCluster
from cluster.errors import Conflict
from cluster.kinds import NODE
from cluster.objects import condition, name, parse_time, stamp, with_condition
from cluster.port import Obj, StatusWrite, WatchEvent

HEARTBEAT_SECONDS = 300.0
SHORTEST_REAL_HEARTBEAT = 30.0
GIVE_UP_SECONDS = 300.0
EVENT_SECONDS = 3600.0
EVENT_SWEEP_SECONDS = 60.0
_ATTEMPTS = 5
UNREACHABLE = "node.kubernetes.io/unreachable"


class NodeKeeper:
    """Knows which nodes are lost. `lose` and `recover` may come from any thread, the rest from the kubelet's own."""

    def __init__(self, cluster: EmbeddedCluster, clock: Clock) -> None:
        self._cluster, self._clock = cluster, clock
        self._nodes: dict[str, Obj] = {}
        self._gone: dict[str, float] = {}
        self._next_heartbeat = clock.now() + self._interval()
        self._next_sweep = clock.now()

    def take(self, event: WatchEvent) -> bool:
        """Follow a node's change; True when its pods are concerned."""
        node = name(event.object)
        before = self.given_up_at(node)
        if event.type == "DELETED":
            self._nodes.pop(node, None)
            self._gone[node] = self._clock.now()
        else:
            self._nodes[node] = event.object
            self._gone.pop(node, None)
        return before != self.given_up_at(node)

    def get(self, node: str) -> Obj | None:
        """A node as it was seen last."""
        return self._nodes.get(node)

    def given_up_at(self, node: str) -> float | None:
        """When the pods of a node that is lost or deleted are given up; None for a node that is well or was never known."""
        if node in self._gone:
            return self._gone[node]
        for taint in (self._nodes.get(node, {}).get("spec") or {}).get("taints") or ():
            if taint.get("key") == UNREACHABLE and taint.get("effect") == "NoExecute" and taint.get("timeAdded"):
                return parse_time(taint["timeAdded"]) + GIVE_UP_SECONDS
        return None

    def lose(self, node: str) -> None:
        """Ready becomes Unknown, and the node controller's taints are put on."""
        added = stamp(self._clock.now())
        taints = [{"key": UNREACHABLE, "effect": effect, "timeAdded": added} for effect in ("NoSchedule", "NoExecute")]
        self._set_taints(node, taints)
        self._set_ready(node, "Unknown", "NodeStatusUnknown", "Kubelet stopped posting node status.")

    def recover(self, node: str) -> None:
        """Ready again, without those taints."""
        self._set_taints(node, [])
        self._set_ready(node, "True", "KubeletReady", "kubelet is posting ready status")

    def heartbeat(self) -> int:
        """Every few minutes, all nodes that are there say so in one write; simulated time has no heartbeats."""
        now = self._clock.now()
        if now < self._next_heartbeat or self._clock.real(1.0) == 0:
            return 0
        self._next_heartbeat = now + self._interval()
        beats = [StatusWrite("", node, beat) for node, obj in self._nodes.items() if (beat := _beat(obj, now))]
        return len(self._cluster.patch_status_many(NODE, beats)) if beats else 0

    def forget_events(self) -> int:
        """Once a minute, let go the events of more than an hour ago."""
        now = self._clock.now()
        if now < self._next_sweep:
            return 0
        self._next_sweep = now + EVENT_SWEEP_SECONDS
        return self._cluster.forget_events(now - EVENT_SECONDS)

    def _interval(self) -> float:
        """Cluster seconds between heartbeats: five minutes, more where time runs so fast that these would be busy."""
        per_second = self._clock.real(1.0)
        return max(HEARTBEAT_SECONDS, SHORTEST_REAL_HEARTBEAT / per_second) if per_second else HEARTBEAT_SECONDS

    def _set_taints(self, node: str, taints: list[Obj]) -> None:
        def write(obj: Obj, version: str) -> None:
            others = [taint for taint in (obj.get("spec") or {}).get("taints") or () if taint.get("key") != UNREACHABLE]
            body = {"metadata": {"resourceVersion": version}, "spec": {"taints": [*others, *taints] or None}}
            self._cluster.patch(NODE, node, "", body, field_manager="node-controller")

        self._change(node, write)

    def _set_ready(self, node: str, status: str, reason: str, message: str) -> None:
        now = stamp(self._clock.now())
        ready = {"type": "Ready", "status": status, "reason": reason, "message": message}
        stamped = {**ready, "lastHeartbeatTime": now, "lastTransitionTime": now}

        def write(obj: Obj, version: str) -> None:
            conditions = with_condition((obj.get("status") or {}).get("conditions"), stamped)
            self._cluster.patch_status(NODE, node, "", {"conditions": conditions}, resource_version=version)

        self._change(node, write)

    def _change(self, node: str, write: Callable[[Obj, str], None]) -> None:
        """Read and write a node; read it again when somebody else wrote in between."""
        for attempt in range(1, _ATTEMPTS + 1):
            obj = self._cluster.get(NODE, node)
            try:
                write(obj, obj["metadata"]["resourceVersion"])
            except Conflict:
                if attempt == _ATTEMPTS:
                    raise
            else:
                return


def _beat(node: Obj, now: float) -> Obj | None:
    """The status that says a ready node is still there; None for one that is not ready."""
    ready = condition(node, "Ready")
    if ready is None or ready.get("status") != "True":
        return None
    return {"conditions": with_condition(node["status"]["conditions"], {**ready, "lastHeartbeatTime": stamp(now)})}
