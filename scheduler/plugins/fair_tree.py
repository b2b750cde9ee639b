"""The tree of hierarchical dominant resource fairness: queues' paths as inner nodes, jobs as leaves.

A node's share is not what its jobs hold added up: unsaturated children are scaled to the smallest share among them first,
so that one child cannot eat up the share of its house with a resource that the others do not want.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from math import isfinite

import numpy as np

from scheduler.model.jobs import JobInfo
from scheduler.model.queues import QueueInfo
from scheduler.model.resources import Floats, Ints, Mask, Rows

HIERARCHY, WEIGHTS = "volcano.sh/hierarchy", "volcano.sh/hierarchy-weights"


class Node:
    """One element of a path. `held` is what its children hold after scaling; its own jobs are rows of arrays."""

    def __init__(self, weight: float, above: Node | None) -> None:
        self.weight, self.above = weight, above
        self.below: dict[str, Node] = {}
        self.jobs: dict[str, int] = {}
        self.share, self.saturated = 0.0, True
        self.held: Floats
        self.amounts: Ints
        self.requests: Ints

    @property
    def key(self) -> tuple[bool, float]:
        """Where the node stands among its siblings."""
        return (self.saturated, self.share / self.weight)


class FairTree:
    """Shares of a session's jobs and queues. `moved` counts how often nodes may have changed outside one path."""

    def __init__(self, total: Ints, owned: Rows) -> None:
        """`total` is the cluster's vector, `owned` the dimensions in which it has anything."""
        self._total, self._owned = total[owned].astype(np.float64), owned
        self._width = len(total)
        self._capacity = total
        self._allocated: Ints = np.zeros_like(total)
        self._demanded: Mask = np.zeros(len(total), np.bool_)
        self._paths: dict[str, tuple[Node, ...]] = {}
        self._amounts: dict[Node, list[tuple[Ints, Ints]]] = {}
        self.root = Node(1.0, None)
        self.moved = 0

    # -- building ------------------------------------------------------------------------------------------------------

    def add(self, queue: QueueInfo, job: JobInfo, held: Ints, request: Ints) -> None:
        """Take a job in; `settle` must follow before anything is asked."""
        path = self.path(queue)
        node = path[-1] if path else self.root
        rows = self._amounts.setdefault(node, [])
        node.jobs[job.uid] = len(rows)
        rows.append((held, request))
        self._allocated = self._allocated + held

    def path(self, queue: QueueInfo) -> tuple[Node, ...]:
        """The nodes below the root on the way to a queue, as its annotations say. The first queue there gives the weight."""
        found = self._paths.get(queue.name)
        if found is None:
            names = queue.annotations.get(HIERARCHY, "").split("/")[1:]
            weights = queue.annotations.get(WEIGHTS, "").split("/")[1:]
            nodes, at = [], self.root
            for place, name in enumerate(names):
                weight = _weight(weights[place]) if place < len(weights) else 1.0
                at = at.below.setdefault(name, Node(weight, at))
                nodes.append(at)
            found = self._paths[queue.name] = tuple(nodes)
        return found

    def settle(self) -> None:
        """Compute every node."""
        for node in self._nodes():
            rows = self._amounts.get(node, [])
            shape = (len(rows), self._width)
            node.amounts = np.array([held for held, _ in rows], np.int64).reshape(shape)
            node.requests = np.array([request for _, request in rows], np.int64).reshape(shape)
        self._demanded = self._allocated < self._capacity
        self._refresh_all()

    def _nodes(self) -> list[Node]:
        """All nodes, children before their parents."""
        found, waiting = [], [self.root]
        while waiting:
            node = waiting.pop()
            found.append(node)
            waiting.extend(node.below.values())
        return found[::-1]

    # -- changes -------------------------------------------------------------------------------------------------------

    def take(self, queue: QueueInfo, job: JobInfo, amount: Ints) -> None:
        """A job holds more (or, negative, less)."""
        path = self.path(queue)
        node = path[-1] if path else self.root
        node.amounts[node.jobs[job.uid]] += amount
        self._allocated = self._allocated + amount
        demanded = self._allocated < self._capacity
        if (demanded == self._demanded).all():
            self._refresh_up(node)
        else:
            self._demanded = demanded
            self.moved += 1
            self._refresh_all()

    @contextmanager
    def supposing(self, queue: QueueInfo, job: JobInfo, amount: Ints) -> Iterator[None]:
        """The tree as it would be if a job held more (or, negative, less)."""
        moved = self.moved
        self.take(queue, job, amount)
        try:
            yield
        finally:
            self.take(queue, job, -amount)
            self.moved = moved

    def _refresh_all(self) -> None:
        for node in self._nodes():
            self._refresh(node)

    def _refresh_up(self, node: Node | None) -> None:
        while node is not None:
            self._refresh(node)
            node = node.above

    def _refresh(self, node: Node) -> None:
        """A node from its children: the unsaturated scaled down to the smallest share among them, the others whole."""
        held, share, saturated = self._children(node)
        live = (share != 0) & ~saturated
        smallest = min(1.0, float(share[live].min())) if live.any() else 1.0
        scale = np.where(live, smallest / np.where(live, share, 1.0), share != 0)
        node.held = scale @ held
        node.share = self._share(node.held)
        node.saturated = bool(saturated.all())

    def _children(self, node: Node) -> tuple[Floats, Floats, Mask]:
        """What jobs and nodes below hold, their shares, and which of them are saturated."""
        amounts = node.amounts
        asked, some = node.requests > 0, amounts > 0
        # Of what a job holds something of: all that it asks, or something that it asks and nobody can have any more.
        full: Mask = np.logical_or.reduce(some & asked & ((amounts >= node.requests) | ~self._demanded), axis=1)
        part: Floats = (amounts[:, self._owned] / self._total).max(axis=1, initial=0.0)
        below = node.below.values()
        if not below:
            return amounts.astype(np.float64), part, full
        return (
            np.concatenate([amounts, [child.held for child in below]]),
            np.concatenate([part, [child.share for child in below]]),
            np.concatenate([full, [child.saturated for child in below]]),
        )

    def _share(self, held: Floats) -> float:
        return float((held[self._owned] / self._total).max()) if self._owned.size else 0.0

    # -- order ---------------------------------------------------------------------------------------------------------

    def goes_before(self, left: QueueInfo, right: QueueInfo) -> bool:
        """Whether one queue comes strictly before another: the first level on which they differ, down to the shorter path."""
        for mine, theirs in zip(self.path(left), self.path(right)):
            if mine.key != theirs.key:
                return mine.key < theirs.key
        return False


def _weight(text: str) -> float:
    """A weight of at least 1; whatever is not such a number is 1."""
    try:
        weight = float(text)
    except ValueError:
        return 1.0
    return max(weight, 1.0) if isfinite(weight) else 1.0
