"""A small cluster in a few words, as the scheduler's model, with a session over it."""

from __future__ import annotations

from random import Random
from typing import Any

import numpy as np

from cluster.objects import pod_requests
from scheduler.conf import Arguments, Configuration, PluginOption
from scheduler.estate import Estate
from scheduler.framework import registry
from scheduler.framework.session import Session
from scheduler.framework.view import View
from scheduler.model.jobs import JobInfo
from scheduler.model.nodes import Block, NodeTable
from scheduler.model.queues import QueueInfo
from scheduler.model.resources import Amounts, Dimensions
from scheduler.model.roster import Roster
from scheduler.model.tasks import TaskClass, TaskInfo, TaskStatus
from scheduler.topology.hypernodes import HyperNodes
from scheduler.topology.places import Places

MIB, GIB = 1 << 20, 1 << 30
_SHORT = {"gpu": "nvidia.com/gpu"}


class World:
    """Builds nodes, queues, jobs and tasks; amounts are quantities by resource (`gpu` for nvidia.com/gpu)."""

    def __init__(self) -> None:
        registry.load_builtin()
        self.dims = Dimensions()
        self.nodes = NodeTable(self.dims.width)
        self.queues: dict[str, QueueInfo] = {}
        self.jobs: dict[str, JobInfo] = {}
        self.classes: dict[str, TaskClass] = {}
        self.tasks: dict[str, TaskInfo] = {}
        self.estate = Estate(self.tasks)

    def amounts(self, quantities: dict[str, Any] | None) -> Amounts:
        requests = {_SHORT.get(name, name): str(value) for name, value in (quantities or {}).items()}
        units = pod_requests({"containers": [{"resources": {"requests": requests}}]})
        if "pods" not in requests:
            del units["pods"]
        else:
            units["pods"] = int(requests["pods"])
        return self.dims.amounts(units)

    def node(self, name: str, *, pods: int = 110, ready: bool = True, **quantities: Any) -> int:
        """A node; `labels`, `taints`, `unschedulable` and `images` (name → bytes) may be among the words."""
        meta = {"name": name, "labels": quantities.pop("labels", {"kubernetes.io/hostname": name})}
        spec = {"taints": quantities.pop("taints", []), "unschedulable": quantities.pop("unschedulable", False)}
        images = [{"names": [image], "sizeBytes": size} for image, size in quantities.pop("images", {}).items()]
        node = {"metadata": meta, "spec": spec, "status": {"images": images}}
        return self.nodes.put(node, self.amounts({**quantities, "pods": pods}), 0, 0, ready=ready)

    def queue(self, name: str, weight: int = 1, **more: Any) -> QueueInfo:
        """A queue; `capability`, `deserved`, `guarantee` are quantities by resource."""
        limits = {key: self.amounts(more.pop(key, None)) for key in ("capability", "deserved", "guarantee")}
        found = self.queues[name] = QueueInfo(name, weight, creation=float(len(self.queues)), **limits, **more)
        return found

    def job(self, name: str, queue: str = "default", *, min_available: int = 1, **more: Any) -> JobInfo:
        """A job; `min_resources` are quantities by resource."""
        if queue not in self.queues:
            self.queue(queue)
        needs = more.pop("min_resources", None)
        more.setdefault("obj", {"metadata": {"name": name, "namespace": "ns"}})
        job = JobInfo(f"ns/{name}", "ns", name, queue, self.dims.width, min_available, creation=float(len(self.jobs)), **more)
        job.min_resources = None if needs is None else self.amounts(needs)
        self.jobs[job.uid] = self.queues[queue].jobs[job.uid] = job
        return job

    def cls(self, quantities: dict[str, Any] | None = None, spec: dict[str, Any] | None = None) -> TaskClass:
        """The class of a pod spec whose first container asks for these quantities."""
        found = self.classes.get(repr((quantities, spec)))
        if found is not None:
            return found
        asked = self.amounts({**(quantities or {}), "pods": 1})
        nonzero = [asked.values[0] or 100, asked.values[1] or 200 * MIB]
        ports = tuple(
            (p.get("protocol", "TCP"), p.get("hostIP", "0.0.0.0"), p["hostPort"]) for p in (spec or {}).pop("ports", ())
        )
        best_effort = not any(value for place, value in enumerate(asked.values) if place != 2)
        found = TaskClass(
            len(self.classes), asked.values, asked.present, np.array(nonzero), spec or {}, "ns", ports, best_effort=best_effort
        )
        found.mounts = any("persistentVolumeClaim" in volume for volume in (spec or {}).get("volumes", ()))
        self.classes[repr((quantities, spec))] = found
        return found

    def task(
        self, job: JobInfo | None, cls: TaskClass, node: int = -1, status: TaskStatus | None = None, **more: Any
    ) -> TaskInfo:
        """A task of a class; on a node it is Running unless another status is said. `labels` are the pod's."""
        number = sum(len(each.tasks) for each in self.jobs.values()) + sum(map(len, self.nodes.tasks))
        pod = {"metadata": {"name": f"p{number}", "namespace": "ns", "labels": more.pop("labels", {})}, "spec": cls.spec}
        namespace = more.pop("namespace", "ns")
        task = TaskInfo(f"uid{number}", namespace, f"p{number}", cls, pod, index=number, creation=float(number), **more)
        task.status = status or (TaskStatus.RUNNING if node >= 0 else TaskStatus.PENDING)
        self.tasks[task.uid] = task
        if job is not None:
            job.add(task)
        if node >= 0:
            self.nodes.place([task], [node])
        return task

    def session(self, *plugins: str | tuple[str, dict[str, Any]], apart: bool = False, **switches: bool) -> Session:
        """An open session with the plugins in one tier (`apart`: one each); a plugin with arguments is a pair."""
        named = [plugin if isinstance(plugin, tuple) else (plugin, {}) for plugin in plugins]
        options = tuple(PluginOption(name, switches, Arguments(name, values)) for name, values in named)
        tiers = tuple((option,) for option in options) if apart else (options,)
        width = self.dims.width
        self.nodes.widen(width)
        for holder in (*self.queues.values(), *self.jobs.values(), *self.classes.values()):
            holder.widen(width)
        view = View(
            dims=self.dims, nodes=self.nodes, jobs=self.jobs, queues=self.queues,
            roster=Roster.of(self.jobs.values(), self.queues, width),
            places=Places(HyperNodes((), self.nodes), self.jobs.values()),
            classes=list(self.classes.values()), estate=self.estate,
        )  # fmt: skip
        session = Session("session", Configuration(("allocate",), tiers), view, now=1000.0, random=Random(0))
        session.open()
        return session


def block(world: World, *rows: int) -> Block:
    """Some rows (all that are live, when none is named) as checks and scores get them."""
    return Block(world.nodes, np.array(rows or world.nodes.live_rows(), np.intp))


def verdicts_by_check(session: Session, cls: TaskClass, at: Block) -> dict[str, list[int]]:
    """Cause → rows that the check of this cause refuses."""
    found = {}
    for check in session.functions("predicate"):
        if check.applies is None or check.applies(cls):
            refused = at.rows[~check.check(cls, at)].tolist()
            if refused:
                found[check.cause] = refused
    return found


def static_score(session: Session, cls: TaskClass, at: Block) -> list[float]:
    """The sum of all separable and normalised scores of each row of the block."""
    total = np.zeros(len(at.rows))
    for item in session.functions("node_score"):
        if item.applies is None or item.applies(cls):
            total = total + item.score(cls, at)
    for item in session.functions("normalised_score"):
        if item.applies is None or item.applies(cls):
            raw = item.raw(cls, at)
            total = total + item.scale(raw, int(raw.min()), int(raw.max()))
    return [float(value) for value in total]
