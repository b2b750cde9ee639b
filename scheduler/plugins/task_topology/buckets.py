"""Tasks of a job that should share a node, in buckets."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from heapq import heappop, heappush

import numpy as np

from cluster import objects
from scheduler.model.build import ROLE
from scheduler.model.resources import CPU, MEMORY, Dimensions, Floats, Ints, Mask
from scheduler.model.tasks import TaskInfo
from scheduler.plugins.task_topology.wishes import Wishes


@dataclass(slots=True, eq=False)
class Bucket:
    """Tasks meant for one node: the uids that are `waiting` for one, and how many of the others are on each node (by name).

    `request` is the sum over the waiting ones, `size` what that was in one number when it was filled, `roles` how many of
    each role it was given.
    """

    number: int
    request: Ints
    size: float = 0.0
    members: list[TaskInfo] = field(default_factory=list)
    waiting: set[str] = field(default_factory=set)
    on_node: Counter[str] = field(default_factory=Counter)
    roles: Counter[str] = field(default_factory=Counter)

    def __len__(self) -> int:
        return len(self.waiting) + self.on_node.total()

    def still_waiting(self) -> Iterator[TaskInfo]:
        """The waiting ones, the last to be placed first."""
        return (task for task in reversed(self.members) if task.uid in self.waiting)

    @property
    def shape(self) -> tuple[tuple[str, int], ...]:
        """Its roles; buckets of one shape attract alike."""
        return tuple(sorted(self.roles.items()))


class Buckets:
    """The buckets of one job, and in which of them each task is; made once a session, and kept current within it."""

    def __init__(self, wishes: Wishes, dims: Dimensions) -> None:
        self.wishes = wishes
        self.largest = 0
        self._scale = _scale(dims)
        self._of: dict[str, Bucket] = {}
        self._order: dict[str, tuple[int, ...]] = {}
        self._placed: dict[str, str] = {}
        self._company: defaultdict[str, Counter[str]] = defaultdict(Counter)

    def fill(self, tasks: Iterable[TaskInfo], where: dict[str, str]) -> None:
        """Put tasks into buckets; `where` names the node of those that have one.

        Tasks on one node share a bucket. Of the others each goes where most of its friends are, less those it avoids; of
        equal buckets to the smallest; where it would be avoiding more than it finds, into a new one.
        """
        filling = _Filling(self, self._scale)
        members = [task for task in tasks if (role := role_of(task)) and self.wishes.concern(role)]
        for task in sorted(members, key=lambda task: self._turn(task, where.get(task.uid, ""))):
            bucket = filling.add(role_of(task), task, where.get(task.uid, ""))
            self._of[task.uid] = bucket
            self.largest = max(self.largest, len(bucket))
        self._order = {task.uid: self._key(bucket, task) for bucket in filling.buckets for task in bucket.still_waiting()}

    def of(self, task: TaskInfo) -> Bucket | None:
        """The bucket of a task."""
        return self._of.get(task.uid)

    def order(self, task: TaskInfo) -> tuple[int, ...]:
        """Tasks in buckets first: by the bucket with most tasks to place, the oldest of equals, then by urgency."""
        return self._order.get(task.uid, (1,))

    def company(self, node: str) -> Mapping[str, int]:
        """How many tasks of each role this session has put on a node."""
        return self._company.get(node, {})

    def place(self, task: TaskInfo, node: str) -> None:
        """A task was given a node."""
        self._placed[task.uid] = node
        if role := role_of(task):
            self._company[node][role] += 1
        bucket = self.of(task)
        if bucket is not None:
            bucket.waiting.remove(task.uid)
            bucket.on_node[node] += 1
            bucket.request -= task.request

    def take_back(self, task: TaskInfo) -> None:
        """A task lost the node that this session gave it."""
        node = self._placed.pop(task.uid, None)
        if node is None:
            return
        if role := role_of(task):
            self._company[node][role] -= 1
        bucket = self.of(task)
        if bucket is not None:
            bucket.waiting.add(task.uid)
            bucket.on_node[node] -= 1
            bucket.request += task.request

    # -- orders --------------------------------------------------------------------------------------------------------

    def _turn(self, task: TaskInfo, node: str) -> tuple[bool, str, int, int, str]:
        """Those that have a node first, then by urgency, then by name."""
        if node:
            return False, node, 0, 0, task.name
        rank, weight = self.wishes.urgency(role_of(task))
        return True, "", -rank, -weight, task.name

    def _key(self, bucket: Bucket, task: TaskInfo) -> tuple[int, ...]:
        rank, weight = self.wishes.urgency(role_of(task))
        return 0, -len(bucket.waiting), bucket.number, -rank, -weight


class _Filling:
    """One filling of buckets. Among buckets of one shape only the smallest is looked at: the others attract no more."""

    def __init__(self, of: Buckets, scale: Floats) -> None:
        self.buckets: list[Bucket] = []
        self._wishes, self._scale = of.wishes, scale
        self._by_node: dict[str, Bucket] = {}
        self._by_shape: defaultdict[tuple[tuple[str, int], ...], list[tuple[float, int]]] = defaultdict(list)

    def add(self, role: str, task: TaskInfo, node: str) -> Bucket:
        """Put a task into the bucket that is best for it, made where there is none."""
        bucket = self._by_node.get(node) if node else self._best(role)
        if bucket is None:
            bucket = Bucket(len(self.buckets), np.zeros(len(task.request), np.int64))
            self.buckets.append(bucket)
            if node:
                self._by_node[node] = bucket
        bucket.members.append(task)
        bucket.roles[role] += 1
        if node:
            bucket.on_node[node] += 1
        else:
            bucket.waiting.add(task.uid)
            bucket.request += task.request
            bucket.size += float(task.request @ self._scale[: len(task.request)])
        heappush(self._by_shape[bucket.shape], (bucket.size, bucket.number))
        return bucket

    def _best(self, role: str) -> Bucket | None:
        best: tuple[int, float, int] | None = None
        for shape, heap in self._by_shape.items():
            while heap and not self._is_current(shape, heap[0]):
                heappop(heap)
            if heap:
                found = (-self._wishes.attraction(role, dict(shape)), *heap[0])
                best = found if best is None else min(best, found)
        return self.buckets[best[2]] if best is not None and best[0] <= 0 else None

    def _is_current(self, shape: tuple[tuple[str, int], ...], entry: tuple[float, int]) -> bool:
        bucket = self.buckets[entry[1]]
        return bucket.size == entry[0] and bucket.shape == shape


def role_of(task: TaskInfo) -> str:
    """A task's role by its annotation; a label counts for nothing here."""
    return objects.annotations(task.pod).get(ROLE) or ""


def compared(request: Ints) -> Mask:
    """The dimensions in which a sum of requests is compared with what is free: cpu, memory and whatever it names."""
    asked: Mask = request > 0
    asked[[CPU, MEMORY]] = True
    return asked


def _scale(dims: Dimensions) -> Floats:
    """What one unit of each dimension counts in the size of a bucket: a milli-cpu, a MiB, a milli-unit of a scalar."""
    scale = np.ones(dims.width)
    scale[MEMORY] = 1 / (1 << 20)
    if (place := dims.index.get("ephemeral-storage")) is not None:
        scale[place] = 1000
    return scale
