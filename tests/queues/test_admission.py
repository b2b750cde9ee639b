"""What a queue is given and refused."""

from __future__ import annotations

from typing import Any

import pytest
import yaml

from cluster.errors import Forbidden, Invalid
from cluster.kinds import QUEUE
from queues import operations
from tests.jobs.world import World


def refused(call: Any, *arguments: Any, **more: Any) -> dict[str, str]:
    with pytest.raises(Invalid) as error:
        call(*arguments, **more)
    return {fault.pointer: fault.message for fault in error.value.fields}


def test_a_queue_gets_weight_and_reclaimable(world: World):
    assert world.make_queue("team")["spec"] == {"weight": 1, "reclaimable": True}
    assert world.make_queue("zero", weight=0)["spec"]["weight"] == 1


def test_an_annotated_path_gets_its_root(world: World):
    queue = {"metadata": {"name": "a", "annotations": {"volcano.sh/hierarchy": "x/y", "volcano.sh/hierarchy-weights": "2/3"}}}
    made = operations.create(world.cluster, queue)
    assert made["metadata"]["annotations"] == {
        "volcano.sh/hierarchy": "root/x/y",
        "volcano.sh/hierarchy-weights": "1/2/3",
    }


WRONG = [
    ({"weight": 70000}, "/spec/weight", "65535 or less"),
    ({"weight": "heavy"}, "/spec/weight", "a whole number"),
    ({"priority": -1}, "/spec/priority", "0 or more"),
    ({"reclaimable": "no"}, "/spec/reclaimable", "true or false"),
    ({"capability": {"cpu": "-1"}}, "/spec/capability/cpu", "0 or more"),
    ({"capability": {"cpu": 2**63}}, "/spec/capability/cpu", "more cpu than can be counted"),
    ({"deserved": {"a.b/c": "1e308"}}, "/spec/deserved/a.b~1c", "more a.b/c than can be counted"),
    ({"guarantee": {"resource": {"memory": "1e400"}}}, "/spec/guarantee/resource/memory", "more memory than can be counted"),
    ({"capability": {"cpu": "2cpus"}}, "/spec/capability/cpu", "write '2'"),
    ({"capability": {"nvidia.com/gpu": "1.5"}}, "/spec/capability/nvidia.com~1gpu", "whole numbers"),
    ({"capability": {"cpu": "4"}, "deserved": {"cpu": "5"}}, "/spec/deserved/cpu", "at most that much"),
    ({"guarantee": {"resource": {"cpu": "2"}}}, "/spec/deserved/cpu", "at least the guarantee"),
    ({"guarantee": {"resource": {"cpu": "2"}}, "deserved": {"cpu": "1"}}, "/spec/deserved/cpu", "at least the guarantee"),
    ({"parent": "nowhere"}, "/spec/parent", "no queue 'nowhere'"),
    ({"parent": "new"}, "/spec/parent", "its own parent"),
    ({"dequeueStrategy": "lifo"}, "/spec/dequeueStrategy", "'fifo'"),
]


@pytest.mark.parametrize(("spec", "where", "word"), WRONG)
def test_a_fault_is_told_where_it_is_and_with_what_would_be_right(world: World, spec, where, word):
    found = refused(world.make_queue, "new", **spec)
    assert list(found) == [where]
    assert word in found[where]


@pytest.mark.parametrize("name", ["Big", "a_b", "-a", ""])
def test_a_name_that_is_none_is_refused(world: World, name):
    with pytest.raises(Invalid):
        world.make_queue(name)


def test_siblings_together_must_fit_into_their_parent(world: World):
    world.make_queue("dept", deserved={"cpu": "10"}, guarantee={"resource": {"cpu": "4"}})
    world.make_queue("a", parent="dept", deserved={"cpu": "6"}, guarantee={"resource": {"cpu": "2"}})
    much = {"deserved": {"cpu": "5", "memory": "1Gi"}, "guarantee": {"resource": {"cpu": "3"}}}
    found = refused(world.make_queue, "b", parent="dept", **much)
    assert found.keys() == {"/spec/deserved/cpu", "/spec/deserved/memory", "/spec/guarantee/resource/cpu"}
    assert "dept has 10" in found["/spec/deserved/cpu"]
    world.make_queue("c", parent="dept", deserved={"cpu": "4"}, guarantee={"resource": {"cpu": "2"}})


def test_below_root_siblings_may_ask_what_they_like(world: World):
    for name in ("a", "b"):
        assert world.make_queue(name, parent="root", deserved={"cpu": "64"})["spec"]["deserved"] == {"cpu": "64"}


def test_capability_is_held_by_the_nearest_ancestor_that_has_one(world: World):
    world.make_queue("dept", capability={"cpu": "10"})
    world.make_queue("team", parent="dept")
    assert "/spec/capability/cpu" in refused(world.make_queue, "new", parent="team", capability={"cpu": "11"})
    world.make_queue("fits", parent="team", capability={"cpu": "10", "memory": "1Ti"})


def test_a_parent_cannot_shrink_below_what_it_holds(world: World):
    world.make_queue("dept", capability={"cpu": "10"}, deserved={"cpu": "10"})
    world.make_queue("team", parent="dept", capability={"cpu": "8"}, deserved={"cpu": "6"})
    found = refused(operations.update, world.cluster, "dept", {"capability": {"cpu": "7"}, "deserved": {"cpu": "5"}})
    assert found.keys() == {"/spec/capability/cpu", "/spec/deserved/cpu"}
    operations.update(world.cluster, "dept", {"capability": {"cpu": "8"}, "deserved": {"cpu": "6"}})


def test_the_tree_has_five_levels_below_root(world: World):
    above = "root"
    for level in range(1, 6):
        world.make_queue(f"level-{level}", parent=above)
        above = f"level-{level}"
    assert "/spec/parent" in refused(world.make_queue, "level-6", parent=above)


def test_a_queue_cannot_move_below_itself(world: World):
    world.make_queue("a")
    world.make_queue("b", parent="a")
    assert "cannot" in refused(operations.update, world.cluster, "a", {"parent": "b"})["/spec/parent"]


def test_a_queue_that_runs_pods_cannot_become_a_parent(world: World):
    world.make_queue("busy")
    world.cluster.patch_status(QUEUE, "busy", "", {"allocated": {"pods": "3"}})
    assert "3 pods" in refused(world.make_queue, "new", parent="busy")["/spec/parent"]


@pytest.mark.parametrize("field", ["capability", "deserved"])
def test_roots_amounts_cannot_be_changed(world: World, field):
    assert f"/spec/{field}" in refused(operations.update, world.cluster, "root", {field: {"cpu": "1"}})


@pytest.mark.parametrize("state", ["Closing", "Unknown"])
def test_a_queue_in_between_cannot_be_edited(world: World, state):
    world.make_queue("team")
    world.cluster.patch_status(QUEUE, "team", "", {"state": state})
    assert "/status/state" in refused(operations.update, world.cluster, "team", {"weight": 2})


@pytest.mark.parametrize("name", ["root", "default"])
def test_built_in_queues_cannot_be_deleted(world: World, name):
    with pytest.raises(Forbidden, match="built in"):
        operations.delete(world.cluster, name)


def test_a_queue_with_queues_below_cannot_be_deleted(world: World):
    world.make_queue("a")
    world.make_queue("b", parent="a")
    with pytest.raises(Forbidden, match="b"):
        operations.delete(world.cluster, "a")
    operations.delete(world.cluster, "b")
    operations.delete(world.cluster, "a")


@pytest.mark.parametrize(
    ("path", "weights", "word"),
    [
        ("root/a/b", "1/2", "2 weights for the 3 steps"),
        ("root/a/b", "1/2/x", "above 0"),
        ("root/a/b", "1/0/2", "above 0"),
        ("root/a/b", "1/inf/2", "above 0"),
        ("root/sci", "1/2", "only the end of a path is a queue"),
    ],
)
def test_hierarchy_annotations_are_checked(world: World, path, weights, word):
    def annotated(name: str, path: str, weights: str) -> dict[str, Any]:
        keys = {"volcano.sh/hierarchy": path, "volcano.sh/hierarchy-weights": weights}
        return {"metadata": {"name": name, "annotations": keys}}

    operations.create(world.cluster, annotated("sci-dev", "root/sci/dev", "1/2/3"))
    found = refused(operations.create, world.cluster, annotated("new", path, weights))
    assert word in " ".join(found.values())


def test_an_update_with_an_old_version_is_refused(world: World):
    from cluster.errors import Conflict

    version = world.make_queue("team")["metadata"]["resourceVersion"]
    operations.update(world.cluster, "team", {"weight": 2}, resource_version=version)
    with pytest.raises(Conflict):
        operations.update(world.cluster, "team", {"weight": 3}, resource_version=version)
    assert world.queue("team")["spec"]["weight"] == 2


def test_real_queues_are_accepted(world: World, shared_dir):
    made = 0
    for path in sorted((shared_dir / "data" / "manifests").glob("*.yaml")):
        for document in yaml.safe_load_all(path.read_text()):
            if document and document.get("kind") == "Queue":
                operations.create(world.cluster, document)
                made += 1
    assert made >= 14
