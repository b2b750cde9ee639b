"""Queues that take turns by a tree: always the first by the keys of the moment, whatever was served before."""

from __future__ import annotations

from fractions import Fraction
from functools import cmp_to_key
from itertools import pairwise
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from scheduler.framework.turns import Hierarchy, QueueTree, turns
from scheduler.model.queues import QueueInfo
from scheduler.model.resources import Dimensions


def queue(name: str, priority: int = 0) -> QueueInfo:
    none = Dimensions().amounts({})
    return QueueInfo(name, capability=none, deserved=none, guarantee=none, priority=priority)


class Tree:
    """Nodes by path; a node's key is how often it was served by its weight, so a turn changes the keys on its path."""

    def __init__(self, paths: list[tuple[tuple[str, ...], int, int]]) -> None:
        self.queues = {f"q{i:02}": queue(f"q{i:02}", priority) for i, (_, priority, _) in enumerate(paths)}
        self.paths: dict[str, tuple[tuple[str, ...], ...]] = {}
        self.turns_left = {}
        self.served: dict[tuple[str, ...], int] = {}
        for name, (path, _, rounds) in zip(self.queues, paths):
            self.paths[name] = tuple(path[: i + 1] for i in range(len(path)))
            self.turns_left[name] = rounds

    def key(self, node: tuple[str, ...]) -> Fraction:
        return Fraction(self.served.get(node, 0), 1 + ord(node[-1]) % 3)

    def serve(self, name: str) -> None:
        self.turns_left[name] -= 1
        for node in self.paths[name]:
            self.served[node] = self.served.get(node, 0) + 1

    def first(self, names: list[str]) -> str:
        """By looking at all of them: rank, then the tree level by level, then the name."""
        return sorted(names, key=cmp_to_key(self.compare))[0]

    def compare(self, left: str, right: str) -> int:
        ranks = -self.queues[left].priority, -self.queues[right].priority
        if ranks[0] != ranks[1]:
            return -1 if ranks[0] < ranks[1] else 1
        for mine, theirs in zip(self.paths[left], self.paths[right]):
            if self.key(mine) != self.key(theirs):
                return -1 if self.key(mine) < self.key(theirs) else 1
        return -1 if left < right else 1


PATHS = st.lists(
    st.tuples(st.lists(st.sampled_from("abc"), min_size=2, max_size=2).map(tuple), st.integers(0, 1), st.integers(1, 4)),
    min_size=1,
    max_size=9,
)


@settings(deadline=None)
@given(PATHS)
def test_a_turn_always_goes_to_the_first_queue_of_the_moment(paths: Any) -> None:
    tree = Tree(paths)
    order = Hierarchy(lambda queue: tree.paths[queue.name], tree.key, lambda queue: -queue.priority)
    waiting = turns([order], lambda queue: queue.name, tree.queues.values())
    assert isinstance(waiting, QueueTree)
    while waiting:
        members = [name for name, left in tree.turns_left.items() if left]
        assert len(waiting) == len(members)
        found = waiting.pop()
        assert found.name == tree.first(members)
        tree.serve(found.name)
        if tree.turns_left[found.name]:
            waiting.push(found)


def test_when_other_keys_change_the_stamp_says_so() -> None:
    tree = Tree([(("a",), 0, 9), (("b",), 0, 9), (("c",), 0, 9)])
    stamps = [0]
    order = Hierarchy(lambda queue: tree.paths[queue.name], tree.key, stamp=lambda: stamps[0])
    waiting = turns([order], lambda queue: queue.name, tree.queues.values())
    assert waiting.pop().name == "q00"
    tree.served["b",] = 5
    stamps[0] += 1
    assert waiting.pop().name == "q02"


def test_what_is_asked_after_the_tree_decides_between_queues_of_one_node() -> None:
    tree = Tree([(("a",), 0, 1), (("a",), 0, 1), (("a",), 0, 1)])
    order = Hierarchy(lambda queue: tree.paths[queue.name], tree.key)
    waiting = turns([order, lambda queue: -int(queue.name[1:])], lambda queue: queue.name, tree.queues.values())
    found = [waiting.pop().name for _ in range(3)]
    assert all(left > right for left, right in pairwise(found))


def test_a_queue_whose_turn_it_was_not_may_come_in_later() -> None:
    tree = Tree([(("a",), 0, 1), (("b",), 0, 1), (("c",), 1, 1)])
    order = Hierarchy(lambda queue: tree.paths[queue.name], tree.key, lambda queue: -queue.priority)
    waiting = turns([order], lambda queue: queue.name, [tree.queues["q01"]])
    assert waiting.pop().name == "q01"
    for name in ("q00", "q01", "q02"):
        waiting.push(tree.queues[name])
    assert [waiting.pop().name for _ in range(3)] == ["q02", "q00", "q01"]
