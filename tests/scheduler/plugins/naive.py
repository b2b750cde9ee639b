"""A slow, obvious scheduler: one task after the other, one node after the other, in plain Python.

It restates allocate with the plugins priority, gang, drf, predicates, proportion, nodeorder and binpack in the simplest
words that are still exact, and shares no code with them. It reads a `World` before the real scheduler runs on it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from scheduler.model.resources import Amounts as Vector
from scheduler.model.resources import Dimensions
from scheduler.model.tasks import TaskInfo, TaskStatus
from tests.scheduler.plugins.naive_nodes import Amounts, Node, Task, compared, scores, shunned, tolerated
from tests.scheduler.plugins.world import World

PODS = "pods"
_HELD = {TaskStatus.ALLOCATED, TaskStatus.BINDING, TaskStatus.BOUND, TaskStatus.RUNNING}


def _named(dims: Dimensions, amounts: Vector) -> Amounts:
    """By resource name what a vector names, zeros too."""
    rows = zip(dims.names, amounts.values.tolist(), amounts.present.tolist(), strict=False)
    return {name: value for name, value, present in rows if present}


@dataclass
class Job:
    """One gang."""

    uid: str
    queue: str
    minimum: int
    role_minimum: dict[str, int]
    priority: int
    creation: float
    tasks: list[Task]

    def count(self, *statuses: TaskStatus, role: str | None = None) -> int:
        return sum(task.status in statuses and (role is None or task.role == role) for task in self.tasks)

    def ready_tasks(self, role: str | None = None) -> int:
        waiting_free = sum(
            task.best_effort and task.status is TaskStatus.PENDING and (role is None or task.role == role) for task in self.tasks
        )
        return self.count(*_HELD, TaskStatus.SUCCEEDED, role=role) + waiting_free

    def is_ready(self, *, pipelined: bool = False) -> bool:
        def have(role: str | None = None) -> int:
            return self.ready_tasks(role) + (self.count(TaskStatus.PIPELINED, role=role) if pipelined else 0)

        if self.minimum >= sum(self.role_minimum.values()) and any(have(role) < n for role, n in self.role_minimum.items()):
            return False
        return have() >= self.minimum


@dataclass
class Queue:
    """One queue and its standing."""

    name: str
    weight: int
    priority: int
    creation: float
    capability: Amounts
    guarantee: Amounts
    deserved: Amounts = field(default_factory=dict)
    allocated: Amounts = field(default_factory=dict)
    request: Amounts = field(default_factory=dict)


def add(total: Amounts, more: Amounts, sign: int = 1) -> None:
    for resource, amount in more.items():
        total[resource] = total.get(resource, 0) + sign * amount


class Naive:
    """The whole allocate action over copies of a world's facts. `placed`: task uid → (row, only pipelined)."""

    def __init__(self, world: World, weights: dict[str, int], binpack: dict[str, int]) -> None:
        self.weights, self.binpack = weights, binpack
        self.dims = world.dims
        nodes = world.nodes
        self.nodes = [self._node(world, row) for row in range(len(nodes))]
        self.queues = {
            queue.name: Queue(
                queue.name, queue.weight, queue.priority, queue.creation,
                _named(self.dims, queue.capability), self.dims.units(queue.guarantee.values),
            )
            for queue in world.queues.values()
        }  # fmt: skip
        self.jobs = [
            Job(job.uid, job.queue, job.min_available, dict(job.role_min), job.priority, job.creation,
                [self._task(task) for task in job.tasks.values()])
            for job in world.jobs.values()
        ]  # fmt: skip
        self.total: Amounts = {}
        for node in self.nodes:
            add(self.total, node.allocatable)
        self.placed: dict[str, tuple[int, bool]] = {}
        self._divide()

    def _node(self, world: World, row: int) -> Node:
        table, units = world.nodes, self.dims.units
        return Node(
            table.names[row], units(table.allocatable[row]), dict(table.labels[row]), list(map(dict, table.taints[row])),
            bool(table.cordoned[row]), units(table.used[row]), units(table.releasing[row]), units(table.pipelined[row]),
            units(table.listed[row]), table.nonzero[row].tolist(), int(table.pod_count[row]),
        )  # fmt: skip

    def _task(self, task: TaskInfo) -> Task:
        cpu, memory = task.cls.nonzero.tolist()
        order = (-task.priority, task.index, task.creation, task.name, task.uid)
        return Task(
            task.uid, self.dims.units(task.cls.request), (cpu, memory), dict(task.cls.spec), task.role, order,
            task.cls.best_effort, task.status, task.node, dict(task.pod["metadata"]["labels"]),
        )  # fmt: skip

    # -- queues ----------------------------------------------------------------------------------------------------------

    def _divide(self) -> None:
        busy = [queue for queue in self.queues.values() if any(job.queue == queue.name for job in self.jobs)]
        reserved: Amounts = {}
        for queue in self.queues.values():
            add(reserved, queue.guarantee)
        for job in self.jobs:
            for task in job.tasks:
                if task.status in _HELD:
                    add(self.queues[job.queue].allocated, task.request)
                if task.status in _HELD or task.status is TaskStatus.PENDING:
                    add(self.queues[job.queue].request, task.request)
        names = self.dims.names
        remaining = {name: float(self.total.get(name, 0)) for name in names}
        hungry = list(busy)
        for queue in busy:
            queue.deserved = dict.fromkeys(names, 0.0)
        while sum(queue.weight for queue in hungry):
            weight = sum(queue.weight for queue in hungry)
            given, returned, still = dict.fromkeys(names, 0.0), dict.fromkeys(names, 0.0), []
            for queue in hungry:
                before = dict(queue.deserved)
                for name in names:
                    share = before[name] + remaining[name] * (queue.weight / weight)
                    share = min(share, self._real(queue, reserved, name), queue.request.get(name, 0))
                    queue.deserved[name] = max(share, queue.guarantee.get(name, 0))
                    given[name] += max(queue.deserved[name] - before[name], 0)
                    returned[name] += max(before[name] - queue.deserved[name], 0)
                content = all(queue.request.get(name, 0) < queue.deserved[name] + 0.1 for name in names)
                if not content and queue.deserved != before:
                    still.append(queue)
            left = {name: max(remaining[name] + returned[name] - given[name], 0) for name in names}
            if left == remaining or all(left[name] < 0.1 for name in names if name != PODS):
                break
            hungry, remaining = still, left

    def _real(self, queue: Queue, reserved: Amounts, name: str) -> float:
        real = max(self.total.get(name, 0) - reserved.get(name, 0), 0) + queue.guarantee.get(name, 0)
        limit = queue.capability.get(name)
        unlimited = limit is None or (name in ("cpu", "memory") and limit <= 0)
        return real if unlimited else min(real, limit)

    def _queue_key(self, queue: Queue) -> tuple[Any, ...]:
        shares = [queue.allocated.get(name, 0) / most for name, most in queue.deserved.items() if most >= 0.1]
        return (-queue.priority, max(shares, default=0.0), queue.creation, queue.name)

    def _overused(self, queue: Queue) -> bool:
        return all(most < queue.allocated.get(name, 0) + 0.1 for name, most in queue.deserved.items())

    def _allocatable(self, queue: Queue, task: Task) -> bool:
        return all(
            queue.allocated.get(name, 0) + amount <= queue.deserved[name] + 0.1
            for name, amount in task.request.items()
            if amount > 0 and name != PODS
        )

    # -- jobs --------------------------------------------------------------------------------------------------------------

    def _job_key(self, job: Job) -> tuple[Any, ...]:
        held: Amounts = {}
        for task in job.tasks:
            if task.status in _HELD or task.status is TaskStatus.PIPELINED:
                add(held, task.request)
        share = max((held.get(name, 0) / most for name, most in self.total.items() if most), default=0.0)
        return (-job.priority, job.ready_tasks() >= job.minimum, share, job.creation, job.uid)

    def run(self) -> dict[str, tuple[int, bool]]:
        """Allocate; returns `placed`."""
        waiting: dict[str, list[Job]] = {}
        todo: dict[str, list[Task]] = {}
        for job in self.jobs:
            tasks = sorted(
                (task for task in job.tasks if task.status is TaskStatus.PENDING and not task.best_effort),
                key=lambda task: task.order,
            )
            if tasks and self._valid(job):
                todo[job.uid] = tasks
                waiting.setdefault(job.queue, []).append(job)
        failed: dict[str, set[str]] = {uid: set() for uid in todo}
        queues = [self.queues[name] for name in waiting]
        while queues:
            queue = min(queues, key=self._queue_key)
            queues.remove(queue)
            if not waiting[queue.name] or self._overused(queue):
                continue
            job = min(waiting[queue.name], key=self._job_key)
            waiting[queue.name].remove(job)
            plan = self._tasks(queue, job, todo[job.uid], failed[job.uid])
            if job.is_ready():
                if todo[job.uid]:
                    waiting[queue.name].append(job)
            elif not job.is_ready(pipelined=True):
                for task in plan:
                    self._undo(queue, task)
            queues.append(queue)
        return self.placed

    def _valid(self, job: Job) -> bool:
        able = (*_HELD, TaskStatus.SUCCEEDED, TaskStatus.PIPELINED, TaskStatus.PENDING)
        asks_roles = job.minimum >= sum(job.role_minimum.values())
        roles = not asks_roles or all(job.count(*able, role=role) >= least for role, least in job.role_minimum.items())
        return roles and job.count(*able) >= job.minimum

    def _tasks(self, queue: Queue, job: Job, tasks: list[Task], failed: set[str]) -> list[Task]:
        plan: list[Task] = []
        while tasks:
            task = tasks.pop(0)
            if not self._allocatable(queue, task) or task.role in failed:
                continue
            candidates = [row for row in range(len(self.nodes)) if self._fits(task, row)]
            if not candidates:
                if task.role:
                    failed.add(task.role)
                if self._worth_going_on(job, failed):
                    continue
                break
            now = [row for row in candidates if all(self.nodes[row].idle(name) >= amount for name, amount in compared(task))]
            found = scores(task, self.nodes, now or candidates, self.weights, self.binpack)
            best = max(found.values())
            row = min(row for row, score in found.items() if score == best)
            self._do(queue, task, row, pipelined=not now)
            plan.append(task)
            if job.is_ready():
                break
        return plan

    def _worth_going_on(self, job: Job, failed: set[str]) -> bool:
        if job.minimum >= len(job.tasks):
            return False
        if job.minimum < sum(job.role_minimum.values()):
            pending = sum(task.status is TaskStatus.PENDING and task.role not in failed for task in job.tasks)
            return job.count(*_HELD, TaskStatus.SUCCEEDED) + pending >= job.minimum
        return all(job.count(*_HELD, role=role) >= job.role_minimum.get(role, 0) for role in failed)

    def _do(self, queue: Queue, task: Task, row: int, *, pipelined: bool) -> None:
        task.status, task.node = (TaskStatus.PIPELINED if pipelined else TaskStatus.ALLOCATED), row
        self._book(queue, task, 1)
        self.placed[task.uid] = (row, pipelined)

    def _undo(self, queue: Queue, task: Task) -> None:
        self._book(queue, task, -1)
        task.status, task.node = TaskStatus.PENDING, -1
        del self.placed[task.uid]

    def _book(self, queue: Queue, task: Task, sign: int) -> None:
        node = self.nodes[task.node]
        add(node.pipelined if task.status is TaskStatus.PIPELINED else node.used, task.request, sign)
        add(node.listed, task.request, sign)
        node.nonzero = [held + sign * more for held, more in zip(node.nonzero, task.nonzero)]
        node.pods += sign
        add(queue.allocated, task.request, sign)

    # -- nodes -------------------------------------------------------------------------------------------------------------

    def _fits(self, task: Task, row: int) -> bool:
        node = self.nodes[row]
        if any(node.future(name) < amount for name, amount in compared(task)):
            return False
        if node.allocatable.get(PODS, 0) <= node.pods or node.cordoned:
            return False
        if any(node.labels.get(key) != value for key, value in task.spec.get("nodeSelector", {}).items()):
            return False
        if any(taint["effect"] == "NoSchedule" and not tolerated(task, taint) for taint in node.taints):
            return False
        return self._stands_its_company(task, row) and self._keeps_even(task, row)

    def _there(self) -> list[Task]:
        """Pods on nodes, reserved and leaving ones included."""
        return [task for job in self.jobs for task in job.tasks if task.node >= 0]

    def _stands_its_company(self, task: Task, row: int) -> bool:
        here = self.nodes[row].labels
        for other in self._there():
            there = self.nodes[other.node].labels
            for asking, asked in ((task, other), (other, task)):
                for key, labels in shunned(asking):
                    near = key in here and here[key] == there.get(key)
                    if near and labels.items() <= asked.labels.items():
                        return False
        return True

    def _keeps_even(self, task: Task, row: int) -> bool:
        """Hard topology spreading of pods that carry the task's own label; every node with the key counts."""
        for constraint in task.spec.get("topologySpreadConstraints", []):
            key, wanted = constraint["topologyKey"], constraint["labelSelector"]["matchLabels"]
            counts = {node.labels[key]: 0 for node in self.nodes if key in node.labels and self._may_use(task, node)}
            for other in self._there():
                domain = self.nodes[other.node].labels.get(key)
                if domain in counts and wanted.items() <= other.labels.items() and self._may_use(task, self.nodes[other.node]):
                    counts[domain] += 1
            domain = self.nodes[row].labels.get(key)
            if domain is None or counts[domain] + 1 - min(counts.values()) > constraint["maxSkew"]:
                return False
        return True

    def _may_use(self, task: Task, node: Node) -> bool:
        return task.spec.get("nodeSelector", {}).items() <= node.labels.items()
