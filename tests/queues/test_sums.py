"""Whatever is written into a tree of queues, what is let in keeps the order and the sums, and what is refused would not."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from cluster.errors import Invalid
from cluster.kinds import QUEUE
from tests.jobs.world import World

RESOURCES = ("cpu", "nvidia.com/gpu")
NAMES = ("above", "left", "right")
amounts = st.dictionaries(st.sampled_from(RESOURCES), st.integers(0, 6))
limits = st.dictionaries(st.sampled_from(RESOURCES), st.integers(1, 6))  # a limit of 0 is none for some resources
specs = st.fixed_dictionaries({"guarantee": amounts, "deserved": amounts, "capability": limits})
writes = st.lists(st.tuples(st.sampled_from(NAMES), specs), min_size=1, max_size=10)


def written(spec: dict[str, dict[str, int]]) -> dict[str, Any]:
    """As a merge patch that leaves nothing of what was there."""
    texts = {field: dict.fromkeys(RESOURCES) | {name: str(n) for name, n in spec[field].items()} for field in spec}
    return {"guarantee": {"resource": texts["guarantee"]}, "deserved": texts["deserved"], "capability": texts["capability"]}


def is_sound(tree: dict[str, dict[str, dict[str, int]]]) -> bool:
    """The rules by their words, for `above` with `left` and `right` below it."""
    for spec in tree.values():
        for name, amount in spec["guarantee"].items():
            if name not in spec["deserved"] or spec["deserved"][name] < amount:
                return False
        if any(name in spec["capability"] and spec["capability"][name] < amount for name, amount in spec["deserved"].items()):
            return False
    above, below = tree["above"], (tree["left"], tree["right"])
    for name in RESOURCES:
        limit = above["capability"].get(name, 0)
        if limit and any(spec["capability"].get(name, 0) > limit for spec in below):
            return False
        for field in ("guarantee", "deserved"):
            if sum(spec[field].get(name, 0) for spec in below) > above[field].get(name, 0):
                return False
    return True


@given(writes)
def test_a_write_is_let_in_exactly_when_the_tree_stays_sound(steps: list[tuple[str, dict[str, dict[str, int]]]]):
    world = World(nodes=0)
    tree: dict[str, dict[str, dict[str, int]]] = {name: {"guarantee": {}, "deserved": {}, "capability": {}} for name in NAMES}
    for name in NAMES:
        parent = "root" if name == "above" else "above"
        world.cluster.create(QUEUE, {"metadata": {"name": name}, "spec": {"parent": parent, "weight": 1}})
    for name, spec in steps:
        wanted = tree | {name: spec}
        before = world.cluster.get(QUEUE, name)
        refused = None
        try:
            world.cluster.patch(QUEUE, name, "", {"spec": written(spec)})
        except Invalid as error:
            refused = error
        assert (refused is None) == is_sound(wanted), (name, spec, refused)
        if refused is None:
            tree = wanted
        else:
            assert all(fault.pointer.startswith("/spec/") and len(fault.message) > 10 for fault in refused.fields)
            assert world.cluster.get(QUEUE, name) == before
