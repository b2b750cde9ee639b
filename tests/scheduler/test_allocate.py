"""Clusters in, binds and verdicts out."""

import pytest

from cluster.kinds import NODE
from scheduler.framework.explain import Code, Stage
from tests.scheduler.world import BARE, CONF, World, gang, group, node, pod, queue


def nodes(count: int, **amounts):
    return [node(f"n{i}", **amounts) for i in range(count)]


def test_a_gang_that_fits_is_bound_whole():
    world = World(nodes(2), gang("a", 4, cpu=4)).cycle()
    assert world.started() == {"a": 4}
    assert sorted(world.bound.values()) == ["n0", "n0", "n1", "n1"]


def test_a_gang_that_does_not_fit_leaves_nothing_behind():
    world = World(nodes(2), gang("a", 5, cpu=4)).cycle()
    assert world.started() == {}
    assert not world.offline.cache.nodes.used.any()
    verdict = world.verdicts["a"]
    assert (verdict.stage, verdict.code) == (Stage.GANG, Code.GANG_INCOMPLETE)
    assert (verdict.needed, verdict.placeable, verdict.resource) == (5, 4, "cpu")
    assert (verdict.asked, verdict.free) == (4000, 0)


def test_two_gangs_that_each_need_the_whole_cluster_take_turns():
    world = World(nodes(10, cpu=2), gang("a", 10, cpu=2, at=1), gang("b", 10, cpu=2, at=2), conf=BARE).cycle(3)
    assert world.started() == {"a": 10}


def test_an_unfit_gang_does_not_block_a_smaller_one():
    world = World(nodes(3, cpu=40), nodes(0), gang("big", 6, 4, cpu=35), gang("small", 6, 4, cpu=1)).cycle(2)
    assert world.started() == {"small": 6}
    verdict = world.verdicts["big"]
    assert (verdict.needed, verdict.placeable) == (4, 3)


def test_tasks_beyond_the_minimum_follow_one_by_one():
    world = World(nodes(1), gang("a", 6, 2, cpu=2)).cycle()
    assert world.started() == {"a": 4}
    assert world.verdicts.get("a") is None


def test_a_role_minimum_holds_the_gang():
    parts = [
        group("a", 3, minTaskMember={"master": 1, "worker": 2}),
        pod("a", "master", 0, {"cpu": 9}),
        *[pod("a", "worker", i, {"cpu": 1}) for i in range(4)],
    ]
    world = World(nodes(1, cpu=8), node("big", cpu=9, labels={"x": "y"}), parts, gang("z", 1, cpu=9, at=0)).cycle(2)
    assert world.started() == {"z": 1}


def test_a_pod_larger_than_any_node_is_said_so_at_once_and_charged_to_nobody():
    conf = CONF.replace("- name: drf", "- name: overcommit\n  - name: drf")
    large = gang("large", 1, cpu=12, at=1, minResources={"cpu": "12"})
    small = gang("small", 2, cpu=8, at=2, minResources={"cpu": "16"})
    world = World(nodes(2), large, small, conf=conf).cycle()
    assert world.verdicts["large"].code is Code.POD_TOO_LARGE
    assert (world.verdicts["large"].asked, world.verdicts["large"].limit) == (12_000, 8_000)
    assert world.started() == {"small": 2}


def test_pods_that_do_not_exist_yet_are_known_to_be_too_large_by_their_sum():
    conf = CONF.replace("- name: drf", "- name: overcommit\n  - name: drf")
    large = group("large", 2, minResources={"cpu": "17", "memory": "1Gi"}, at=1)
    strange = group("strange", 1, minResources={"cpu": "1", "nvidia.com/v100": "4"}, at=2)
    fits = group("fits", 2, minResources={"cpu": "16"}, at=3)
    world = World(nodes(2), large, strange, fits, conf=conf).cycle()
    assert world.verdicts["large"].code is Code.POD_TOO_LARGE
    assert (world.verdicts["large"].asked, world.verdicts["large"].limit) == (8_500, 8_000)
    assert world.verdicts["strange"].resource == "nvidia.com/v100"
    assert [world.phase(name) for name in ("large", "strange", "fits")] == ["Pending", "Pending", "Inqueue"]


def test_a_job_that_was_too_large_goes_on_when_a_large_node_comes():
    world = World(nodes(1), gang("large", 1, cpu=12)).cycle()
    assert world.started() == {}
    world.offline._modify(NODE, node("big", cpu=16))
    assert world.cycle().started() == {"large": 1}


def test_a_job_in_an_unknown_queue_is_told_so():
    world = World(nodes(1), gang("a", 1, cpu=1, queue="nowhere")).cycle()
    assert world.verdicts["a"].code is Code.QUEUE_MISSING
    assert world.started() == {}


def test_too_few_pods_are_a_verdict():
    world = World(nodes(1), group("a", 3), pod("a", "w", 0, {"cpu": 1}), conf=BARE).cycle()
    assert "a" not in world.verdicts  # the others may just be being made
    world.offline.now += 5
    verdict = world.cycle().verdicts["a"]
    assert (verdict.code, verdict.needed, verdict.placeable) == (Code.GANG_TOO_FEW_PODS, 3, 1)


def test_a_job_that_ended_badly_does_not_wait_for_anything():
    parts = gang("a", 2, cpu=1)
    for made, phase in zip(parts[1:], ("Succeeded", "Failed"), strict=True):
        made["spec"]["nodeName"], made["status"]["phase"] = "n0", phase
    parts[0]["status"]["phase"] = "Running"
    world = World(nodes(1), parts).cycle(2)
    assert world.verdicts.get("a") is None
    assert world.phase("a") == "Completed"


def test_a_gated_pod_waits_with_its_reason():
    world = World(nodes(1), gang("a", 1, cpu=1, pod_spec={"schedulingGates": [{"name": "x"}]}), conf=BARE).cycle()
    assert world.verdicts["a"].code is Code.GATED
    assert world.started() == {}


def test_nodes_are_counted_by_the_cause_that_refuses_them():
    fleet = [node("a", labels={"pool": "x"}, cpu=2), node("b"), node("c")]
    fleet[2]["spec"]["unschedulable"] = True
    world = World(fleet, gang("j", 1, cpu=4, pod_spec={"nodeSelector": {"pool": "x"}})).cycle()
    verdict = world.verdicts["j"]
    assert verdict.nodes == 3
    assert sum(verdict.rejected.values()) == 3
    assert verdict.rejected["insufficient:cpu"] == 1


def test_no_nodes_at_all():
    assert World(gang("a", 1, cpu=1)).cycle().verdicts["a"].code is Code.NODES_NONE


def test_pods_that_ask_nothing_are_placed_by_backfill_with_their_gang():
    parts = [group("mix", 3), pod("mix", "r", 0, {"cpu": 1}), pod("mix", "r", 1, {"cpu": 1}), pod("mix", "be", 0, {})]
    assert World(nodes(1), parts).cycle().started() == {"mix": 3}


def test_pods_that_ask_nothing_do_not_start_without_their_gang():
    parts = [group("mix", 3), pod("mix", "r", 0, {"cpu": 9}), pod("mix", "be", 0, {}), pod("mix", "be", 1, {})]
    assert World(nodes(1), parts).cycle(2).started() == {}


def test_higher_priority_goes_first():
    classes = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": "high"}, "value": 100}
    world = World(nodes(1), classes, gang("low", 1, cpu=8, at=1), gang("up", 1, cpu=8, at=2, priorityClassName="high")).cycle()
    assert world.started() == {"up": 1}


def test_a_closed_queue_admits_nothing():
    closed = queue("night")
    closed["status"]["state"] = "Closed"
    world = World(nodes(1), closed, gang("a", 1, cpu=1, queue="night", minResources={"cpu": "1"})).cycle()
    assert world.started() == {}
    assert world.phase("a") == "Pending"
    assert world.verdicts["a"].queue == "night"


def test_a_queue_stays_below_its_capability():
    world = World(nodes(4), queue("q", capability={"cpu": "10"}), gang("a", 20, 1, cpu=1, queue="q")).cycle(3)
    assert world.started() == {"a": 10}


def test_whole_gpus_have_indices_and_unhealthy_ones_are_left_out():
    box = node("g", cpu=64, gpu=4)
    box["metadata"]["annotations"] = {"volcano.sh/gpu-unhealthy-ids": "1"}
    world = World(box, gang("a", 2, 1, cpu=1, gpu=2)).cycle()
    assert world.gpus == {"a-w-0": "0,2"}
    world.cycle()
    assert world.started() == {"a": 1}
    assert world.offline.cache.nodes.pipelined.sum() == 0


def test_gpus_that_a_running_pod_holds_are_not_given_again():
    holder = pod("old", "w", 0, {"gpu": 2, "cpu": 1}, nodeName="g")
    holder["metadata"]["annotations"]["basalt.dev/gpu-indices"] = "0,2"
    holder["status"]["phase"] = "Running"
    world = World(node("g", gpu=4), holder, gang("a", 1, cpu=1, gpu=2)).cycle()
    assert world.gpus == {"a-w-0": "1,3"}


def test_pods_of_other_schedulers_use_their_node():
    other = pod("x", "w", 0, {"cpu": 6}, nodeName="n0")
    other["spec"]["schedulerName"] = "default-scheduler"
    assert World(nodes(1), other, gang("a", 1, cpu=4)).cycle().started() == {}


def test_a_host_port_is_given_once_a_node():
    spec = {"containers": [{"name": "c", "ports": [{"hostPort": 80}], "resources": {"requests": {"cpu": "1"}}}]}
    world = World(nodes(2), gang("a", 3, 1, pod_spec=spec)).cycle()
    assert sorted(world.bound.values()) == ["n0", "n1"]


def test_pods_that_avoid_each_other_are_placed_one_by_one():
    term = {"labelSelector": {"matchLabels": {"app": "x"}}, "topologyKey": "kubernetes.io/hostname"}
    spec = {"affinity": {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}}
    parts = gang("a", 4, 3, cpu=1, pod_spec=spec)
    for made in parts[1:]:
        made["metadata"]["labels"] = {"app": "x"}
    world = World(nodes(3), parts).cycle()
    assert sorted(world.bound.values()) == ["n0", "n1", "n2"]


def test_what_is_being_released_is_reserved_and_bound_once_it_is_free():
    leaving = pod("old", "w", 0, {"cpu": 8}, nodeName="n0")
    leaving["status"]["phase"] = "Running"
    leaving["metadata"]["deletionTimestamp"] = "2030-01-01T00:00:00Z"
    world = World(nodes(1), leaving, gang("a", 1, cpu=8, at=1), gang("b", 1, cpu=8, at=2), conf=BARE).cycle()
    assert world.started() == {}
    assert world.verdicts["a"].code is Code.RELEASING
    assert world.verdicts["b"].code is not Code.RELEASING
    assert not world.offline.cache.nodes.pipelined.any()
    world.offline.cache.pods.drop_pod("pod-old-w-0")
    assert world.cycle().started() == {"a": 1}


@pytest.mark.parametrize("actions", ["allocate", "allocate, backfill"])
def test_without_enqueue_allocate_admits(actions):
    world = World(nodes(1), gang("a", 1, cpu=1), conf=BARE.replace("allocate, backfill", actions)).cycle()
    assert world.started() == {"a": 1}


def test_equal_clusters_are_scheduled_equally():
    parts = [nodes(7), *[gang(f"j{i}", 3 + i % 4, 2, cpu=1 + i % 3, at=i) for i in range(12)]]
    assert World(*parts).cycle(2).bound == World(*parts).cycle(2).bound
