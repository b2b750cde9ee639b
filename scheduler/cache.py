"""The scheduler's cache: watch events become changes of the model, one by one.

Only the thread that owns the model calls it, between sessions. A bad object never stops the others: it is set aside
with its reason (`aside`) and takes no part until it is mended. Binds that were decided are assumed until the watch
confirms them or they fail.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass
from random import Random
from typing import Any

from cluster import objects
from cluster.kinds import (
    CLAIM,
    CONFIG_MAP,
    DISRUPTION_BUDGET,
    HYPER_NODE,
    NAMESPACE,
    NODE,
    POD,
    POD_GROUP,
    PRIORITY_CLASS,
    QUEUE,
    RESOURCE_QUOTA,
    Kind,
)  # fmt: skip
from cluster.port import Obj, WatchEvent
from scheduler.conf import Configuration
from scheduler.framework.explain import Code, Stage, Verdict
from scheduler.framework.session import Session
from scheduler.model import build, subjobs
from scheduler.model.devices import DEVICE_CONFIG
from scheduler.model.jobs import ALLOCATED_SET, NO_NODE, JobInfo, TaskInfo, TaskStatus
from scheduler.model.nodes import ChooseGpus, NodeTable, lowest_gpus
from scheduler.model.queues import QueueInfo
from scheduler.model.quotas import Quota, quota
from scheduler.model.resources import Dimensions
from scheduler.placement.oversize import Oversize
from scheduler.prometheus import Usage
from scheduler.topology.hypernodes import HyperNodes, NetworkTree

KINDS: tuple[Kind, ...] = (
    CONFIG_MAP, NODE, QUEUE, PRIORITY_CLASS, NAMESPACE, CLAIM, DISRUPTION_BUDGET, HYPER_NODE, RESOURCE_QUOTA, POD_GROUP, POD,
)  # fmt: skip
"""What the scheduler watches; on a list this order needs no second look at anything."""

DEFAULT_QUEUE = "default"
_OFF_NODE = frozenset({TaskStatus.PENDING, TaskStatus.SUCCEEDED, TaskStatus.FAILED})


@dataclass(frozen=True, slots=True)
class Aside:
    """An object that makes no sense to the scheduler, and why."""

    kind: str
    key: str
    reason: str


class SchedulerCache:
    """The model, kept up to date by events."""

    def __init__(self, scheduler_names: Collection[str] = ("volcano",), choose_gpus: ChooseGpus = lowest_gpus) -> None:
        self.scheduler_names = frozenset(scheduler_names)
        self.dims = Dimensions()
        self.nodes = NodeTable(self.dims.width, choose_gpus=choose_gpus)
        self.classes = build.Classes(self.dims)
        self.jobs: dict[str, JobInfo] = {}
        self.queues: dict[str, QueueInfo] = {}
        self.tasks: dict[str, TaskInfo] = {}
        self.namespaces: dict[str, Obj] = {}
        self.claims: dict[str, Obj] = {}
        self.budgets: dict[str, Obj] = {}
        self.hyper_nodes = NetworkTree(self.nodes)
        self.device_configs: dict[str, Obj] = {}
        self.aside: dict[tuple[str, str], Aside] = {}
        self.memo: dict[Any, Any] = {}
        self.usage: Usage = {}
        self._quotas: dict[str, dict[str, Quota]] = {}
        self._oversize = Oversize(self.nodes, self.dims)
        self._priorities: dict[str, Obj] = {}
        self._homeless: defaultdict[str, dict[str, TaskInfo]] = defaultdict(dict)
        self._statics: dict[str, tuple[Any, ...]] = {}
        self._appliers: dict[Kind, Callable[[Obj, bool], None]] = {
            NODE: self._node,
            POD: self._pod,
            POD_GROUP: self._group,
            QUEUE: self._queue,
            PRIORITY_CLASS: self._priority_class,
            NAMESPACE: lambda obj, gone: _keep(self.namespaces, objects.name(obj), obj, gone),
            CLAIM: lambda obj, gone: _keep(self.claims, objects.key(obj), obj, gone),
            DISRUPTION_BUDGET: lambda obj, gone: _keep(self.budgets, objects.key(obj), obj, gone),
            HYPER_NODE: self.hyper_nodes.apply,
            RESOURCE_QUOTA: self._quota,
            CONFIG_MAP: self._config_map,
        }

    # -- events --------------------------------------------------------------------------------------------------------

    def apply(self, event: WatchEvent) -> None:
        """Take one event in. Never raises for what an object says."""
        if event.kind is None or event.kind not in self._appliers:
            return
        key = (event.kind.kind, objects.key(event.object))
        try:
            self._appliers[event.kind](event.object, event.type == "DELETED")
            self.aside.pop(key, None)
        except Exception as error:  # noqa: BLE001 - whatever one object says, the others go on
            reason = str(error) if isinstance(error, ValueError) else f"malformed ({type(error).__name__}: {error})"
            self.aside[key] = Aside(*key, reason)
            self._set_aside(event.kind, event.object)
        if self.dims.width > self.nodes.width:
            self._widen()

    def apply_all(self, events: Iterable[WatchEvent]) -> int:
        """Take events in, in order; how many there were."""
        count = 0
        for event in events:
            self.apply(event)
            count += 1
        return count

    def _set_aside(self, kind: Kind, obj: Obj) -> None:
        """Take what was known of a bad object out of the model, so that nothing rests on an outdated version of it."""
        if kind == NODE:
            self._drop_node(objects.name(obj))
        elif kind == POD:
            self._drop_pod(objects.uid(obj))
        elif kind == POD_GROUP:
            self._drop_group(objects.key(obj))
        elif kind == QUEUE:
            self.queues.pop(objects.name(obj), None)
        elif kind == HYPER_NODE:
            self.hyper_nodes.drop(objects.name(obj))

    def _widen(self) -> None:
        width = self.dims.width
        self.nodes.widen(width)
        for cls in self.classes.known():
            cls.widen(width)
        for job in self.jobs.values():
            job.widen(width)
        for queue in self.queues.values():
            queue.widen(width)
        self._oversize = Oversize(self.nodes, self.dims)
        self.memo.clear()

    # -- nodes ---------------------------------------------------------------------------------------------------------

    def _node(self, obj: Obj, gone: bool) -> None:
        name = objects.name(obj)
        if gone:
            self._drop_node(name)
            return
        static = build.node_static(obj)
        if self._statics.get(name) == static:
            self.nodes.objects[self.nodes.index[name]] = obj
            return
        allocatable = build.amounts(self.dims, build.section(obj, "status").get("allocatable"), "status.allocatable")
        gpus, unhealthy = build.node_gpus(obj)
        if self.dims.width > self.nodes.width:
            self._widen()
        row = self.nodes.put(obj, allocatable, gpus, unhealthy, ready=build.node_ready(obj))
        self._statics[name] = static
        for task in self._homeless.pop(name, {}).values():
            self.nodes.place([task], [row])

    def _drop_node(self, name: str) -> None:
        if name in self.nodes.index:
            for task in self.nodes.remove(name):
                if task.status is TaskStatus.BINDING:
                    task.let_go()
                    self._move(task, TaskStatus.PENDING)
                else:
                    self._homeless[name][task.uid] = task
        self._statics.pop(name, None)

    # -- pods ----------------------------------------------------------------------------------------------------------

    def _pod(self, obj: Obj, gone: bool) -> None:
        uid, spec = obj["metadata"]["uid"], build.section(obj, "spec")
        known = self.tasks.get(uid)
        ours = (spec.get("schedulerName") or "") in self.scheduler_names
        node = spec.get("nodeName") or ""
        if gone or not (ours or node):
            self._drop_pod(uid)
            return
        if known is not None and self._refresh(known, obj, node):
            return
        cls = known.cls if known is not None and build.same_shape(known.pod["spec"], spec) else self.classes.of(obj)
        task = build.task(obj, cls)
        self.classes.hold(cls)
        row = self.nodes.index.get(node, NO_NODE) if node else NO_NODE
        if known is not None and known.status is TaskStatus.BINDING and task.status is TaskStatus.PENDING:
            task.status, row = TaskStatus.BINDING, known.node
        if known is not None and _is_being_evicted(known) and task.status in (TaskStatus.BOUND, TaskStatus.RUNNING):
            task.status = TaskStatus.RELEASING
        if known is not None and known.node == row:
            task.gpus, task.cards = task.gpus or known.gpus, task.cards or known.cards
            task.marks = known.marks
        self._drop_pod(uid)
        if self.dims.width > self.nodes.width:
            self._widen()
        self._add_pod(task, row, node)

    def _refresh(self, task: TaskInfo, obj: Obj, node: str) -> bool:
        """Take a change in that leaves a task where it is: its own bind confirmed, running, or only a new condition."""
        old = task.pod
        if obj["metadata"].get("annotations") != old["metadata"].get("annotations"):
            bound = task.status is TaskStatus.BINDING and build.gpu_indices(_gpu_annotation(obj)) == task.gpus
            if not bound:
                return False
        if not build.same_shape(old["spec"], obj["spec"]) or bool(obj["spec"].get("schedulingGates")) != task.gated:
            return False
        status = build.status_of(obj)
        row = self.nodes.index.get(node, NO_NODE) if node else NO_NODE
        if status is TaskStatus.PENDING and task.status is TaskStatus.BINDING:
            task.pod = obj
            return True
        if _is_being_evicted(task) and status in (TaskStatus.BOUND, TaskStatus.RUNNING) and row == task.node:
            task.pod = obj
            return True
        if row != task.node or (status in _OFF_NODE) != (task.status in _OFF_NODE):
            return False
        if status is not task.status:
            if not (status in ALLOCATED_SET and task.status in ALLOCATED_SET):
                return False
            self._move(task, status)
        task.pod = obj
        return True

    def _add_pod(self, task: TaskInfo, row: int, node: str = "") -> None:
        self.tasks[task.uid] = task
        group = objects.annotations(dict(task.pod)).get(build.GROUP)
        if group and (task.pod["spec"].get("schedulerName") or "") in self.scheduler_names:
            self._job(f"{task.namespace}/{group}").add(task)
        if task.status in _OFF_NODE:
            return
        if row != NO_NODE:
            self.nodes.place([task], [row])
        elif node:
            self._homeless[node][task.uid] = task

    def _drop_pod(self, uid: str) -> None:
        task = self.tasks.pop(uid, None)
        if task is None:
            return
        if task.node != NO_NODE:
            self.nodes.withdraw([task])
        name = task.pod["spec"].get("nodeName") or ""
        if name in self._homeless:
            self._homeless[name].pop(uid, None)
            if not self._homeless[name]:
                del self._homeless[name]
        job = task.job
        if job is not None:
            job.remove(task)
            self._forget_if_empty(job)
        self.classes.drop(task.cls)

    def _move(self, task: TaskInfo, status: TaskStatus) -> None:
        if task.job is not None:
            task.job.move([task], status)
            task.job.version += 1
        else:
            task.status = status

    # -- binds that were decided ---------------------------------------------------------------------------------------

    def bind_failed(self, uid: str) -> None:
        """A bind was refused: the task goes back, unless the watch already said where it is."""
        task = self.tasks.get(uid)
        if task is not None and task.status is TaskStatus.BINDING:
            self.nodes.withdraw([task])
            task.let_go()
            self._move(task, TaskStatus.PENDING)

    def evict_failed(self, uid: str) -> None:
        """An eviction was refused: the task has its node again."""
        task = self.tasks.get(uid)
        if task is not None and _is_being_evicted(task):
            row = task.node
            self.nodes.withdraw([task])
            self._move(task, build.status_of(dict(task.pod)))
            self.nodes.place([task], [row])

    # -- PodGroups, queues, priorities ---------------------------------------------------------------------------------

    def _job(self, uid: str) -> JobInfo:
        job = self.jobs.get(uid)
        if job is None:
            namespace, _, name = uid.partition("/")
            job = self.jobs[uid] = JobInfo(uid, namespace, name, "", self.dims.width)
        return job

    def _group(self, obj: Obj, gone: bool) -> None:
        uid = objects.key(obj)
        if gone:
            self._drop_group(uid)
            return
        spec = build.section(obj, "spec")
        least = build.whole(spec, "minMember", 0)
        roles = {str(role): build.whole(spec["minTaskMember"], role, 0) for role in spec.get("minTaskMember") or ()}
        resources = spec.get("minResources")
        needs = build.amounts(self.dims, resources, "minResources") if resources is not None else None
        creation, phase = build.created(obj), build.section(obj, "status").get("phase") or "Pending"
        job = self._job(uid)
        parts = subjobs.read(spec, job, least)
        if job.obj and objects.uid(dict(job.obj)) != objects.uid(obj):
            job.sent = None
        job.obj, job.min_available, job.role_min, job.min_resources, job.creation = obj, least, roles, needs, creation
        job.queue = spec.get("queue") or DEFAULT_QUEUE
        job.divide(parts)
        job.annotations, job.labels = objects.annotations(obj), objects.labels(obj)
        job.version += 1
        job.phase = phase if job.sent is None else str(job.sent.get("phase"))
        job.priority = self._priority(spec.get("priorityClassName") or "")

    def _drop_group(self, uid: str) -> None:
        job = self.jobs.get(uid)
        if job is not None:
            job.obj, job.min_resources, job.phase, job.sent = {}, None, "Pending", None
            job.divide(None)
            self._forget_if_empty(job)

    def _forget_if_empty(self, job: JobInfo) -> None:
        if not job.tasks and not job.obj:
            self.jobs.pop(job.uid, None)

    def _queue(self, obj: Obj, gone: bool) -> None:
        name = objects.name(obj)
        if gone:
            self.queues.pop(name, None)
        else:
            self.queues[name] = build.queue(obj, self.dims)

    def _quota(self, obj: Obj, gone: bool) -> None:
        """Keep a quota; a version that cannot be read takes the place of one that could, and limits nothing."""
        quotas = self._quotas.setdefault(objects.namespace(obj), {})
        quotas.pop(objects.name(obj), None)
        if not gone:
            quotas[objects.name(obj)] = quota(obj)

    def _priority_class(self, obj: Obj, gone: bool) -> None:
        build.whole(obj, "value", 0)
        _keep(self._priorities, objects.name(obj), obj, gone)
        for job in self.jobs.values():
            if job.obj:
                job.priority = self._priority(job.obj["spec"].get("priorityClassName") or "")

    def _priority(self, name: str) -> int:
        found = self._priorities.get(name)
        if found is None:
            defaults = [obj for obj in self._priorities.values() if obj.get("globalDefault")]
            found = min(defaults, key=objects.name, default=None)
        return build.whole(found, "value", 0) if found is not None else 0

    def _config_map(self, obj: Obj, gone: bool) -> None:
        """Of all ConfigMaps only those about devices matter; what they say is as static as the nodes."""
        key, about_devices = objects.key(obj), DEVICE_CONFIG in (obj.get("data") or {})
        if about_devices or key in self.device_configs:
            _keep(self.device_configs, key, obj, gone or not about_devices)
            self.nodes.static_version += 1

    # -- sessions ------------------------------------------------------------------------------------------------------

    def open_session(self, uid: str, conf: Configuration, *, now: float, random: Random) -> Session:
        """A session over the live model. Jobs whose queue is unknown stay outside, with a verdict."""
        jobs, strays = {}, {}
        for queue in self.queues.values():
            queue.jobs = {}
        for job in self.jobs.values():
            if not job.obj:
                continue
            found = self.queues.get(job.queue)
            if found is None:
                strays[job.uid] = Verdict(Stage.ADMISSION, Code.QUEUE_MISSING, queue=job.queue)
            else:
                jobs[job.uid] = found.jobs[job.uid] = job
        self._oversize.mark(jobs.values(), self.classes.count.keys())
        ssn = Session(
            uid, conf, self.dims, self.nodes, jobs, self.queues, now=now, random=random,
            classes=self.classes.count.keys(), claims=self.claims, budgets=list(self.budgets.values()), memo=self.memo,
            namespaces={name: objects.labels(obj) for name, obj in self.namespaces.items()},
            hyper_nodes=self._network(), quotas={name: tuple(found.values()) for name, found in self._quotas.items() if found},
            device_configs=self.device_configs, usage=self.usage,
        )  # fmt: skip
        ssn.verdicts.update(strays)
        ssn.open()
        return ssn

    def _network(self) -> HyperNodes:
        """The tree of HyperNodes as of now; what contradicts itself in it is set aside."""
        if self.hyper_nodes.is_current:
            return self.hyper_nodes.tree()
        for name in self.hyper_nodes.aside:
            self.aside.pop((HYPER_NODE.kind, f"/{name}"), None)
        tree = self.hyper_nodes.tree()
        for name, reason in tree.aside.items():
            found = Aside(HYPER_NODE.kind, f"/{name}", reason)
            self.aside[found.kind, found.key] = found
        return tree


def _keep(store: dict[str, Obj], key: str, obj: Obj, gone: bool) -> None:
    if gone:
        store.pop(key, None)
    else:
        store[key] = obj


def _is_being_evicted(task: TaskInfo) -> bool:
    """Whether this scheduler evicted the task and the watch does not say so yet."""
    return task.status is TaskStatus.RELEASING and not objects.is_deleting(dict(task.pod))


def _gpu_annotation(obj: Obj) -> str | None:
    return objects.annotations(obj).get(objects.GPU_INDICES)
