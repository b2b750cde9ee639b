"""Free GPUs that are of no use: by hand, and against every way of filling a node."""

from __future__ import annotations

from functools import cache

from hypothesis import given, settings
from hypothesis import strategies as st

from scheduler.topology.fragments import CORDONED, LEFTOVER, SEVERAL, Shape, fragments
from scheduler.topology.stock import NodeLeft, Stock
from tests.scheduler.topology.fleets import left, stock


def asks(gpus: int, cpu: int = 0, memory: int = 0, model: str = "", **others: int) -> Shape:
    needs = {"cpu": cpu * 1000, "memory": memory << 30, **others}
    return Shape(gpus, {name: amount for name, amount in needs.items() if amount}, model)


def parts(found) -> list[tuple[str, int, str]]:
    return [(part.node, part.gpus, part.cause) for part in found.parts]


def test_what_no_mixture_of_shapes_fills_is_left_over():
    found = fragments(stock(left("a", 8), left("b", 7), left("c", 3), left("d", 1)), [asks(4), asks(2)])
    assert parts(found) == [("b", 1, LEFTOVER), ("c", 1, LEFTOVER), ("d", 1, LEFTOVER)]
    assert (found.free, found.unusable, found.causes) == (19, 3, {LEFTOVER: 3})


def test_gpus_whose_cpu_or_memory_is_used_up_name_it():
    nodes = stock(left("a", 8, cpu=17), left("b", 8, memory=100), left("c", 8, pods=1), left("d", 8))
    found = fragments(nodes, [asks(1, cpu=8, memory=50)])
    assert parts(found) == [("c", 7, "pods"), ("a", 6, "cpu"), ("b", 6, "memory"), ("d", 0, "")][:3]


def test_another_resource_is_named_too():
    found = fragments(stock(left("a", 4, others={"rdma/hca": 1000})), [asks(2, **{"rdma/hca": 1000})])
    assert parts(found) == [("a", 2, "rdma/hca")]


def test_resources_that_are_short_together_only_are_several():
    # Two shapes: one is heavy in CPU, one in memory; each resource alone leaves room for all four GPUs.
    found = fragments(stock(left("a", 4, cpu=4, memory=4)), [asks(1, cpu=4, memory=1), asks(1, cpu=1, memory=4)])
    assert parts(found) == [("a", 3, SEVERAL)]


def test_free_gpus_of_cordoned_nodes_are_of_no_use_and_those_of_lost_nodes_are_not_known():
    found = fragments(stock(left("a", 5, cordoned=True), left("b", 8, ready=False), left("c", 2)), [asks(1)])
    assert (found.free, parts(found)) == (7, [("a", 5, CORDONED)])


def test_a_node_has_a_part_for_each_cause():
    found = fragments(stock(left("a", 7, cpu=10)), [asks(2, cpu=8)])
    assert sorted(parts(found)) == [("a", 1, LEFTOVER), ("a", 4, "cpu")]


def test_a_model_that_nothing_waits_for_is_judged_by_what_is_usual_on_it_else_by_single_gpus():
    nodes = stock(left("a", 3, model="H100"), left("b", 3, model="A100"), left("c", 3, model="V100"))
    found = fragments(nodes, [asks(8, model="H100")], [asks(2, model="A100")])
    assert parts(found) == [("a", 3, LEFTOVER), ("b", 1, LEFTOVER)]


def test_a_shape_that_no_node_of_a_model_can_ever_hold_is_no_measure_for_it():
    nodes = stock(left("a", 3), left("b", 3, model="A100", gpus=4))
    assert parts(fragments(nodes, [asks(12), asks(8)], [asks(2)])) == [("a", 3, LEFTOVER), ("b", 1, LEFTOVER)]


def test_no_node_and_no_shape_is_no_fragment():
    assert fragments(stock(), []).unusable == 0
    assert fragments(stock(left("cpu", 0, gpus=0)), [asks(8)]).parts == ()


# -- against brute force -----------------------------------------------------------------------------------------------

shapes = st.builds(
    lambda gpus, cpu, memory, model: Shape(gpus, {"cpu": cpu, "memory": memory}, model),
    st.integers(1, 4), st.integers(0, 5), st.integers(0, 5), st.sampled_from(["", "A", "B"]),
)  # fmt: skip
nodes = st.builds(
    lambda model, free, cpu, memory, pods, cordoned, ready: NodeLeft(
        "n", model, 6, free, ready=ready, cordoned=cordoned, left={"cpu": cpu, "memory": memory, "pods": pods}
    ),
    st.sampled_from(["A", "B"]), st.integers(0, 6), st.integers(0, 12), st.integers(0, 12), st.integers(0, 6),
    st.booleans(), st.sampled_from([True, True, True, False]),
)  # fmt: skip


def most(shapes: list[Shape], node: NodeLeft, limited: bool = True) -> int:
    """The most GPUs of a node that pods can hold, by trying every pod after every other."""

    @cache
    def fill(free: int, cpu: int, memory: int, pods: int) -> int:
        best = 0
        for shape in shapes:
            after = free - shape.gpus, cpu - shape.needs["cpu"], memory - shape.needs["memory"], pods - 1
            if after[0] >= 0 and (not limited or min(after[1:]) >= 0):
                best = max(best, shape.gpus + fill(*(after if limited else (after[0], cpu, memory, pods))))
        return best

    return fill(node.free, node.left["cpu"], node.left["memory"], node.left["pods"])


@settings(max_examples=300, deadline=None)
@given(st.lists(nodes, max_size=4), st.lists(shapes, min_size=1, max_size=4))
def test_it_is_what_trying_every_filling_of_every_node_gives(fleet: list[NodeLeft], asked: list[Shape]):
    fleet = [
        NodeLeft(f"n{i}", n.model, n.gpus, n.free, ready=n.ready, cordoned=n.cordoned, left=n.left) for i, n in enumerate(fleet)
    ]
    found = fragments(Stock(fleet), asked)
    by_node = {node.name: {p.cause: p.gpus for p in found.parts if p.node == node.name} for node in fleet}
    for node in fleet:
        mine = [shape for shape in asked if shape.model in ("", node.model)]
        mine = mine or [Shape(1, {"cpu": 0, "memory": 0})]
        expected = 0 if not node.ready else node.free if node.cordoned else node.free - most(mine, node)
        assert sum(by_node[node.name].values()) == expected
        if node.ready and not node.cordoned:
            assert by_node[node.name].get(LEFTOVER, 0) == node.free - most(mine, node, limited=False)
    assert found.free == sum(node.free for node in fleet if node.ready)
