"""deviceshare: pods on shared cards."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from scheduler.conf import ConfError, load
from scheduler.framework.explain import Code
from scheduler.model.devices import read_share, registered, uses_of
from tests.scheduler.world import World, group, node, pod

IDS = "volcano.sh/vgpu-ids-new"


def conf(actions: str = "allocate", **arguments: Any) -> str:
    given = {f"deviceshare.{key}": value for key, value in arguments.items()} or {"deviceshare.VGPUEnable": True}
    plugins = [{"name": "gang"}, {"name": "predicates"}, {"name": "deviceshare", "arguments": given}]
    return yaml.safe_dump({"actions": actions, "tiers": [{"plugins": plugins}]})


def box(name: str, cards: int = 4, memory: int = 24576, sharers: int = 10, mode: str = "hami-core", **more: Any) -> Any:
    """A node whose cards are `<name>-0` and so on."""
    made, kind, ill = node(name, cpu=64), more.get("kind", "NVIDIA-A100"), more.get("ill", ())
    text = "".join(f"{name}-{i},{sharers},{memory},{kind},{str(i not in ill).lower()},{mode}:" for i in range(cards))
    made["metadata"]["annotations"] = {"volcano.sh/node-vgpu-register": text}
    offered = {"number": cards * sharers, "memory": cards * memory, "cores": cards * 100}
    made["status"]["allocatable"] |= {f"volcano.sh/vgpu-{key}": str(value) for key, value in offered.items()}
    return made


def asks(*containers: dict[str, int], name: str = "a", index: int = 0, labels: Any = None, **annotations: str) -> Any:
    """A pod of which each container asks for vGPU amounts."""
    made = pod(name, "w", index, {})
    short = {"percent": "memory-percentage"}
    made["spec"]["containers"] = [
        {
            "name": f"c{i}",
            "resources": {"limits": {"cpu": "1", **{f"volcano.sh/vgpu-{short.get(k, k)}": str(v) for k, v in each.items()}}},
        }
        for i, each in enumerate(containers)
    ]
    made["metadata"]["labels"] = labels or {}
    made["metadata"]["annotations"] |= {f"volcano.sh/vgpu-{key.replace('_', '-')}": value for key, value in annotations.items()}
    return made


def many(count: int, *containers: dict[str, int], least: int = 1, name: str = "a", **more: Any) -> list[Any]:
    return [group(name, least), *(asks(*containers, name=name, index=i, **more) for i in range(count))]


class Shared(World):
    """A world that also knows what each pod was given."""

    def given(self) -> dict[str, list[tuple[str, int, int]]]:
        found = {}
        for task in self.offline.cache.tasks.values():
            if task.node >= 0:
                found[task.name] = [(use.card, use.memory, use.cores) for use in task.cards]
        return found

    def cards(self) -> dict[str, tuple[int, int, int]]:
        """Pods, MiB and percent of cores by card."""
        total: defaultdict[str, list[int]] = defaultdict(lambda: [0, 0, 0])
        for uses in self.given().values():
            for card, memory, cores in uses:
                for i, amount in enumerate((1, memory, cores)):
                    total[card][i] += amount
        return {card: (pods, memory, cores) for card, (pods, memory, cores) in total.items()}


def run(*parts: Any, cycles: int = 1, text: str = "") -> Shared:
    world = Shared(*parts, conf=text or conf())
    world.cycle(cycles)
    return world


def test_two_halves_fill_a_card_and_the_ninth_waits():
    world = run(box("g"), many(9, {"number": 1, "cores": 50, "memory": 4544}), cycles=2)
    assert world.cards() == {f"g-{i}": (2, 9088, 100) for i in range(4)}
    assert world.started() == {"a": 8}


def test_containers_of_one_pod_are_summed():
    world = run(box("g", 1, 10240), many(1, {"number": 1, "memory": 6144}, {"number": 1, "memory": 6144}))
    assert world.started() == {}
    fits = run(box("g", 2, 10240), many(1, {"number": 1, "memory": 6144}, {"number": 1, "memory": 6144}))
    assert fits.given() == {"a-w-0": [("g-1", 6144, 0), ("g-0", 6144, 0)]}


def test_cards_that_have_room_only_together_take_nobody_and_the_verdict_says_so():
    world = run(box("g", 2, 10000), many(3, {"number": 1, "memory": 6000}), cycles=2)
    assert world.started() == {"a": 2}
    waits = run(box("g", 2, 10000), many(3, {"number": 1, "memory": 6000}, least=3))
    assert (waits.verdicts["a"].placeable, waits.verdicts["a"].rejected) == (2, {"gpu_cards": 1})
    assert waits.verdicts["a"].code in (Code.GANG_INCOMPLETE, Code.NODES_REFUSED)


def test_the_bind_tells_the_device_plugin():
    world = run(box("g", 2), many(1, {"number": 2, "memory": 1000, "cores": 30}, {"memory": 500}))
    marks = world.cycles[0].binds[0].annotations
    assert marks[IDS] == "g-1,NVIDIA,1000,30:g-0,NVIDIA,1000,30:;g-1,NVIDIA,500,0:"
    assert marks["volcano.sh/devices-to-allocate"] == marks[IDS]
    assert (marks["volcano.sh/vgpu-node"], marks["volcano.sh/bind-phase"]) == ("g", "allocating")
    assert marks["volcano.sh/vgpu-time"] == marks["volcano.sh/bind-time"] == "1000000"


def test_what_was_given_is_read_back_from_the_pod():
    world = run(box("g", 1, 1000), many(2, {"number": 1, "memory": 600}), cycles=3)
    assert world.started() == {"a": 1}
    held = asks({"number": 1, "memory": 600}, name="b")
    held["spec"]["nodeName"], held["status"]["phase"] = "g", "Running"
    held["metadata"]["annotations"][IDS] = "g-0,NVIDIA,600,0:"
    assert run(box("g", 1, 1000), held, many(1, {"number": 1, "memory": 600})).started() == {}


@pytest.mark.parametrize(
    ("ask", "memory"),
    [
        ({"number": 1}, 24576),
        ({"number": 1, "percent": 30}, 7372),
        ({"number": 1, "memory": 9, "percent": 50}, 12288),
        ({"memory": 7}, 7),
    ],
)
def test_memory_is_all_of_the_card_unless_an_amount_or_a_percentage_is_given(ask: dict[str, int], memory: int):
    assert run(box("g", 1), many(1, ask)).given() == {"a-w-0": [("g-0", memory, 0)]}


def test_all_cores_need_a_card_that_nobody_uses_and_close_it():
    world = run(box("g", 2), many(1, {"number": 1, "memory": 1, "cores": 10}), many(3, {"memory": 1, "cores": 100}, name="b"))
    assert world.given()["b-w-0"] == [("g-0", 1, 100)]
    assert world.started() == {"a": 1, "b": 1}
    later = run(box("g", 1), many(1, {"memory": 1, "cores": 100}), many(1, {"memory": 1}, name="b"))
    assert later.started() == {"a": 1}


def test_so_many_pods_share_a_card_and_no_more():
    assert run(box("g", 2, sharers=3), many(9, {"memory": 1})).cards() == {"g-0": (3, 3, 0), "g-1": (3, 3, 0)}


def test_an_unhealthy_card_is_not_used():
    assert run(box("g", 2, ill=(1,)), many(1, {"memory": 1})).given() == {"a-w-0": [("g-0", 1, 0)]}
    assert run(box("g", 1, ill=(0,)), many(1, {"memory": 1})).started() == {}


@pytest.mark.parametrize(("policy", "card"), [("", "g-2"), ("binpack", "g-1"), ("spread", "g-0")])
def test_the_policy_orders_the_cards_of_a_node(policy: str, card: str):
    held = asks({"memory": 100}, name="b")
    held["spec"]["nodeName"], held["status"]["phase"] = "g", "Running"
    held["metadata"]["annotations"][IDS] = "g-1,NVIDIA,100,0:"
    world = run(box("g", 3), held, many(1, {"memory": 1}), text=conf(VGPUEnable=True, SchedulePolicy=policy))
    assert world.given()["a-w-0"] == [(card, 1, 0)]


@pytest.mark.parametrize(("policy", "where"), [("binpack", "h"), ("spread", "g")])
def test_the_policy_scores_nodes_by_the_cards_that_they_would_give(policy: str, where: str):
    held = asks({"memory": 9000}, name="b")
    held["spec"]["nodeName"], held["status"]["phase"] = "h", "Running"
    held["metadata"]["annotations"][IDS] = "h-0,NVIDIA,9000,0:"
    text = conf(VGPUEnable=True, SchedulePolicy=policy, ScheduleWeight=5)
    boxes = [box("h", 1), box("g", 1)] if policy == "spread" else [box("g", 1), box("h", 1)]
    assert run(*boxes, held, many(1, {"memory": 1}), text=text).bound == {"a-w-0": where}


@pytest.mark.parametrize(
    ("annotations", "card"),
    [
        ({"use_gpuuuid": "g-0, g-1"}, "g-1"), ({"nouse_gpuuuid": "g-2"}, "g-1"), ({"use_gpuuuid": "x"}, None),
        ({"mode": "hami-core"}, "g-2"), ({"mode": "mig"}, None),
    ],
)  # fmt: skip
def test_a_pod_may_name_cards_and_a_mode(annotations: dict[str, str], card: str | None):
    found = run(box("g", 3), many(1, {"memory": 1}, **annotations)).given()
    assert found == ({"a-w-0": [(card, 1, 0)]} if card else {})


@pytest.mark.parametrize(("key", "value", "fits"), [("use", "h100,a100", True), ("use", "T4", False), ("nouse", "a100", False)])
def test_a_pod_may_name_types_of_cards(key: str, value: str, fits: bool):
    parts = many(1, {"memory": 1})
    parts[1]["metadata"]["annotations"][f"nvidia.com/{key}-gputype"] = value
    assert bool(run(box("g", 1), parts).started()) is fits


def test_pods_of_one_group_may_be_kept_on_different_cards():
    world = run(box("g", 2), many(4, {"memory": 1}, podgroup_policy="spread"), cycles=2)
    assert sorted(use for uses in world.given().values() for use in uses) == [("g-0", 1, 0), ("g-1", 1, 0)]


def test_pods_under_one_rule_never_share_a_card():
    text = conf(VGPUEnable=True, GPUExclusiveRules=[{"team": "x"}, {"team": "y"}])
    parts = [many(2, {"memory": 1}, name="a", labels={"team": "x"}), many(2, {"memory": 1}, name="b", labels={"team": "y"})]
    world = run(box("g", 2), *parts, many(1, {"memory": 1}, name="c"), text=text)
    by_card: defaultdict[str, list[str]] = defaultdict(list)
    for name, uses in world.given().items():
        by_card[uses[0][0]].append(name[0])
    assert {card: sorted(names) for card, names in by_card.items()} == {"g-1": ["a", "b", "c"], "g-0": ["a", "b"]}


def test_a_node_without_cards_is_refused_by_what_it_lacks():
    world = run(node("n"), many(1, {"memory": 1}))
    assert world.verdicts["a"].resource.startswith("volcano.sh/vgpu")


GEOMETRIES = """
nvidia:
  knownMigGeometries:
  - models: ["A30"]
    allowedGeometries:
    - group: group1
      geometries: [{name: 1g.6gb, memory: 6144, count: 4}]
    - group: group2
      geometries: [{name: 2g.12gb, memory: 12288, count: 1}, {name: 1g.6gb, memory: 6144, count: 2}]
"""


def config(text: str = GEOMETRIES) -> Any:
    meta = {"name": "volcano-vgpu-device-config", "namespace": "kube-system"}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta, "data": {"device-config.yaml": text}}


def test_mig_gives_the_smallest_sufficient_instance_of_the_geometry_in_use():
    a30 = box("g", 1, mode="mig", kind="NVIDIA-A30")
    world = run(config(), a30, many(1, {"memory": 10000}), many(4, {"memory": 5000}, name="b"), cycles=2)
    given = sorted(use for uses in world.given().values() for use in uses)
    assert given == [("g-0[group2-0]", 12288, 0), ("g-0[group2-1]", 6144, 0), ("g-0[group2-2]", 6144, 0)]
    small = run(config(), a30, many(5, {"memory": 5000}), cycles=2)
    assert sorted(uses[0][0] for uses in small.given().values()) == [f"g-0[group1-{i}]" for i in range(4)]


def test_mig_without_a_known_geometry_is_shared_by_software():
    a30 = box("g", 1, mode="mig", kind="NVIDIA-A30")
    for configs in ([], [config("nvidia: [")]):
        assert run(*configs, a30, many(1, {"memory": 10})).given() == {"a-w-0": [("g-0", 10, 0)]}


def memory_box(name: str, memory: int, number: int, ill: str = "") -> Any:
    made = node(name, cpu=64)
    amounts = {"volcano.sh/gpu-memory": str(memory), "volcano.sh/gpu-number": str(number)}
    made["status"]["allocatable"] |= amounts
    made["status"]["capacity"] |= amounts
    made["metadata"]["annotations"] = {"volcano.sh/gpu-unhealthy-ids": ill}
    return made


def asks_gpu(count: int, resource: str, amount: int) -> list[Any]:
    limits = {"cpu": "1", f"volcano.sh/gpu-{resource}": str(amount)}
    parts = [group("a", 1), *(pod("a", "w", i, {}) for i in range(count))]
    for each in parts[1:]:
        each["spec"]["containers"] = [{"name": "c", "resources": {"limits": limits}}]
    return parts


def index(world: Shared) -> list[str]:
    return [binding.annotations["volcano.sh/gpu-index"] for cycle in world.cycles for binding in cycle.binds]


def test_gpushare_gives_the_first_card_with_so_much_memory():
    world = run(memory_box("g", 30, 3, "0"), asks_gpu(5, "memory", 4), text=conf(GPUSharingEnable=True), cycles=2)
    assert index(world) == ["1", "1", "2", "2"]


def test_gpushare_gives_whole_cards_that_nobody_holds():
    world = run(memory_box("g", 30, 5, "1"), asks_gpu(3, "number", 2), text=conf(GPUNumberEnable=True), cycles=2)
    assert index(world) == ["0,2", "3,4"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"VGPUEnable": True, "GPUNumberEnable": True}, "shared in one way"),
        ({"VGPUEnable": True, "AscendHAMiVNPUEnable": True}, "does not have it yet"),
        ({"VGPUEnable": True, "SchedulePolicy": "best"}, "must be binpack or spread"),
        ({"VGPUEnable": True, "GPUExclusiveRules": {"a": "b"}}, "a list of label maps"),
    ],
)
def test_arguments_that_make_no_sense_are_refused(arguments: dict[str, Any], message: str):
    with pytest.raises(ConfError, match=message):
        load(conf(**arguments))


def test_a_register_that_cannot_be_read_is_not_used_and_stops_nobody():
    bad = box("g", 1)
    bad["metadata"]["annotations"]["volcano.sh/node-vgpu-register"] = "g-0,ten,1,NVIDIA,true,hami-core:"
    with pytest.raises(ValueError, match="is no card"):
        registered(bad)
    world = run(bad, box("h", 1), many(1, {"memory": 1}))
    assert world.started() == {"a": 1}


def test_amounts_that_make_no_sense_set_the_pod_aside():
    bad = asks({"memory": -5})
    with pytest.raises(ValueError, match="vgpu-memory"):
        read_share(bad)
    assert uses_of({"metadata": {"annotations": {IDS: "a,b,c,d:;x"}}, "spec": {}}) == ()


wishes = st.lists(
    st.tuples(
        st.integers(1, 4), st.integers(1, 2), st.sampled_from([0, 3000, 9000]), st.sampled_from([0, 30, 100]), st.integers(1, 3)
    ),
    min_size=1,
    max_size=6,
)


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(st.integers(1, 3), min_size=1, max_size=3), wishes, st.sampled_from(["", "binpack", "spread"]))
def test_no_card_is_ever_given_more_than_it_has(fleet: list[int], specs: Any, policy: str) -> None:
    parts = [
        many(
            count,
            {"number": number, "cores": cores, **({"memory": memory} if memory else {})},
            least=min(least, count),
            name=f"j{i}",
        )
        for i, (count, number, memory, cores, least) in enumerate(specs)
    ]
    text = conf(VGPUEnable=True, SchedulePolicy=policy, ScheduleWeight=1)
    world = run(*(box(f"g{i}", cards, 10000, 3) for i, cards in enumerate(fleet)), *parts, text=text)
    for _ in range(3):
        for pods, memory, cores in world.cards().values():
            assert pods <= 3
            assert memory <= 10000
            assert cores <= 100
        for name, uses in world.given().items():
            assert uses, f"{name} holds no card"
        world.cycle()


def test_a_queue_shows_what_its_pods_were_given_of_cards() -> None:
    world = run(box("g", 4, memory=1000), many(1, {"number": 1, "percent": 30, "cores": 25}), many(1, {"number": 2}, name="b"))
    world.cycle()
    shown: dict[str, str] = {}
    for cycle in world.cycles:
        for write in cycle.writes.statuses:
            if write.name == "default" and "allocated" in write.status:
                shown |= write.status["allocated"]
    # 30 % of a card of 1000 MiB, and two whole ones; cores as asked.
    assert (shown["volcano.sh/vgpu-memory"], shown["volcano.sh/vgpu-cores"]) == ("2300", "25")
