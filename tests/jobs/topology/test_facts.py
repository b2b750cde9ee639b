"""What fits where, read from rows: as the core says it, in a constant number of queries, for what the reader may see."""

from __future__ import annotations

import pytest

from cluster import capacity
from cluster.models import HyperNode, Node
from jobs.choices import GroupPhase, JobPhase, PodPhase
from jobs.models import Pod, Task
from jobs.topology import stock
from jobs.topology.facts import facts
from tests import factories, fleet_rows
from tests.factories import GPU
from tests.scheduler.topology.world import domain

pytestmark = pytest.mark.django_db(databases="__all__")


class User:
    is_authenticated = is_active = True
    is_staff = False


H100, A100 = factories.MODELS[:2]
ROOM = {"cpu": 64_000, "memory": 512 << 30, "pods": 110}


def fleet(**left):
    """Nodes in racks r0 (a, b) and r1 (c, d) of spine s0, each with 8 GPUs."""
    rows = [
        factories.node(name, rack=rack, spine="s0", gpu_model=H100, allocatable=dict(ROOM) | left.get(name, {}))
        for name, rack in (("a", "r0"), ("b", "r0"), ("c", "r1"), ("d", "r1"))
    ]
    factories.save(rows)


def pod(node: str, gpus, cpu: int = 1000, **values) -> Pod:
    of = factories.job("holder", phase=JobPhase.RUNNING)
    requests = {GPU: 1000 * len(gpus), "cpu": cpu, "memory": 1 << 30}
    (made,) = factories.pods(of, 1, node=node, gpus=list(gpus), requests=requests, **values)
    made.name = f"{made.name}-{node}-{len(gpus)}-{made.uid[:4]}"
    factories.save([made])
    return made


def job(phase: str, gpus: int, model: str = H100, replicas: int = 2, cpu: int = 1000, **values):
    group = GroupPhase.RUNNING if phase == JobPhase.RUNNING else GroupPhase.PENDING
    made = factories.job(phase=phase, group_phase=group, gpus=gpus * replicas, gpu_model=model, **values)
    factories.save([made])
    requests = {GPU: gpus * 1000, "cpu": cpu}
    Task.objects.create(job=made, name="worker", position=0, replicas=replicas, min_available=replicas, requests=requests)
    return made


def by_name(found):
    return {machine.name: machine for machine in found}


def test_what_pods_hold_is_taken_from_their_node():
    fleet()
    pod("a", [0, 3], cpu=10_000)
    pod("a", [5], cpu=2000)
    pod("b", [1], phase=PodPhase.SUCCEEDED)
    found = by_name(stock.machines(User()))
    assert (found["a"].free, found["b"].free) == (0b11010110, 0xFF)
    left = found["a"].left()
    assert (left.free, left.left["cpu"], left.left["pods"], left.left["memory"]) == (5, 52_000, 108, 510 << 30)


def test_a_card_of_which_a_part_is_held_is_not_free_nor_are_gpus_that_are_promised():
    fleet()
    Node.objects.filter(name="a").update(gpu_cards=[["GPU-x", 1024], ["GPU-y", 1024]], gpu_unhealthy=[7])
    pod("a", [], cards=[["GPU-y", 512, 0]])
    waits = pod("b", [0, 1])
    Pod.objects.filter(pk=waits.pk).update(node="", nominated="b", gpus=[], phase=PodPhase.PENDING)
    found = by_name(stock.machines(User()))
    assert found["a"].free == 0b01111101
    assert found["b"].free == 0b11111100


def test_the_summary_names_the_largest_gangs_and_the_gpus_of_no_use():
    fleet(d={"cpu": 3000})
    pod("a", [0, 1, 2])
    Node.objects.filter(name="c").update(cordoned=True)
    job(JobPhase.PENDING, 4)
    found = capacity.summary(User())
    assert found.waiting
    assert (found.free, found.unusable) == (29, 9)
    assert found.causes == {"cordoned": 8, "leftover": 1}
    assert [(fit.label, fit.gpus, fit.domain, fit.nodes, fit.nodes_domain) for fit in found.tiers] == [
        ("node", 8, "b", 1, "b"), ("rack", 13, "r0", 1, "r0"), ("spine", 16, "s0", 1, "s0"), ("fleet", 16, "", 1, ""),
    ]  # fmt: skip


def test_nothing_that_waits_is_judged_by_what_is_usual():
    fleet()
    pod("a", [0])
    job(JobPhase.RUNNING, 2)
    found = capacity.summary(User())
    assert (found.waiting, found.unusable, found.causes) == (False, 1, {"leftover": 1})


def test_a_running_gang_whose_job_is_told_pending_does_not_wait():
    fleet()
    made = job(JobPhase.PENDING, 8)
    type(made).objects.filter(pk=made.pk).update(group_phase=GroupPhase.RUNNING)
    assert not capacity.summary(User()).waiting


def hypernode(obj, version=1):
    spec = obj["spec"]
    return HyperNode(
        uid=obj["metadata"]["name"], name=obj["metadata"]["name"], resource_version=version, created_at=factories.now(),
        tier=spec["tier"], tier_name=spec["tierName"], members=spec["members"],
    )  # fmt: skip


def test_hypernodes_are_the_tiers_where_there_are_any_and_contradictions_stand_aside():
    fleet()
    matching = {"type": "Node", "selector": {"regexMatch": {"pattern": "[bd]"}}}
    factories.save([
        hypernode(domain("left", 1, ["a", "c"], name_of_tier="leaf")),
        hypernode(domain("all", 2, domains=["left"], members=[matching])),
        hypernode(domain("bad", 2, domains=["left"])),
    ])  # fmt: skip
    found = facts(User()).network
    assert {d.name: d.rows.tolist() for d in found.rooms()} == {"left": [0, 2], "all": [0, 1, 2, 3]}
    assert (found.tiers, found.by_labels, list(found.aside)) == ({1: "leaf", 2: "", 3: "fleet"}, False, ["bad"])


def test_hypernodes_may_select_by_label_and_follow_it():
    fleet()
    label = {"type": "Node", "selector": {"labelMatch": {"matchLabels": {"zone": "x"}}}}
    factories.save([hypernode(domain("x", 1, members=[label]))])
    Node.objects.filter(name="d").update(labels={"zone": "x"})
    assert [d.rows.tolist() for d in facts(User()).network.rooms()] == [[3]]
    Node.objects.filter(name="a").update(labels={"zone": "x"})
    assert [d.rows.tolist() for d in facts(User()).network.rooms()] == [[0, 3]]


def test_without_hypernodes_racks_and_spines_of_labels_are_shown():
    fleet()
    found = facts(User()).network
    assert found.by_labels
    assert [(d.name, d.tier, d.rows.tolist()) for d in found.rooms()] == [
        ("r0", 1, [0, 1]),
        ("r1", 1, [2, 3]),
        ("s0", 2, [0, 1, 2, 3]),
    ]


def test_racks_of_one_name_on_two_spines_are_two():
    factories.save(
        [factories.node(f"n{i}", rack="r", spine=f"s{i % 2}") for i in range(4)] + [factories.node("lone", rack="", spine="s1")]
    )
    found = facts(User()).network
    assert [(d.name, len(d.rows)) for d in found.rooms()] == [("s0/r", 2), ("s1/r", 2), ("s0", 2), ("s1", 3)]


def test_an_empty_cluster_has_room_for_nothing():
    found = capacity.summary(User())
    assert (found.free, found.unusable, [(fit.label, fit.gpus) for fit in found.tiers]) == (0, 0, [("node", 0), ("fleet", 0)])


def test_more_nodes_and_pods_take_no_more_queries(django_assert_num_queries):
    fleet_rows.large_fleet(20)
    fleet_rows.occupy()
    with django_assert_num_queries(4):
        capacity.summary(User())
    factories.save([factories.node(f"more-{i}") for i in range(250)])
    with django_assert_num_queries(4):
        capacity.summary(User())


def test_nobody_sees_what_the_policy_hides():
    class Nobody:
        is_authenticated = is_active = False

    fleet()
    assert facts(Nobody()).machines == []
