"""Nodes as rows of arrays.

A node keeps its row as long as it exists; rows of nodes that went are given to new ones, lowest first. Every change of
a row's amounts is written to a log, so that whoever keeps something computed from rows (class caches) knows which few
to compute again (`changed_since`); a change of static columns or of the set of nodes moves `static_version`.
"""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from scheduler.model.plain import PlainNode
from scheduler.model.resources import Amounts, Ints, Mask, Rows, widened
from scheduler.model.tasks import NO_NODE, HostPort, TaskClass, TaskInfo, TaskStatus

ChooseGpus = Callable[[Mapping[str, Any], int, int], Sequence[int]]
"""(node, mask of free GPUs, how many) → indices to give."""

MAX_SLOTS = 63
_LOG_LIMIT = 1 << 16
_PLAIN_LIMIT = 1 << 12


def lowest_gpus(node: Mapping[str, Any], free: int, count: int) -> Sequence[int]:
    """The first free indices: the choice where nothing is known of links."""
    found = [bit for bit in range(MAX_SLOTS) if free >> bit & 1]
    return found[:count]


class NodeTable:
    """All nodes. Arrays have one row a node and, where they hold amounts, one column a dimension.

    `allocatable`, `used`, `releasing`, `pipelined`: idle is allocatable − used, future idle adds releasing and takes
    pipelined away; both may be negative. `listed` is what the pods in the node's list ask for (used plus pipelined,
    without what this session evicted), `nonzero` the same for (cpu, memory) with Kubernetes's defaults, `pod_count`
    their number. `gpu_free` are bit masks of the whole, healthy GPUs that nobody holds; `gpu_slots` says whether the
    row's GPUs are known one by one. Static columns: `names`, `labels`, `taints`, `objects` (lists by row), `live`,
    `ready`, `cordoned` (masks), `gpu_all`. Rows that are not `live` have zero amounts. `unsettled` counts the tasks that
    are being released or pipelined: while it is 0, future idle is idle.
    """

    def __init__(self, width: int, rows: int = 64, choose_gpus: ChooseGpus = lowest_gpus) -> None:
        self.width = width
        self.choose_gpus = choose_gpus
        self.allocatable: Ints = np.zeros((rows, width), np.int64)
        self.named: Mask = np.zeros((rows, width), np.bool_)
        self.used: Ints = np.zeros((rows, width), np.int64)
        self.releasing: Ints = np.zeros((rows, width), np.int64)
        self.pipelined: Ints = np.zeros((rows, width), np.int64)
        self.listed: Ints = np.zeros((rows, width), np.int64)
        self.nonzero: Ints = np.zeros((rows, 2), np.int64)
        self.pod_count: Ints = np.zeros(rows, np.int64)
        self.gpu_free: Ints = np.zeros(rows, np.int64)
        self.gpu_all: Ints = np.zeros(rows, np.int64)
        self.gpu_slots: Mask = np.zeros(rows, np.bool_)
        self.live: Mask = np.zeros(rows, np.bool_)
        self.ready: Mask = np.zeros(rows, np.bool_)
        self.cordoned: Mask = np.zeros(rows, np.bool_)
        self.names: list[str] = [""] * rows
        self.labels: list[Mapping[str, str]] = [{}] * rows
        self.taints: list[Sequence[Mapping[str, Any]]] = [()] * rows
        self.objects: list[Mapping[str, Any]] = [{}] * rows
        self.tasks: list[dict[str, TaskInfo]] = [{} for _ in range(rows)]
        self.host_ports: list[Counter[HostPort]] = [Counter() for _ in range(rows)]
        self.index: dict[str, int] = {}
        self.static_version = 0
        self.unsettled = 0
        self._total: tuple[tuple[int, int], Amounts] | None = None
        self._free_rows = list(range(rows))
        self._plain: dict[int, PlainNode] = {}
        self._log: list[int] = []
        self._log_start = 0

    @property
    def rows(self) -> int:
        """Length of the arrays: live rows and free ones."""
        return len(self.names)

    def __len__(self) -> int:
        return len(self.index)

    def live_rows(self) -> Rows:
        """Rows of the nodes that exist, ascending."""
        return np.flatnonzero(self.live)

    def total(self) -> Amounts:
        """Σ allocatable, capped at the largest int64; only to read."""
        asked = (self.static_version, self.width)
        if self._total is None or self._total[0] != asked:
            self._total = asked, self._sum_up()
        return self._total[1]

    def _sum_up(self) -> Amounts:
        exact = [sum(column) for column in zip(*self.allocatable[self.live].tolist())] or [0] * self.width
        named: Mask = np.logical_or.reduce(self.named[self.live], axis=0)
        return Amounts(np.array([min(value, 2**63 - 1) for value in exact], np.int64), named)

    # -- nodes come, change and go -------------------------------------------------------------------------------------

    def put(self, node: Mapping[str, Any], allocatable: Amounts, gpus: int, unhealthy: int, *, ready: bool) -> int:
        """Add a node or bring its static columns up to date; returns its row. `unhealthy` is a mask of GPU indices."""
        name = node["metadata"]["name"]
        row = self.index.get(name, NO_NODE)
        if row == NO_NODE:
            row = self._take_row()
            self.index[name] = row
            self.names[row], self.live[row] = name, True
        self.width = max(self.width, len(allocatable.values))
        held = self._held_gpus(row)
        spec = node.get("spec") or {}
        self.objects[row] = node
        self.labels[row] = node["metadata"].get("labels") or {}
        self.taints[row] = spec.get("taints") or ()
        self.ready[row], self.cordoned[row] = ready, bool(spec.get("unschedulable"))
        self.allocatable[row], self.named[row] = allocatable.values, allocatable.present
        self.gpu_slots[row] = 0 < gpus <= MAX_SLOTS
        self.gpu_all[row] = ((1 << gpus) - 1) & ~unhealthy if self.gpu_slots[row] else 0
        self.gpu_free[row] = self.gpu_all[row] & ~held
        self.static_version += 1
        self._changed((row,))
        return row

    def remove(self, name: str) -> list[TaskInfo]:
        """Drop a node; returns the tasks that were on it, which are then on none."""
        row = self.index.pop(name)
        tasks = list(self.tasks[row].values())
        for task in tasks:
            self.withdraw([task])
        for array in (self.allocatable, self.used, self.releasing, self.pipelined, self.listed, self.nonzero, self.named):
            array[row] = 0
        for column in (self.pod_count, self.gpu_free, self.gpu_all, self.gpu_slots, self.live, self.ready, self.cordoned):
            column[row] = 0
        self.names[row], self.labels[row], self.taints[row], self.objects[row] = "", {}, (), {}
        heapq.heappush(self._free_rows, row)
        self.static_version += 1
        self._plain.pop(row, None)
        return tasks

    def _take_row(self) -> int:
        if not self._free_rows:
            self._grow(self.rows)
        return heapq.heappop(self._free_rows)

    def _grow(self, more: int) -> None:
        first = self.rows
        for name in _ARRAYS:
            array = getattr(self, name)
            setattr(self, name, np.concatenate([array, np.zeros((more, *array.shape[1:]), array.dtype)]))
        self.names += [""] * more
        self.labels += [{}] * more
        self.taints += [()] * more
        self.objects += [{}] * more
        self.tasks += [{} for _ in range(more)]
        self.host_ports += [Counter() for _ in range(more)]
        self._free_rows += range(first, first + more)
        heapq.heapify(self._free_rows)
        self._log_start += len(self._log) + 1
        self._log.clear()

    def widen(self, width: int) -> None:
        """Follow a grown dimension table."""
        for name in _MATRICES:
            setattr(self, name, widened(getattr(self, name), width))
        self.width = width
        self._plain.clear()

    # -- tasks come and go -----------------------------------------------------------------------------------------------

    def place(self, tasks: Sequence[TaskInfo], rows: Sequence[int]) -> None:
        """Put tasks of one class and one status (already set) on rows, one each.

        A task that holds a node (is not just pipelined) and brings no GPUs of its own is given as many as it asks for.
        """
        cls, status = tasks[0].cls, tasks[0].status
        for task, row in zip(tasks, rows, strict=True):
            task.node = row
            self.tasks[row][task.uid] = task
            if cls.host_ports:
                self.host_ports[row].update(cls.host_ports)
            if cls.gpus and status is not TaskStatus.PIPELINED:
                self._take_gpus(task, row)
        self._book(cls, status, rows, 1)

    def withdraw(self, tasks: Sequence[TaskInfo]) -> None:
        """Take tasks of one class and one status off their rows: the inverse of `place`."""
        cls, status = tasks[0].cls, tasks[0].status
        rows = [task.node for task in tasks]
        for task, row in zip(tasks, rows, strict=True):
            del self.tasks[row][task.uid]
            if cls.host_ports:
                self.host_ports[row].subtract(cls.host_ports)
            if task.gpus:
                self.gpu_free[row] = (self.gpu_free[row] | _mask(task.gpus)) & self.gpu_all[row] & ~self._others(row, task)
            task.node = NO_NODE
        self._book(cls, status, rows, -1)

    def hold(self, task: TaskInfo, row: int) -> None:
        """Count a task that is on no node as pipelined on a row, without putting it there."""
        self._hold(task, row, 1)

    def unhold(self, task: TaskInfo, row: int) -> None:
        """The inverse of `hold`."""
        self._hold(task, row, -1)

    def _hold(self, task: TaskInfo, row: int, sign: int) -> None:
        for port in task.cls.host_ports:
            self.host_ports[row][port] += sign
        self._book(task.cls, TaskStatus.PIPELINED, (row,), sign)

    def unlist(self, tasks: Sequence[TaskInfo]) -> None:
        """Strike evicted tasks off their nodes' lists of pods, while what they hold is still being released."""
        self._list(tasks, -1)

    def relist(self, tasks: Sequence[TaskInfo]) -> None:
        """The inverse of `unlist`."""
        self._list(tasks, 1)

    def _list(self, tasks: Sequence[TaskInfo], sign: int) -> None:
        for task in tasks:
            row, cls = task.node, task.cls
            self.listed[row] += sign * cls.request
            self.nonzero[row] += sign * cls.nonzero
            self.pod_count[row] += sign
            for port in cls.host_ports:
                self.host_ports[row][port] += sign
            self._changed((row,))

    def _take_gpus(self, task: TaskInfo, row: int) -> None:
        if not task.gpus and self.gpu_slots[row]:
            task.gpus = tuple(sorted(self.choose_gpus(self.objects[row], int(self.gpu_free[row]), task.cls.gpus)))
        if task.gpus:
            self.gpu_free[row] &= ~_mask(task.gpus)

    def _others(self, row: int, task: TaskInfo) -> int:
        """GPUs that other tasks of the row say they hold too: two pods of other schedulers may claim the same one."""
        return _mask(index for other in self.tasks[row].values() if other is not task for index in other.gpus)

    def _held_gpus(self, row: int) -> int:
        return _mask(index for task in self.tasks[row].values() for index in task.gpus)

    def _book(self, cls: TaskClass, status: TaskStatus, rows: Sequence[int], sign: int) -> None:
        if len(rows) == 1:
            self._book_one(cls, status, rows[0], sign)
        else:
            where, counts = np.unique(np.asarray(rows, np.intp), return_counts=True)
            times = counts * sign
            amounts = times[:, None] * cls.request
            for matrix in self._matrices(status):
                matrix[where] += amounts
            self.listed[where] += amounts
            self.nonzero[where] += times[:, None] * cls.nonzero
            self.pod_count[where] += times
        if status in (TaskStatus.PIPELINED, TaskStatus.RELEASING):
            self.unsettled += sign * len(rows)
        self._changed(rows)

    def _book_one(self, cls: TaskClass, status: TaskStatus, row: int, sign: int) -> None:
        amounts, nonzero = (cls.request, cls.nonzero) if sign > 0 else (-cls.request, -cls.nonzero)
        for matrix in self._matrices(status):
            matrix[row] += amounts
        self.listed[row] += amounts
        self.nonzero[row] += nonzero
        self.pod_count[row] += sign

    def _matrices(self, status: TaskStatus) -> tuple[Ints, ...]:
        if status is TaskStatus.PIPELINED:
            return (self.pipelined,)
        if status is TaskStatus.RELEASING:
            return (self.used, self.releasing)
        return (self.used,)

    def plain(self, row: int) -> PlainNode:
        """A row in plain numbers; kept until the row changes."""
        found = self._plain.get(row)
        if found is None:
            if len(self._plain) > _PLAIN_LIMIT:
                self._plain.clear()
            found = self._plain[row] = PlainNode(
                self.allocatable[row].tolist(),
                self.used[row].tolist(),
                self.releasing[row].tolist(),
                self.pipelined[row].tolist(),
                self.listed[row].tolist(),
                self.nonzero[row].tolist(),
                self.pod_count.item(row),
                self.gpu_free.item(row),
                self.gpu_slots.item(row),
            )
        return found

    # -- what changed ------------------------------------------------------------------------------------------------------

    def _changed(self, rows: Sequence[int]) -> None:
        self._log.extend(rows)
        for row in rows:
            self._plain.pop(row, None)
        if len(self._log) > _LOG_LIMIT:
            self._log_start += len(self._log)
            self._log.clear()

    @property
    def position(self) -> int:
        """The end of the log of changed rows."""
        return self._log_start + len(self._log)

    def changed_since(self, position: int) -> Sequence[int] | None:
        """Rows whose amounts changed since a position of the log, repeats left in; None: too long ago, take all."""
        if position < self._log_start:
            return None
        return self._log[position - self._log_start :]


class Block:
    """Some rows of the table with their amounts gathered, perhaps with further copies of one class put on them.

    `rows` may repeat, with another number of `copies` each time: that is how the rungs of a ladder are scored together.
    Copies are counted as allocated (in `used`), or as pipelined if so said, and always in `listed`, `nonzero` and
    `pod_count`. Only to read. `whole` is set when the block is the table itself, row by row.
    """

    allocatable: Ints
    used: Ints
    releasing: Ints
    pipelined: Ints
    listed: Ints
    nonzero: Ints
    pod_count: Ints

    def __init__(
        self,
        nodes: NodeTable,
        rows: Rows | None = None,
        cls: TaskClass | None = None,
        copies: Ints | None = None,
        *,
        as_pipelined: bool = False,
    ) -> None:
        self.nodes, self.copies, self.whole = nodes, copies, rows is None
        self.rows: Rows = np.arange(nodes.rows) if rows is None else rows
        self._cls, self.as_pipelined = cls, as_pipelined

    def __len__(self) -> int:
        return len(self.rows)

    def __getattr__(self, name: str) -> Ints:
        """Gather an amount when it is first asked for; from then on it is a plain attribute."""
        if name not in _GATHERED:
            raise AttributeError(name)
        array: Ints = getattr(self.nodes, name)
        found = array if self.whole else array.take(self.rows, axis=0)  # several times quicker than indexing
        if self.copies is not None and self._cls is not None:
            found = self._with_copies(name, found)
        setattr(self, name, found)
        return found

    def _with_copies(self, name: str, found: Ints) -> Ints:
        assert self.copies is not None
        assert self._cls is not None
        if name == "pod_count":
            return found + self.copies
        if name == "nonzero":
            return found + self.copies[:, None] * self._cls.nonzero
        if name == "listed" or name == ("pipelined" if self.as_pipelined else "used"):
            return found + self.copies[:, None] * self._cls.request
        return found


_GATHERED = frozenset({"allocatable", "used", "releasing", "pipelined", "listed", "nonzero", "pod_count"})
_MATRICES = ("allocatable", "named", "used", "releasing", "pipelined", "listed")
_ARRAYS = (*_MATRICES, "nonzero", "pod_count", "gpu_free", "gpu_all", "gpu_slots", "live", "ready", "cordoned")


def _mask(indices: Any) -> int:
    bits = 0
    for index in indices:
        if 0 <= index < MAX_SLOTS:
            bits |= 1 << index
    return bits
