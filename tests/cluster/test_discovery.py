"""Network domains read off the labels of nodes: what is derived, made, mended, deleted, counted, refused."""

from __future__ import annotations

from typing import Any

import pytest
import yaml

from cluster import hypernodes
from cluster.admission import Admission
from cluster.clock import ManualClock
from cluster.discovery import DiscoveryRules
from cluster.embedded.store import EmbeddedCluster
from cluster.errors import Invalid
from cluster.hypernodes import CONFIG_KEY, CONFIG_NAME, CONFIG_NAMESPACE, ConfigError, domains, label_types, node_count
from cluster.kinds import CONFIG_MAP, HYPER_NODE, NODE
from cluster.objects import labels, name
from cluster.rules import RULES
from jobs.controller import ControllerManager

RACK, SPINE, HOST = "example.com/rack", "example.com/spine", "kubernetes.io/hostname"


def config(*keys: str, source: str = "label", enabled: bool = True, title: str = "net") -> str:
    types = {title: [{"nodeLabel": key} for key in (*keys, HOST)]}
    one = {"source": source, "enabled": enabled, "config": {"networkTopologyTypes": types}}
    return yaml.safe_dump({"networkTopologyDiscovery": [one]})


def node(title: str, **found: str) -> dict[str, Any]:
    given = {RACK: found.get("rack"), SPINE: found.get("spine")}
    return {"metadata": {"name": title, "labels": {key: value for key, value in given.items() if value}}}


def shape(found: list[hypernodes.Domain]) -> dict[tuple[int, str], list[str]]:
    names = {domain.name: domain.value for domain in found}
    return {(d.tier, d.value): [names.get(member, member) for member in d.members] for d in found}


class World:
    def __init__(self) -> None:
        admission = Admission()
        for kind, rule in RULES.items():
            admission.register(kind, rule)
        admission.register(CONFIG_MAP, DiscoveryRules())
        self.cluster = EmbeddedCluster(clock=ManualClock(1_900_000_000.0), admission=admission)
        self.manager = ControllerManager(self.cluster, self.cluster.clock)

    def configure(self, text: str) -> None:
        meta = {"name": CONFIG_NAME, "namespace": CONFIG_NAMESPACE}
        body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta, "data": {CONFIG_KEY: text}}
        self.cluster.patch(CONFIG_MAP, CONFIG_NAME, CONFIG_NAMESPACE, body, patch_type="apply", field_manager="t")
        self.manager.settle()

    def add(self, *nodes: dict[str, Any]) -> None:
        for each in nodes:
            self.cluster.create(NODE, each)
        self.manager.settle()

    def found(self) -> dict[str, tuple[int, list[str], int]]:
        """Label value → tier, member names as values or nodes, nodeCount."""
        objects = self.cluster.list(HYPER_NODE).items
        value = {name(o): next((v for k, v in labels(o).items() if k != hypernodes.SOURCE), name(o)) for o in objects}
        return {
            value[name(o)]: (
                o["spec"]["tier"],
                [
                    value.get(m["selector"]["exactMatch"]["name"], m["selector"]["exactMatch"]["name"])
                    for m in o["spec"]["members"]
                ],
                o["status"]["nodeCount"],
            )
            for o in objects
        }


@pytest.fixture
def world():
    world = World()
    yield world
    world.manager.close()


NODES = (node("n0", rack="r0", spine="s0"), node("n1", rack="r0", spine="s0"), node("n2", rack="r1", spine="s0"))


def test_labels_from_the_top_down_make_tiers_from_the_bottom_up():
    found = domains(label_types(config(SPINE, RACK)), NODES)
    assert shape(found) == {(1, "r0"): ["n0", "n1"], (1, "r1"): ["n2"], (2, "s0"): ["r0", "r1"]}
    assert {d.key for d in found if d.tier == 2} == {SPINE}
    assert all(domain.name.startswith(f"hypernode-net-tier{domain.tier}-") and len(domain.name[-5:]) == 5 for domain in found)


def test_a_node_that_lacks_a_label_stops_at_the_tier_below():
    nodes = (node("a", rack="r0", spine="s0"), node("b", rack="r1"), node("c", spine="s0"))
    found = domains(label_types(config(SPINE, RACK)), nodes)
    assert shape(found) == {(1, "r0"): ["a"], (1, "r1"): ["b"], (2, "s0"): ["r0"]}


def test_domains_are_made_mended_and_deleted_as_nodes_change(world: World):
    world.add(*NODES)
    world.configure(config(SPINE, RACK))
    assert world.found() == {"r0": (1, ["n0", "n1"], 2), "r1": (1, ["n2"], 1), "s0": (2, ["r0", "r1"], 2)}
    world.add(node("n3", rack="r2", spine="s0"))
    assert (set(world.found()["s0"][1]), world.found()["s0"][2]) == ({"r0", "r1", "r2"}, 3)
    world.cluster.patch(NODE, "n3", "", {"metadata": {"labels": {RACK: "r1"}}})
    world.manager.settle()
    assert (world.found()["r1"][1], "r2" in world.found()) == (["n2", "n3"], False)
    world.cluster.delete(NODE, "n2")
    world.cluster.delete(NODE, "n3")
    world.manager.settle()
    assert set(world.found()) == {"r0", "s0"}


def test_a_restart_makes_nothing_anew(world: World):
    world.add(*NODES)
    world.configure(config(SPINE, RACK))
    before = world.cluster.list(HYPER_NODE).items
    world.manager.close()
    world.manager = ControllerManager(world.cluster, world.cluster.clock)
    world.manager.settle()
    assert world.cluster.list(HYPER_NODE).items == before


def test_what_is_deleted_by_hand_comes_back_and_what_is_edited_is_mended(world: World):
    world.add(*NODES)
    world.configure(config(RACK))
    one, other = (name(o) for o in world.cluster.list(HYPER_NODE).items)
    world.cluster.delete(HYPER_NODE, one)
    ghost = {"type": "Node", "selector": {"exactMatch": {"name": "ghost"}}}
    world.cluster.patch(HYPER_NODE, other, "", {"spec": {"members": [ghost]}})
    world.manager.settle()
    assert {value: members for value, (_, members, _) in world.found().items()} == {"r0": ["n0", "n1"], "r1": ["n2"]}


def test_domains_of_others_are_counted_and_left_alone(world: World):
    world.add(*NODES)
    member = {"type": "Node", "selector": {"regexMatch": {"pattern": "^n[01]$"}}}
    world.cluster.create(HYPER_NODE, {"metadata": {"name": "mine"}, "spec": {"tier": 1, "members": [member]}})
    world.configure(config(RACK))
    world.configure(config(RACK, enabled=False))
    (left,) = world.cluster.list(HYPER_NODE).items
    assert (name(left), left["status"]["nodeCount"]) == ("mine", 2)
    world.cluster.delete(NODE, "n0")
    world.manager.settle()
    assert world.cluster.get(HYPER_NODE, "mine")["status"]["nodeCount"] == 1


@pytest.mark.parametrize(
    ("members", "count"),
    [
        ([{"type": "Node", "selector": {"exactMatch": {"name": "ghost"}}}], 1),
        (
            [
                {"type": "Node", "selector": {"exactMatch": {"name": "n0"}}},
                {"type": "Node", "selector": {"regexMatch": {"pattern": "n"}}},
            ],
            3,
        ),
        ([{"type": "Node", "selector": {"labelMatch": {"matchLabels": {RACK: "r0"}}}}], 2),
        ([{"type": "HyperNode", "selector": {"exactMatch": {"name": "h"}}}], 1),
        ([], 0),
    ],
)
def test_members_are_counted_by_name_or_pattern(members: list[Any], count: int):
    assert node_count({"spec": {"members": members}}, NODES) == count


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (config(RACK, RACK), "/networkTopologyDiscovery/0/config/networkTopologyTypes/net: names a label twice"),
        (config(RACK, title="x" * 21), "1 to 20 characters"),
        (config(RACK, source="ufm"), "'ufm' is not served"),
        (config("no label!"), "net/0/nodeLabel: must be the key of a node label"),
        ("networkTopologyDiscovery: 3", "/networkTopologyDiscovery: must be a list"),
        ("networkTopologyDiscovery: [{}]", "/networkTopologyDiscovery/0/source: must name a source"),
        ("networkTopologyDiscovery: [{source: label, enabled: true}]", "must be a mapping from a type's name"),
        ("a: [", ""),
        (
            yaml.safe_dump(
                {
                    "networkTopologyDiscovery": [
                        {"source": "label", "enabled": True, "config": {"networkTopologyTypes": {"net": [{"nodeLabel": RACK}]}}}
                    ]
                }
            ),
            f"must end with {HOST}",
        ),
    ],
)
def test_a_configuration_that_cannot_be_read_is_refused(world: World, text: str, said: str):
    with pytest.raises(ConfigError) as error:
        label_types(text)
    assert said in str(error.value)
    with pytest.raises(Invalid):
        world.configure(text)


def test_other_sources_that_are_switched_off_and_other_keys_are_no_fault():
    assert label_types(config(RACK, source="ufm", enabled=False)) == {}
    assert label_types("other: 1") == {}
