"""Nodes, and the pods that are on them or wait: events become changes of the model's rows and tasks."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Mapping
from typing import Any

from cluster import objects
from cluster.port import Obj
from scheduler.cache.groups import Groups
from scheduler.model import build
from scheduler.model.devices import Use
from scheduler.model.nodes import NodeTable
from scheduler.model.resources import Dimensions
from scheduler.model.tasks import ALLOCATED_SET, NO_NODE, TaskInfo, TaskStatus

Held = tuple[tuple[int, ...], tuple[Use, ...]]
"""What a task holds of a node's GPUs: `TaskInfo.gpus` and `cards`."""
_OFF_NODE = frozenset({TaskStatus.PENDING, TaskStatus.SUCCEEDED, TaskStatus.FAILED})


class Pods:
    """Keeps nodes, tasks and task classes. `fit` follows a grown dimension table, in the whole model."""

    def __init__(
        self, scheduler_names: Collection[str], dims: Dimensions, nodes: NodeTable, groups: Groups, fit: Callable[[], None]
    ) -> None:
        self.nodes, self.classes = nodes, build.Classes(dims)
        self.tasks: dict[str, TaskInfo] = {}
        self._scheduler_names, self._dims, self._groups, self._fit = scheduler_names, dims, groups, fit
        self._homeless: defaultdict[str, dict[str, TaskInfo]] = defaultdict(dict)
        self._statics: dict[str, tuple[Any, ...]] = {}

    # -- nodes ---------------------------------------------------------------------------------------------------------

    def node(self, obj: Obj, gone: bool) -> bool:
        """Take a Node in; whether it is another one to a session."""
        name = objects.name(obj)
        if gone:
            self.drop_node(name)
            return True
        static = build.node_static(obj)
        if self._statics.get(name) == static:
            self.nodes.objects[self.nodes.index[name]] = obj
            return False
        allocatable = build.node_allocatable(self._dims, obj)
        gpus, unhealthy = build.node_gpus(obj)
        self._fit()
        row = self.nodes.put(obj, allocatable, gpus, unhealthy, ready=build.node_ready(obj))
        self._statics[name] = static
        for task in self._homeless.pop(name, {}).values():
            self.nodes.place([task], [row])
        return True

    def drop_node(self, name: str) -> None:
        """Forget a node; its pods wait for it to come back, those on their way to it are pending again."""
        if name in self.nodes.index:
            for task in self.nodes.remove(name):
                if task.status is TaskStatus.BINDING:
                    task.let_go()
                    self.move(task, TaskStatus.PENDING)
                else:
                    self._homeless[name][task.uid] = task
        self._statics.pop(name, None)

    # -- pods ----------------------------------------------------------------------------------------------------------

    def pod(self, obj: Obj, gone: bool) -> bool:
        """Take a Pod in; whether that changes who waits or what is free."""
        uid, spec = obj["metadata"]["uid"], build.section(obj, "spec")
        known = self.tasks.get(uid)
        ours = (spec.get("schedulerName") or "") in self._scheduler_names
        node = spec.get("nodeName") or ""
        if gone or not (ours or node):
            self.drop_pod(uid)
            return known is not None
        if known is not None and self._refresh(known, obj, node):
            return False
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
            task.marks, task.supply = known.marks, known.supply
        self.drop_pod(uid)
        self._fit()
        self._add_pod(task, row, node)
        return True

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
            self.move(task, status)
        task.pod = obj
        return True

    def _add_pod(self, task: TaskInfo, row: int, node: str = "") -> None:
        self.tasks[task.uid] = task
        group = objects.annotations(task.pod).get(build.GROUP)
        if group and (task.pod["spec"].get("schedulerName") or "") in self._scheduler_names:
            self._groups.job(f"{task.namespace}/{group}").add(task)
        if task.status in _OFF_NODE:
            return
        if row != NO_NODE:
            self.nodes.place([task], [row])
        elif node:
            self._homeless[node][task.uid] = task

    def drop_pod(self, uid: str) -> None:
        """Forget a pod."""
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
            self._groups.forget_if_empty(job)
        self.classes.drop(task.cls)

    def move(self, task: TaskInfo, status: TaskStatus) -> None:
        """Give a task another status."""
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
            self.move(task, TaskStatus.PENDING)

    def hand_back(self, held: Mapping[str, Held]) -> None:
        """Give tasks, which came anew, exactly what they held of their nodes' GPUs before: whole ones, and parts of cards."""
        found = [(self.tasks[uid], what) for uid, what in held.items() if uid in self.tasks]
        wrong = [(task, task.node, what) for task, what in found if task.node != NO_NODE and (task.gpus, task.cards) != what]
        for task, _, _ in wrong:
            self.nodes.withdraw([task])
        for task, row, what in wrong:
            task.gpus, task.cards = what
            self.nodes.place([task], [row])

    def evict_failed(self, uid: str) -> None:
        """An eviction was refused: the task has its node again."""
        task = self.tasks.get(uid)
        if task is not None and _is_being_evicted(task):
            row = task.node
            self.nodes.withdraw([task])
            self.move(task, build.status_of(dict(task.pod)))
            self.nodes.place([task], [row])


def _is_being_evicted(task: TaskInfo) -> bool:
    """Whether this scheduler evicted the task and the watch does not say so yet."""
    return task.status is TaskStatus.RELEASING and not objects.is_deleting(task.pod)


def _gpu_annotation(obj: Obj) -> str | None:
    return objects.annotations(obj).get(objects.GPU_INDICES)
