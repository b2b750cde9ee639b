"""Fleets: the demo, node lists of the openb trace, and files of objects."""

from __future__ import annotations

from pathlib import Path

import pytest

from cluster.embedded import fleets
from cluster.embedded.store import EmbeddedCluster
from cluster.errors import BadRequest, Invalid, Unavailable
from cluster.kinds import HYPER_NODE, NODE, PRIORITY_CLASS, QUEUE
from cluster.objects import GPU_TOPOLOGY, annotations, condition, labels, resource_units
from cluster.topology import parse_topology


def test_the_demo_fleet_passes_every_rule_and_loads_once(cluster: EmbeddedCluster) -> None:
    fleet = fleets.demo()
    first, second = fleets.load(cluster, fleet), fleets.load(cluster, fleet)
    assert (first.created + first.present, second.created) == (len(fleet.objects), 0)
    nodes = cluster.list(NODE).items
    assert len(nodes) == 32
    assert sum(resource_units(n["status"]["allocatable"]).get("nvidia.com/gpu", 0) for n in nodes) == 192_000
    assert all((condition(n, "Ready") or {})["status"] == "True" for n in nodes)
    assert {n["metadata"]["labels"]["kubernetes.io/hostname"] for n in nodes} == {n["metadata"]["name"] for n in nodes}
    assert {"research", "nlp", "vision", "speech", "prod", "teaching"} <= {
        q["metadata"]["name"] for q in cluster.list(QUEUE).items
    }
    assert {"low", "normal", "high"} <= {c["metadata"]["name"] for c in cluster.list(PRIORITY_CLASS).items}


def test_the_demo_nodes_know_their_gpus_and_links() -> None:
    for node in fleets.demo().nodes:
        count = int(labels(node).get("nvidia.com/gpu.count", "0"))
        text = annotations(node).get(GPU_TOPOLOGY)
        assert (parse_topology(text).gpus if text else 0) == count
        assert resource_units(node["status"]["allocatable"]).get("nvidia.com/gpu", 0) == 1000 * count


def test_every_demo_node_is_in_one_rack_and_every_rack_on_one_spine(cluster: EmbeddedCluster) -> None:
    fleets.load(cluster, fleets.demo())
    hypernodes = {h["metadata"]["name"]: h["spec"] for h in cluster.list(HYPER_NODE).items}
    members = {
        name: [member["selector"]["exactMatch"]["name"] for member in spec["members"]] for name, spec in hypernodes.items()
    }
    for node in cluster.list(NODE).items:
        rack, spine = (node["metadata"]["labels"][f"topology.basalt.dev/{level}"] for level in ("rack", "spine"))
        assert [name for name, found in members.items() if node["metadata"]["name"] in found] == [rack]
        assert [name for name, found in members.items() if rack in found] == [spine]
        assert (hypernodes[rack]["tier"], hypernodes[spine]["tier"]) == (1, 2)


def test_the_openb_node_list_becomes_nodes(shared_dir: Path) -> None:
    nodes = fleets.openb(shared_dir / "data/traces/openb/openb_node_list_all_node.csv").nodes
    assert len(nodes) == 1523
    assert sum(int(n["status"]["allocatable"].get("nvidia.com/gpu", 0)) for n in nodes) == 6212
    t4 = next(n for n in nodes if labels(n).get("nvidia.com/gpu.product") == "T4")
    assert t4["status"]["allocatable"]["cpu"].endswith("m")


@pytest.mark.parametrize(
    ("content", "says"),
    [
        ("a,b\n1,2\n", "line 1: an openb node list has the columns sn, cpu_milli"),
        ("sn,cpu_milli,memory_mib,gpu,model\nn,1000,-1,0,\n", "line 2: expected a name and whole numbers"),
        ("sn,cpu_milli,memory_mib,gpu,model\nn,1000,1,0,\nm,1000\n", "line 3: expected a name and whole numbers"),
    ],
)
def test_a_wrong_node_list_is_refused_by_line(tmp_path: Path, content: str, says: str) -> None:
    path = tmp_path / "nodes.csv"
    path.write_text(content)
    with pytest.raises(BadRequest, match=r"nodes\.csv") as caught:
        fleets.openb(path)
    assert says in caught.value.message


def test_a_file_of_nodes_taken_from_another_cluster_is_loaded(cluster: EmbeddedCluster, tmp_path: Path) -> None:
    path = tmp_path / "fleet.yaml"
    path.write_text(
        """
kind: List
apiVersion: v1
items:
- apiVersion: v1
  kind: Node
  metadata: {name: n1, uid: abc, resourceVersion: "7", creationTimestamp: "2020-01-01T00:00:00Z"}
  status: {allocatable: {cpu: "4", memory: 8Gi, pods: 110}}
"""
    )
    assert fleets.load(cluster, fleets.from_file(path)).created == 1
    node = cluster.get(NODE, "n1")
    assert node["status"]["allocatable"]["memory"] == "8Gi"
    assert (condition(node, "Ready") or {})["status"] == "True"
    assert node["metadata"]["uid"] != "abc"


def test_a_file_with_an_unknown_kind_names_its_line(tmp_path: Path) -> None:
    path = tmp_path / "fleet.yaml"
    path.write_text("apiVersion: v1\nkind: Node\nmetadata: {name: n}\n---\napiVersion: v1\nkind: Toaster\n")
    with pytest.raises(BadRequest, match=r"document 2, line 6: kind 'Toaster'"):
        fleets.from_file(path)
    with pytest.raises(BadRequest, match="cannot be read"):
        fleets.from_file(tmp_path / "missing.yaml")


def test_an_object_that_is_refused_names_the_fleet(cluster: EmbeddedCluster, tmp_path: Path) -> None:
    path = tmp_path / "fleet.yaml"
    path.write_text("apiVersion: v1\nkind: Node\nmetadata: {name: Not_A_Name}\n")
    with pytest.raises(Invalid, match=r"fleet 'fleet\.yaml': Node 'Not_A_Name' is invalid"):
        fleets.load(cluster, fleets.from_file(path))


def test_a_fleet_that_finds_no_room_leaves_no_part_of_it_and_is_loaded_whole_the_next_time():
    class Full:
        room = 0

        def write(self, changes, version):
            if not self.room:
                raise OSError("No space left on device")

    table = Full()
    cluster = EmbeddedCluster(table=table)
    with pytest.raises(Unavailable, match="fleet 'demo'"):
        fleets.load(cluster, fleets.demo())
    assert cluster.list(NODE).items == []
    table.room = 1
    loaded = fleets.load(cluster, fleets.demo())
    assert (loaded.created, loaded.present) == (len(fleets.demo().objects), 0)
    assert fleets.load(cluster, fleets.demo()).created == 0


def test_one_refused_object_leaves_nothing_of_its_fleet():
    cluster = EmbeddedCluster()
    good = fleets.demo().nodes[0]
    bad = {**good, "metadata": {**good["metadata"], "name": "No Name"}}
    with pytest.raises(Invalid, match="No Name"):
        fleets.load(cluster, fleets.Fleet("mixed", (good, bad)))
    assert cluster.list(NODE).items == []
