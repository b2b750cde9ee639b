"""A small world for controller tests: the embedded store in memory, the controllers, and stand-ins for scheduler and kubelet.

Time stands still until a test moves it. The stand-in scheduler admits every gang that has room and binds all of its pods at
once; the stand-in kubelet runs what is bound and ends a pod when a test says so.
"""

from __future__ import annotations

import copy
from typing import Any

from cluster.admission import Admission
from cluster.clock import ManualClock
from cluster.embedded.store import EmbeddedCluster
from cluster.errors import NotFound
from cluster.kinds import COMMAND, CONFIG_MAP, EVENT, JOB, NETWORK_POLICY, NODE, POD, POD_GROUP, QUEUE, SECRET, SERVICE
from cluster.objects import annotations, is_deleting, labels, name, namespace, stamp
from cluster.port import Binding, Obj
from cluster.rules import RULES
from jobs import keys, operations
from jobs.admission import rules
from jobs.controller import ControllerManager
from queues.admission import QueueRules

SCHEDULERS = ("volcano", "basalt")
START = 1_900_000_000.0


def all_rules() -> Admission:
    """The rules of queues and jobs, and of what jobs' plugins make, apart from the process-wide registry."""
    admission = Admission()
    for kind in (SERVICE, CONFIG_MAP, SECRET, NETWORK_POLICY):
        admission.register(kind, RULES[kind])
    admission.register(QUEUE, QueueRules())
    for kind, rule in rules(SCHEDULERS).items():
        admission.register(kind, rule)
    return admission


def task(role: str = "worker", replicas: int = 2, **more: Any) -> dict[str, Any]:
    """A role with one small container."""
    container = {"name": "main", "image": "busybox", "resources": {"requests": {"cpu": "1", "memory": "1Gi"}}}
    template = {"spec": {"containers": [container], "restartPolicy": "Never"}}
    return {"name": role, "replicas": replicas, "template": template, **more}


def job(title: str = "train", *tasks: dict[str, Any], **spec: Any) -> dict[str, Any]:
    """A Job manifest; without tasks it has two workers."""
    return {
        "apiVersion": "batch.volcano.sh/v1alpha1",
        "kind": "Job",
        "metadata": {"name": title, "namespace": "default"},
        "spec": {"tasks": list(tasks) or [task()], **spec},
    }


def command(target: Obj, action: str) -> dict[str, Any]:
    """A Command for a job."""
    meta = target["metadata"]
    reference = {"apiVersion": JOB.api_version, "kind": "Job", "name": meta["name"], "uid": meta["uid"], "controller": True}
    return {
        "apiVersion": COMMAND.api_version,
        "kind": "Command",
        "metadata": {"generateName": "c-", "namespace": meta["namespace"], "ownerReferences": [reference]},
        "action": action,
        "target": reference,
    }


class World:
    """Everything that a test touches."""

    def __init__(self, *, nodes: int = 4) -> None:
        self.clock = ManualClock(START)
        self.cluster = EmbeddedCluster(clock=self.clock, admission=all_rules())
        self.manager = self.new_manager()
        self.manager.settle()
        for index in range(nodes):
            node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": f"node-{index}"}}
            self.cluster.create(NODE, node)

    @classmethod
    def over(cls, cluster: EmbeddedCluster, clock: Any) -> World:
        """The stand-ins over a cluster whose controllers run elsewhere."""
        world = cls.__new__(cls)
        world.cluster, world.clock = cluster, clock
        return world

    def new_manager(self, through: Any = None) -> ControllerManager:
        """A controller process that begins anew over the same objects; it may see the cluster `through` something."""
        return ControllerManager(through or self.cluster, self.clock, schedulers=SCHEDULERS)

    def restart(self, through: Any = None) -> None:
        """The controllers die and begin anew."""
        self.manager.close()
        self.manager = self.new_manager(through)

    def settle(self) -> None:
        """Controllers alone."""
        self.manager.settle()

    def turn(self, rounds: int = 20, *, schedule: bool = True) -> None:
        """Controllers, scheduler and kubelet until nothing moves."""
        for _ in range(rounds):
            before = self._version()
            self.settle()
            if schedule:
                self.schedule()
            self.run_kubelet()
            self.settle()
            if self._version() == before:
                return
        raise AssertionError("the world does not come to rest")

    def _version(self) -> str:
        return self.cluster.list(JOB).resource_version

    def schedule(self) -> None:
        """Admit every gang; bind all pods of admitted ones; say what became of each gang."""
        for group in self.cluster.list(POD_GROUP).items:
            phase = (group.get("status") or {}).get("phase") or "Pending"
            pods = [p for p in self.pods() if annotations(p).get(keys.GROUP_NAME) == name(group) and not is_deleting(p)]
            placed = [p for p in pods if p["spec"].get("nodeName")]
            ended = [p for p in placed if p["status"]["phase"] in ("Succeeded", "Failed")]
            if phase == "Pending":
                new = "Inqueue"
            elif len(placed) >= group["spec"]["minMember"] and placed:
                new = "Completed" if len(ended) == len(placed) else "Running"
            else:
                new = phase
            if new != phase:
                self.cluster.patch_status(POD_GROUP, name(group), namespace(group), {"phase": new})
            waiting = [p for p in pods if not p["spec"].get("nodeName")]
            if phase != "Pending" and len(waiting) + len(placed) >= group["spec"]["minMember"]:
                for pod in waiting:
                    self.cluster.bind(Binding(namespace(pod), name(pod), pod["metadata"]["uid"], "node-0"))

    def run_kubelet(self) -> None:
        """Run what is bound and pending; remove what was stopped."""
        for pod in self.pods():
            if is_deleting(pod):
                self.cluster.remove_stopped([(namespace(pod), name(pod), pod["metadata"]["uid"])])
            elif pod["spec"].get("nodeName") and pod["status"]["phase"] == "Pending":
                running = {"name": "main", "ready": True, "restartCount": 0, "state": {"running": {}}}
                self.pod_status(pod, {"phase": "Running", "containerStatuses": [running]})

    def end(self, pod_name: str, exit_code: int = 0) -> None:
        """A pod's container ends."""
        pod = self.pod(pod_name)
        terminated = {"exitCode": exit_code, "finishedAt": stamp(self.clock.now())}
        ended = {"name": "main", "ready": False, "restartCount": 0, "state": {"terminated": terminated}}
        self.pod_status(pod, {"phase": "Failed" if exit_code else "Succeeded", "containerStatuses": [ended]})

    def pod_status(self, pod: Obj, status: dict[str, Any]) -> None:
        """Write a pod's status, as its kubelet would."""
        self.cluster.patch_status(POD, name(pod), namespace(pod), status)

    def submit(self, manifest: dict[str, Any], **more: Any) -> Obj:
        """Through the same door as everybody."""
        return operations.submit(self.cluster, copy.deepcopy(manifest), **more)

    def started(self, manifest: dict[str, Any]) -> Obj:
        """Submit a job and bring it to Running."""
        self.submit(manifest)
        self.turn()
        return self.job(manifest["metadata"]["name"])

    def command(self, action: str, title: str = "train") -> Obj:
        """Create a Command by hand, also one that the phase does not answer to."""
        return self.cluster.create(COMMAND, command(self.job(title), action))

    def job(self, title: str = "train") -> Obj:
        """A job as stored."""
        return self.cluster.get(JOB, title, "default")

    def phase(self, title: str = "train") -> str:
        """A job's phase."""
        return self.job(title).get("status", {}).get("state", {}).get("phase", "")

    def status(self, title: str = "train") -> dict[str, Any]:
        """A job's status."""
        return self.job(title)["status"]

    def gone(self, title: str = "train") -> bool:
        """Whether a job is no more."""
        try:
            self.job(title)
        except NotFound:
            return True
        return False

    def group(self, title: str = "train") -> Obj:
        """A job's PodGroup."""
        return self.cluster.get(POD_GROUP, keys.group_name(self.job(title)), "default")

    def pod(self, title: str) -> Obj:
        """A pod as stored."""
        return self.cluster.get(POD, title, "default")

    def pods(self, title: str = "") -> list[Obj]:
        """Pods, of one job or of all."""
        return [p for p in self.cluster.list(POD).items if not title or labels(p).get(keys.JOB_NAME) == title]

    def pod_names(self, title: str = "train") -> list[str]:
        """The names of a job's pods."""
        return [name(p) for p in self.pods(title)]

    def reasons(self) -> list[str]:
        """Reasons of all Events."""
        return [event["reason"] for event in self.cluster.list(EVENT).items]

    def queue(self, title: str) -> Obj:
        """A queue as stored."""
        return self.cluster.get(QUEUE, title)

    def make_queue(self, title: str, **spec: Any) -> Obj:
        """Create a queue."""
        obj = {"apiVersion": QUEUE.api_version, "kind": "Queue", "metadata": {"name": title}, "spec": spec}
        return self.cluster.create(QUEUE, obj)
