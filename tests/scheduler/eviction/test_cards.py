"""Room on cards: who is evicted is whoever frees just the cards that are asked."""

from __future__ import annotations

from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from scheduler.framework.explain import Code
from tests.scheduler.eviction.world import HIGH, LOW, MID, Busy, job
from tests.scheduler.plugins.test_deviceshare import asks, box
from tests.scheduler.world import group, node, queue

SHARING = {"deviceshare.VGPUEnable": True}


def conf(action: str = "preempt", **arguments: Any) -> str:
    first = ["priority", {"name": "gang", "enablePreemptable": False, "enableReclaimable": False}, "conformance", "predicates"]
    named = [{"name": each} if isinstance(each, str) else each for each in first]
    share = {"name": "deviceshare", "arguments": {f"deviceshare.{k}": v for k, v in arguments.items()} or SHARING}
    tier = [*named, {"name": "proportion"}, share]
    return yaml.safe_dump({"actions": f"allocate, {action}", "tiers": [{"plugins": tier}]})


def sharing(name: str, *containers: dict[str, int], priority: str = LOW, queue: str = "default", **more: Any) -> list[Any]:
    """A job of one pod that shares cards."""
    return [group(name, 1, priorityClassName=priority, queue=queue), asks(*containers, name=name, **more)]


def held(name: str, on: str, cards: dict[int, int], *, cores: int = 0, priority: str = LOW, queue: str = "default") -> list[Any]:
    """The same, running: MiB by card."""
    memory = next(iter(cards.values()))
    found = sharing(name, {"number": len(cards), "memory": memory, "cores": cores}, priority=priority, queue=queue)
    found[1]["spec"]["nodeName"], found[1]["status"]["phase"] = on, "Running"
    text = "".join(f"{on}-{card},NVIDIA,{mib},{cores}:" for card, mib in cards.items())
    found[1]["metadata"]["annotations"]["volcano.sh/vgpu-ids-new"] = text
    found[0]["status"]["phase"] = "Running"
    return found


def preempted(*parts: Any, text: str = "", cycles: int = 2) -> Busy:
    return Busy(*parts, conf=text or conf()).cycle(cycles)


GIB = 1024


def test_of_two_cards_the_one_with_fewer_pods_is_freed():
    world = preempted(
        box("g", 2, 8 * GIB), held("a", "g", {0: 6 * GIB}), held("b", "g", {1: 2 * GIB}), held("c", "g", {1: 2 * GIB}),
        sharing("h", {"number": 1, "memory": 8 * GIB}, priority=HIGH),
    )  # fmt: skip
    assert world.evicted == ["a-w-0"]
    assert world.running() == {"b": 1, "c": 1, "h": 1}


def test_two_weak_pods_go_before_one_that_is_stronger():
    world = preempted(
        box("g", 2, 8 * GIB), held("a", "g", {0: 6 * GIB}, priority=MID), held("b", "g", {1: 2 * GIB}),
        held("c", "g", {1: 2 * GIB}), sharing("h", {"number": 1, "memory": 8 * GIB}, priority=HIGH),
    )  # fmt: skip
    assert sorted(world.evicted) == ["b-w-0", "c-w-0"]


def test_a_pod_on_a_card_that_is_not_needed_stays_though_it_is_the_weakest():
    world = preempted(
        box("g", 2, 8 * GIB, kind="NVIDIA-A100"), held("l", "g", {1: GIB}), held("m", "g", {0: 7 * GIB}, priority=MID),
        sharing("h", {"number": 1, "memory": 4 * GIB}, priority=HIGH, use_gpuuuid="g-0"),
    )  # fmt: skip
    assert world.evicted == ["m-w-0"]
    assert world.running() == {"l": 1, "h": 1}


def test_memory_is_there_and_cores_are_not():
    world = preempted(
        box("g", 1, 8 * GIB), held("a", "g", {0: GIB}, cores=30), held("b", "g", {0: GIB}, cores=60),
        sharing("h", {"number": 1, "memory": GIB, "cores": 50}, priority=HIGH),
    )  # fmt: skip
    assert world.evicted == ["b-w-0"]


def test_a_place_among_the_sharers_is_made():
    world = preempted(
        box("g", 1, 8 * GIB, sharers=2), held("a", "g", {0: GIB}), held("b", "g", {0: GIB}, priority=MID),
        sharing("h", {"number": 1, "memory": GIB}, priority=HIGH),
    )  # fmt: skip
    assert world.evicted == ["a-w-0"]


def test_cards_of_several_pods_are_put_together():
    world = preempted(
        box("g", 3, 8 * GIB), held("a", "g", {0: 5 * GIB, 1: 5 * GIB}), held("b", "g", {2: 5 * GIB}, priority=MID),
        sharing("h", {"number": 2, "memory": 4 * GIB}, priority=HIGH),
    )  # fmt: skip
    assert world.evicted == ["a-w-0"]
    assert len(world.offline.cache.tasks["pod-h-w-0"].cards) == 2


def test_nobody_goes_when_no_card_could_ever_be_large_enough():
    world = preempted(
        box("g", 3, 8 * GIB), *(held(f"p{i}", "g", {i: 4 * GIB}) for i in range(3)),
        sharing("h", {"number": 1, "memory": 9 * GIB}, priority=HIGH),
    )  # fmt: skip
    assert world.evicted == []
    assert world.verdicts["h"].code is Code.NO_VICTIMS
    assert world.verdicts["h"].spared == {"too_little": 3}
    assert world.verdicts["h"].rejected == {"gpu_cards": 1}


def test_a_card_is_freed_of_the_pod_that_may_not_share_it():
    text = conf(VGPUEnable=True, GPUExclusiveRules=[{"team": "red"}])
    first, second = held("a", "g", {0: GIB}), held("b", "g", {1: GIB}, priority=MID)
    for each in (first, second):
        each[1]["metadata"]["labels"] = {"team": "red"}
    world = preempted(
        box("g", 2, 8 * GIB), first, second,
        sharing("h", {"number": 1, "memory": GIB}, priority=HIGH, labels={"team": "red"}), text=text,
    )  # fmt: skip
    assert world.evicted == ["a-w-0"]


def test_two_whole_gpus_come_from_one_pod_rather_than_two():
    world = Busy(
        node("n0", cpu=16, gpu=4), job("a", 1, cpu=1, gpu=1, priority=LOW), job("b", 1, cpu=1, gpu=1, priority=LOW),
        job("c", 1, cpu=1, gpu=2, priority=LOW), conf=conf(),
    ).cycle(3)  # fmt: skip
    world.add(job("h", 1, cpu=1, gpu=2, priority=HIGH)).cycle(2)
    assert world.evicted == ["c-w-0"]
    assert world.running() == {"a": 1, "b": 1, "h": 1}


def test_an_unhealthy_gpu_that_comes_free_is_no_room():
    ill = node("n0", cpu=16, gpu=2)
    first, second = job("a", 1, cpu=1, gpu=1, priority=LOW), job("b", 1, cpu=1, gpu=1, priority=LOW)
    world = Busy(ill, first, second, conf=conf()).cycle(3)
    broken = next(task for task in world.offline.cache.tasks.values() if 0 in task.gpus).name
    sick = {**ill, "metadata": {**ill["metadata"], "annotations": {"volcano.sh/gpu-unhealthy-ids": "0"}}}
    world.add(sick, job("h", 1, cpu=1, gpu=1, priority=HIGH)).cycle(2)
    assert [name for name in ("a-w-0", "b-w-0") if name != broken] == world.evicted


@pytest.mark.parametrize(
    ("switch", "ask", "gone"),
    [
        ("GPUSharingEnable", {"volcano.sh/gpu-memory": "6"}, ["b-w-0"]),
        ("GPUNumberEnable", {"volcano.sh/gpu-number": "1"}, ["b-w-0"]),
    ],
)
def test_gpushare_frees_one_card(switch, ask, gone):
    made = node("n0", cpu=16)
    for part in ("capacity", "allocatable"):
        made["status"][part] = made["status"][part] | {"volcano.sh/gpu-memory": "16", "volcano.sh/gpu-number": "2"}
    old = [*job("a", 1, priority=MID), *job("b", 1, priority=LOW)]
    for index, each in enumerate((old[1], old[3])):
        limits = {"volcano.sh/gpu-memory": "4"} if "memory" in str(ask) else {"volcano.sh/gpu-number": "1"}
        each["spec"]["containers"][0]["resources"] = {"limits": {"cpu": "1", **limits}}
        each["spec"]["nodeName"], each["status"]["phase"] = "n0", "Running"
        each["metadata"]["annotations"]["volcano.sh/gpu-index"] = str(index)
    new = job("h", 1, priority=HIGH)
    new[1]["spec"]["containers"][0]["resources"] = {"limits": {"cpu": "1", **ask}}
    world = preempted(made, old, new, text=conf(**{switch: True}))
    assert world.evicted == gone


def test_a_queue_reclaims_a_card():
    world = preempted(
        [queue("a"), queue("b")], box("g", 2, 8 * GIB), held("y", "g", {1: 3 * GIB}, queue="a"),
        held("z", "g", {1: 3 * GIB}, queue="a"), held("x", "g", {0: 6 * GIB}, queue="a"),
        sharing("h", {"number": 1, "memory": 7 * GIB}, queue="b"), text=conf("reclaim"), cycles=3,
    )  # fmt: skip
    assert world.evicted == ["x-w-0"]
    assert world.running()["h"] == 1


MEMORY = 8


@st.composite
def crowded(draw):
    """Pods on the cards of one node, as `(card → MiB, percent of cores, priority)`, and what a stronger pod asks."""
    count, sharers = draw(st.integers(1, 3)), draw(st.integers(1, 4))
    free = {card: [MEMORY, 100, sharers] for card in range(count)}
    pods = []
    for _ in range(draw(st.integers(1, 7))):
        cards = draw(st.lists(st.integers(0, count - 1), min_size=1, max_size=2, unique=True))
        mib, cores = draw(st.integers(1, 6)), draw(st.sampled_from([0, 20, 50]))
        if all(free[card][0] >= mib and free[card][1] >= cores and free[card][2] for card in cards):
            for card in cards:
                free[card] = [free[card][0] - mib, free[card][1] - cores, free[card][2] - 1]
            pods.append((dict.fromkeys(cards, mib), cores, draw(st.sampled_from([LOW, MID]))))
    ask = {
        "number": draw(st.integers(1, count)),
        "memory": draw(st.integers(1, MEMORY)),
        "cores": draw(st.sampled_from([0, 30, 100])),
    }
    return count, sharers, pods, ask


def has_room(count: int, sharers: int, pods: list, ask: dict[str, int]) -> bool:
    """Whether so many cards each take what is asked beside these pods, worked out anew."""
    fit = 0
    for card in range(count):
        on = [pod for pod in pods if card in pod[0]]
        memory = sum(pod[0][card] for pod in on) + ask["memory"] <= MEMORY
        cores = sum(pod[1] for pod in on)
        takes = cores + ask["cores"] <= 100 and not (ask["cores"] == 100 and on) and not (cores == 100 and not ask["cores"])
        fit += memory and takes and len(on) < sharers
    return fit >= ask["number"]


@settings(deadline=None, max_examples=60)
@given(crowded())
def test_the_victims_free_just_the_cards_that_are_asked(made):
    count, sharers, pods, ask = made
    old = [held(f"p{i}", "g", cards, cores=cores, priority=priority) for i, (cards, cores, priority) in enumerate(pods)]
    world = preempted(box("g", count, MEMORY, sharers), *old, sharing("h", ask, priority=HIGH), cycles=1)
    gone = {int(name[1:].partition("-")[0]) for name in world.evicted}
    left = [pod for i, pod in enumerate(pods) if i not in gone]
    assert has_room(count, sharers, left, ask) or not gone
    assert has_room(count, sharers, pods, ask) <= (not gone)
    for spared in gone:
        assert not has_room(count, sharers, [*left, pods[spared]], ask)
    if not gone and not has_room(count, sharers, pods, ask):
        assert not has_room(count, sharers, [], ask)
