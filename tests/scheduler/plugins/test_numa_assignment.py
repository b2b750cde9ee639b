"""Which CPUs a pod gets: the rows of Volcano's own tables, what a kubelet would take, and what must hold on any machine."""

from __future__ import annotations

from itertools import combinations
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cluster.cpus import format_cpus, parse_cpus
from scheduler.model.numa import Layout
from scheduler.plugins.numa_aware.assignment import affinity, assign, take

TWO = Layout({cpu: (cpu // 4, cpu // 4, cpu // 2) for cpu in range(8)})
"""Volcano's example: two NUMA nodes, each a socket of two cores with two threads."""
ALL = TWO.all


@pytest.mark.parametrize(
    ("free", "count", "nodes", "preferred"),
    [
        ("0-7", 4, [0], True),
        ("1-7", 4, [1], True),
        ("0-7", 5, [0, 1], True),
        ("0-7", 8, [0, 1], True),
        ("0-7", 9, [0, 1], False),
        ("2-5", 4, [0, 1], False),
    ],
)
def test_the_fewest_numa_nodes_are_taken(free: str, count: int, nodes: list[int], preferred: bool) -> None:
    assert affinity(TWO, parse_cpus(free), count) == (nodes, preferred)


@pytest.mark.parametrize(
    ("free", "count", "expected"),
    [("0-7", 4, "0-3"), ("1-7", 4, "4-7"), ("0-7", 5, "0-4"), ("1-7", 5, "1,4-7"), ("1-7", 8, None)],
)
def test_cpus_are_taken_near_each_other(free: str, count: int, expected: str | None) -> None:
    found = assign(TWO, "best-effort", parse_cpus(free), 0, (count,))
    assert (None if found is None else format_cpus(found)) == expected


@pytest.mark.parametrize(
    ("policy", "free", "count", "expected"),
    [
        ("best-effort", "2-5", 4, "2-5"),
        ("restricted", "2-5", 4, None),  # four would fit into one node, if that were empty
        ("single-numa-node", "2-5", 4, None),
        ("best-effort", "0-7", 6, "0-5"),
        ("restricted", "0-7", 6, "0-5"),  # six never fit into one: two are as few as can be
        ("single-numa-node", "0-7", 6, None),
        ("single-numa-node", "2-7", 3, "4-6"),
        ("best-effort", "0-1", 3, None),
    ],
)
def test_policies_differ_in_what_they_refuse(policy: str, free: str, count: int, expected: str | None) -> None:
    found = assign(TWO, policy, parse_cpus(free), 0, (count,))
    assert (None if found is None else format_cpus(found)) == expected


def test_containers_get_theirs_one_after_the_other_and_fractions_none() -> None:
    assert assign(TWO, "single-numa-node", ALL, 0, (3, 0, 3)) == parse_cpus("0-2,4-6")
    assert assign(TWO, "single-numa-node", ALL, 0, (3, 3, 2)) is None
    assert assign(TWO, "single-numa-node", ALL, 0, (0,)) == 0


def test_what_the_node_keeps_for_itself_is_not_given() -> None:
    # Two reserved: a core, the first one; the free ones of NUMA node 0 are too few then.
    assert assign(TWO, "single-numa-node", ALL, 2, (3,)) == parse_cpus("4-6")
    assert assign(TWO, "best-effort", ALL, 2, (7,)) is None


def test_whole_sockets_then_whole_cores_then_threads_of_begun_cores() -> None:
    # Four sockets of two cores with two threads.
    layout = Layout({cpu: (cpu // 4, cpu // 4, cpu % 4 // 2) for cpu in range(16)})
    assert take(layout, parse_cpus("1-15"), 4) == parse_cpus("4-7")
    # Cores from the socket with fewest whole ones left.
    assert take(layout, parse_cpus("0-11,14-15"), 2) == parse_cpus("14-15")
    # A single one from the core that is begun already.
    assert take(layout, parse_cpus("1-15"), 1) == parse_cpus("1")
    # After a socket, the rest comes from where least is free.
    assert take(layout, parse_cpus("1-15"), 5) == parse_cpus("1,4-7")
    assert take(layout, parse_cpus("1-3"), 4) is None


def test_core_ids_may_repeat_in_other_sockets() -> None:
    # Both sockets number their one core 0: a core is still of one socket.
    layout = Layout({0: (0, 0, 0), 1: (1, 1, 0), 2: (0, 0, 0), 3: (1, 1, 0)})
    assert take(layout, layout.all, 2) == parse_cpus("0,2")
    assert assign(layout, "single-numa-node", layout.all, 0, (2, 2)) == parse_cpus("0-3")


machines = st.integers(1, 4).flatmap(
    lambda nodes: st.tuples(
        st.just(nodes),
        st.integers(1, 3),
        st.integers(1, 2),
        st.randoms(use_true_random=False),
        st.lists(st.integers(0, 5), min_size=1, max_size=3),
    )
)


def machine(spec: Any) -> tuple[Layout, int, tuple[int, ...]]:
    nodes, cores, threads, random, containers = spec
    places = {
        cpu: (cpu % nodes, cpu % nodes, cpu // nodes % cores) for cpu in range(nodes * cores * threads)
    }  # numbered across the sockets, as Linux does
    free = sum(1 << cpu for cpu in places if random.random() < 0.7)
    return Layout(places), free, tuple(containers)


@settings(max_examples=200, deadline=None)
@given(machines, st.sampled_from(["best-effort", "restricted", "single-numa-node"]))
def test_as_many_as_asked_of_the_free_ones_or_none_at_all(spec: Any, policy: str) -> None:
    layout, free, containers = machine(spec)
    found = assign(layout, policy, free, 0, containers)
    if found is not None:
        assert not found & ~free
        assert found.bit_count() == sum(containers)
    elif policy == "best-effort":
        assert free.bit_count() < sum(containers)


@settings(max_examples=200, deadline=None)
@given(machines)
def test_affinity_is_the_narrowest_of_all_hints(spec: Any) -> None:
    """Against every set of NUMA nodes, as kubelet's topology manager weighs them."""
    layout, free, containers = machine(spec)
    count, numa = max(containers[0], 1), layout.numa_nodes
    least, hints = len(numa), []
    for width in range(1, len(numa) + 1):
        for nodes in combinations(numa, width):
            if sum(numa[node].bit_count() for node in nodes) >= count:
                least = min(least, width)
            if sum((numa[node] & free).bit_count() for node in nodes) >= count:
                hints.append((width, sum(1 << node for node in nodes), nodes))
    expected = (list(numa), False)
    if hints:
        width, _, nodes = min(hints)
        expected = (list(nodes), width == least)
    assert affinity(layout, free, count) == expected
