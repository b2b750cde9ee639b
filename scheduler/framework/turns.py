"""Whose turn it is among queues, where their order follows a tree.

A flat order is a heap of queues. An order by a tree is a heap for each parent: taking a queue's turn changes only the
keys on its own path, and only these are renewed, so a turn costs the depth of the tree and not its size.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass, field
from heapq import heapify, heappop, heappush
from itertools import pairwise
from typing import Any

from scheduler.framework.heap import Heap
from scheduler.framework.plugin import Key
from scheduler.model.queues import QueueInfo

Path = tuple[Hashable, ...]


@dataclass(frozen=True, slots=True)
class Hierarchy:
    """An order of queues by a tree. Siblings compare by `key`; equal ones by what is below them, down to the shorter path.

    `path` leads from below the root to the queue's own node. `rank` comes before the tree and is fixed for a session.
    A node's key may change only with the queues below it; when others change too, `stamp` moves.
    """

    path: Callable[[QueueInfo], Path]
    key: Callable[[Any], Key]
    rank: Callable[[QueueInfo], Key] = lambda queue: 0
    stamp: Callable[[], int] = lambda: 0

    def __call__(self, queue: QueueInfo) -> Key:
        """The order as a flat key, true at the moment of asking."""
        return (self.rank(queue), *(self.key(node) for node in self.path(queue)))


@dataclass(slots=True, eq=False)
class _Place:
    """Where the first queue below a node stands: keys along its path, then everything that is asked after the tree."""

    keys: tuple[Key, ...]
    after: Key

    def __lt__(self, other: _Place) -> bool:
        for mine, theirs in zip(self.keys, other.keys):
            if mine != theirs:
                return bool(mine < theirs)
        return bool(self.after < other.after)


@dataclass(slots=True, eq=False)
class _Branch:
    """A node with the branches below it, those that wait in a heap by their places, and the queues of its own."""

    node: Any
    own: Heap[QueueInfo]
    below: dict[Hashable, _Branch] = field(default_factory=dict)
    heap: list[tuple[_Place, _Branch]] = field(default_factory=list)

    def __bool__(self) -> bool:
        return bool(self.heap) or len(self.own) > 0

    def next(self) -> _Branch | None:
        """The branch that holds the first queue; None when that is one of the node's own."""
        if not self.heap:
            return None
        place, branch = self.heap[0]
        return None if self.own and self.own.first_key() < place.after else branch

    def place(self, key: Callable[[Any], Key]) -> _Place:
        """The place of the first queue in the heap above."""
        branch = self.next()
        best = _Place((), self.own.first_key()) if branch is None else self.heap[0][0]
        return _Place((key(self.node), *best.keys), best.after)


class QueueTree:
    """Queues that wait for their turn, in the order of a tree; `after` orders what the tree leaves equal, and must differ."""

    def __init__(self, order: Hierarchy, after: Callable[[QueueInfo], Key], queues: Iterable[QueueInfo]) -> None:
        self._order, self._after = order, after
        self._members: defaultdict[Key, dict[str, QueueInfo]] = defaultdict(dict)
        for queue in queues:
            self._members[order.rank(queue)][queue.name] = queue
        self._rank: Key = None
        self._stamp = 0
        self._root = _Branch(None, Heap(after))
        self._served: list[_Branch] = []
        self._last: QueueInfo | None = None

    def __len__(self) -> int:
        return sum(map(len, self._members.values()))

    def push(self, queue: QueueInfo) -> None:
        """Put a queue in (again). Cheap for the one whose turn it was."""
        rank = self._order.rank(queue)
        self._members[rank][queue.name] = queue
        if queue is self._last and rank == self._rank:
            self._served[-1].own.push(queue)
        else:
            self._rank = None

    def pop(self) -> QueueInfo:
        """Take the first queue out."""
        rank = min(self._members)
        if rank != self._rank or self._stamp != self._order.stamp():
            self._grow(rank)
        else:
            self._renew()
        branch = self._root
        self._served = [branch]
        while (following := branch.next()) is not None:
            heappop(branch.heap)
            branch = following
            self._served.append(branch)
        queue = self._last = branch.own.pop()
        del self._members[rank][queue.name]
        if not self._members[rank]:
            del self._members[rank]
        return queue

    def _renew(self) -> None:
        """Put the branches of the last turn back where they stand now."""
        for above, branch in reversed(list(pairwise(self._served))):
            if branch:
                heappush(above.heap, (branch.place(self._order.key), branch))

    def _grow(self, rank: Key) -> None:
        """Build the tree of one rank by the keys of now."""
        self._rank, self._stamp, self._last = rank, self._order.stamp(), None
        self._root = _Branch(None, Heap(self._after))
        for queue in self._members[rank].values():
            branch = self._root
            for node in self._order.path(queue):
                if node not in branch.below:
                    branch.below[node] = _Branch(node, Heap(self._after))
                branch = branch.below[node]
            branch.own.push(queue)
        self._arrange(self._root)

    def _arrange(self, branch: _Branch) -> None:
        for child in branch.below.values():
            self._arrange(child)
        branch.heap = [(child.place(self._order.key), child) for child in branch.below.values()]
        heapify(branch.heap)


Turns = Heap[QueueInfo] | QueueTree


def turns(orders: list[Any], fallback: Callable[[QueueInfo], Key], queues: Iterable[QueueInfo]) -> Turns:
    """Queues by their orders, the first of which may be a tree's; `fallback` decides last.

    A tree behind a flat order only breaks its ties: it is read as a flat key then.
    """
    queues = list(queues)
    if orders and isinstance(orders[0], Hierarchy):
        return QueueTree(orders[0], lambda queue: (*(key(queue) for key in orders[1:]), fallback(queue)), queues)
    return Heap(lambda queue: (*(key(queue) for key in orders), fallback(queue)), queues)
