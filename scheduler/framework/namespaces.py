"""Jobs of one queue whose namespaces take turns: the first namespace of the moment gives its first job."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from scheduler.framework.heap import Heap
from scheduler.model.jobs import JobInfo


class ByNamespace:
    """A heap of jobs for each namespace. Whose turn it is, is asked anew each time: a placed job moves all of its own."""

    def __init__(self, order: Callable[[str], Any], key: Callable[[JobInfo], Any], members: Iterable[JobInfo]) -> None:
        self._order, self._key = order, key
        self._heaps: dict[str, Heap[JobInfo]] = {}
        for job in members:
            self.push(job)

    def push(self, job: JobInfo) -> None:
        """Put a job in (again)."""
        heap = self._heaps.get(job.namespace)
        if heap is None:
            heap = self._heaps[job.namespace] = Heap(self._key)
        heap.push(job)

    def pop(self) -> JobInfo:
        """Take the first job of the first namespace out."""
        return self._heaps[min((name for name, heap in self._heaps.items() if heap), key=self._order)].pop()

    def drain(self) -> list[JobInfo]:
        """Take all jobs out, in the order in which they would be popped."""
        return [job for name in sorted(self._heaps, key=self._order) for job in self._heaps[name].drain()]

    def __len__(self) -> int:
        return sum(map(len, self._heaps.values()))
