"""Which CPUs containers get, as kubelet's managers of topology and CPUs would choose them. Sets of CPUs are bits of integers."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import lru_cache

from cluster.cpus import each_cpu
from scheduler.model.numa import BEST_EFFORT, RESTRICTED, SINGLE, Layout


@lru_cache(maxsize=65_536)
def assign(layout: Layout, policy: str, free: int, reserved: int, containers: tuple[int, ...]) -> int | None:
    """CPUs for a pod whose containers ask for so many whole ones each (0: none of its own); None when it cannot have them.

    `reserved` is how many CPUs the node keeps for itself. Each container sees what those before it were given.
    """
    kept = take(layout, layout.all, reserved) or 0
    left, given = free & ~kept, 0
    for count in containers:
        if not count:
            continue
        found = _of_container(layout, policy, left, count)
        if found is None:
            return None
        left, given = left & ~found, given | found
    return given


def _of_container(layout: Layout, policy: str, free: int, count: int) -> int | None:
    nodes, preferred = affinity(layout, free, count)
    if policy == SINGLE and not (preferred and len(nodes) == 1):
        return None
    if policy == RESTRICTED and not preferred:
        return None
    aligned = 0
    if policy in (BEST_EFFORT, RESTRICTED, SINGLE):
        near = free & _union(layout.numa_nodes[node] for node in nodes)
        aligned = take(layout, near, min(count, near.bit_count())) or 0
    rest = take(layout, free & ~aligned, count - aligned.bit_count())
    return None if rest is None else aligned | rest


def affinity(layout: Layout, free: int, count: int) -> tuple[list[int], bool]:
    """The NUMA nodes to take so many CPUs from: the fewest that have them free, of equals the lowest ones.

    Also whether no smaller number of nodes could have them even when empty. All nodes when not even these suffice.
    """
    numa = layout.numa_nodes
    room = {node: (cpus & free).bit_count() for node, cpus in numa.items()}
    width = _fewest(room.values(), count)
    if width is None:
        return list(numa), False
    least = _fewest((cpus.bit_count() for cpus in numa.values()), count)
    return _lowest(room, width, count), width == least


def _fewest(sizes: Iterable[int], count: int) -> int | None:
    """How many of the largest sizes it takes to come to a count."""
    total = 0
    for number, size in enumerate(sorted(sizes, reverse=True), 1):
        total += size
        if total >= count:
            return number
    return None


def _lowest(room: dict[int, int], width: int, count: int) -> list[int]:
    """Of the sets of `width` nodes with room for `count`, that whose highest node is lowest, then the next highest."""
    nodes, chosen = sorted(room), list[int]()
    below = len(nodes)
    for missing in range(width, 0, -1):
        for place in range(missing - 1, below):
            others = sorted((room[node] for node in nodes[:place]), reverse=True)[: missing - 1]
            if room[nodes[place]] + sum(others) >= count:
                break
        chosen.append(nodes[place])
        count -= room[nodes[place]]
        below = place
    return sorted(chosen)


@lru_cache(maxsize=65_536)
def take(layout: Layout, free: int, count: int) -> int | None:
    """So many CPUs out of the free ones: whole sockets, then whole cores, then threads; None when there are too few."""
    if count > free.bit_count():
        return None
    taken = 0
    if layout.places and count > 0:
        taken = _whole(layout.sockets.values(), free, count, len(layout.places) // len(layout.sockets))
        cores = _by_fullness(layout, free & ~taken)
        taken |= _whole(cores, free & ~taken, count - taken.bit_count(), len(layout.places) // len(layout.cores))
    for cpu in _threads(layout, free & ~taken, taken):
        if taken.bit_count() >= count:
            break
        taken |= 1 << cpu
    return taken


def _whole(groups: Iterable[int], free: int, count: int, size: int) -> int:
    """Groups of which every CPU is free, as long as at least the usual size of one is needed."""
    taken = 0
    for cpus in groups:
        needed = count - taken.bit_count()
        if needed < size or not needed:
            break
        if not cpus & ~free and cpus.bit_count() <= needed:
            taken |= cpus
    return taken


def _by_fullness(layout: Layout, free: int) -> Sequence[int]:
    """Cores by how few whole ones their socket has left, then by socket and core."""
    whole = {core: cpus for core, cpus in layout.cores.items() if not cpus & ~free}
    left = {socket: sum(core[0] == socket for core in whole) for socket in layout.sockets}
    return [whole[core] for core in sorted(whole, key=lambda core: (left[core[0]], core))]


def _threads(layout: Layout, free: int, taken: int) -> list[int]:
    """Single CPUs: from sockets where most was taken, then where least is free, then from cores where least is free."""

    def order(core: tuple[int, int]) -> tuple[int, int, int, tuple[int, int]]:
        socket = layout.sockets[core[0]]
        mine = (socket & taken).bit_count()
        return -mine, (socket & free).bit_count(), (layout.cores[core] & free).bit_count(), core

    found: list[int] = []
    for core in sorted((core for core, cpus in layout.cores.items() if cpus & free), key=order):
        found += each_cpu(layout.cores[core] & free)
    return found


def _union(masks: Iterable[int]) -> int:
    found = 0
    for mask in masks:
        found |= mask
    return found
