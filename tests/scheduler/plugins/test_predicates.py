"""predicates: which check refuses which node."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cluster.kinds import CLAIM
from cluster.objects import matches_node, untolerated
from scheduler.framework.explain import Code, Stage
from scheduler.framework.plugin import Event
from scheduler.model.tasks import TaskStatus
from tests.scheduler.plugins.world import World, block, verdicts_by_check


def refused(world: World, spec: dict[str, Any] | None = None, **arguments: Any) -> dict[str, list[int]]:
    given = {f"predicate.{key}Enable": value for key, value in arguments.items()}
    cls = world.cls({"cpu": 1}, spec)
    return verdicts_by_check(world.session(("predicates", given)), cls, block(world))


def affinity(*expressions: dict[str, Any], fields: list[dict[str, Any]] | None = None) -> dict[str, Any]:
    term = {"matchExpressions": list(expressions), "matchFields": fields or []}
    return {"affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]}}}}


def test_a_node_takes_only_as_many_pods_as_it_says() -> None:
    world = World()
    full, roomy, silent = (
        world.node("full", cpu=9, pods=1),
        world.node("roomy", cpu=9, pods=2),
        world.node("silent", cpu=9, pods=0),
    )
    for row in (full, roomy):
        world.task(None, world.cls({}), node=row)
    assert refused(world) == {"pod_count": [full, silent]}


def test_a_cordoned_node_takes_only_who_tolerates_it() -> None:
    world = World()
    world.node("open", cpu=9)
    shut = world.node("shut", cpu=9, unschedulable=True)
    assert refused(world) == {"cordoned": [shut]}
    toleration = {"key": "node.kubernetes.io/unschedulable", "operator": "Exists", "effect": "NoSchedule"}
    assert refused(world, {"tolerations": [toleration]}) == {}


def test_selector_and_affinity_are_told_apart() -> None:
    world = World()
    rows = [world.node(f"n{i}", cpu=9, labels={"model": model, "gen": str(i)}) for i, model in enumerate(["T4", "V100", "V100"])]
    assert refused(world, {"nodeSelector": {"model": "V100"}}) == {"selector": [rows[0]]}
    newer = affinity({"key": "gen", "operator": "Gt", "values": ["1"]})
    assert refused(world, newer) == {"affinity": rows[:2]}
    by_name = affinity(fields=[{"key": "metadata.name", "operator": "In", "values": ["n1"]}])
    assert refused(world, by_name) == {"affinity": [rows[0], rows[2]]}
    assert refused(world, affinity()) == {"affinity": rows}, "an empty term fits no node"
    assert refused(world, newer, NodeAffinity=False) == {}


def test_hard_taints_refuse_and_those_of_nodes_that_are_down_count_apart() -> None:
    world = World()
    gpu = world.node("gpu", cpu=9, taints=[{"key": "gpu", "value": "yes", "effect": "NoSchedule"}])
    lost = world.node("lost", cpu=9, taints=[{"key": "node.kubernetes.io/unreachable", "effect": "NoExecute"}])
    world.node("soft", cpu=9, taints=[{"key": "x", "effect": "PreferNoSchedule"}])
    down = world.node("down", cpu=9, ready=False)
    assert refused(world) == {"not_ready": [lost, down], "taint": [gpu]}
    assert refused(world, {"tolerations": [{"key": "gpu", "operator": "Exists"}]}) == {"not_ready": [lost, down]}
    assert refused(world, {"tolerations": [{"operator": "Exists"}]}) == {}
    assert refused(world, TaintToleration=False) == {}


def test_a_host_port_is_taken_once_a_node_and_address() -> None:
    world = World()
    rows = [world.node(f"n{i}", cpu=9) for i in range(3)]
    world.task(None, world.cls({}, {"ports": [{"hostPort": 80}]}), node=rows[0])
    world.task(None, world.cls({}, {"ports": [{"hostPort": 80, "hostIP": "10.0.0.1"}]}), node=rows[1])
    assert refused(world, {"ports": [{"hostPort": 80}]}) == {"ports": rows[:2]}
    assert refused(world, {"ports": [{"hostPort": 80, "hostIP": "10.0.0.2"}]}) == {"ports": [rows[0]]}
    assert refused(world, {"ports": [{"hostPort": 81}]}) == {}
    assert refused(world, {"ports": [{"hostPort": 80}]}, NodePorts=False) == {}


def test_a_missing_claim_refuses_before_any_node_is_asked() -> None:
    world = World()
    world.node("n", cpu=9)
    cls = world.cls({"cpu": 1}, {"volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": "data"}}]})
    task = world.task(world.job("j"), cls)
    answers = [check(task) for check in world.session("predicates").functions("pre_predicate")]
    assert [(answer.stage, answer.code, answer.resource) for answer in answers] == [(Stage.NODE_FIT, Code.VOLUME_MISSING, "data")]
    bound = {"metadata": {"name": "data", "namespace": "ns"}, "spec": {"volumeName": "v"}, "status": {"phase": "Bound"}}
    world.estate.storage.apply(CLAIM, bound, False)
    assert [check(task) for check in world.session("predicates").functions("pre_predicate")] == [None]


def test_anti_affinity_is_asked_of_those_concerned_and_follows_the_session() -> None:
    world = World()
    rows = [world.node(f"n{i}", cpu=9) for i in range(3)]
    term = {"labelSelector": {"matchLabels": {"app": "web"}}, "topologyKey": "kubernetes.io/hostname"}
    shy = {"affinity": {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}}
    cls, job = world.cls({"cpu": 1}, shy), world.job("j")
    first, second = (world.task(job, cls, labels={"app": "web", "index": str(i)}) for i in range(2))
    stranger = world.task(job, world.cls({"cpu": 1}), labels={"app": "db"})
    neighbour = world.task(job, world.cls({"cpu": 1}), labels={"app": "web"})
    world.task(None, world.cls({"cpu": 1}), node=rows[2], labels={"app": "web"})
    session = world.session("predicates")
    (check,) = [each for each in session.functions("task_predicate") if each.cause == "pod_affinity"]
    assert [check.applies(task) for task in (first, second, stranger, neighbour)] == [True, True, False, True]
    assert check.check(first, block(world)).tolist() == [True, True, False]
    job.move([first], TaskStatus.ALLOCATED)
    world.nodes.place([first], [rows[0]])
    session.allocated(Event(job, [first], cls.request))
    assert check.check(second, block(world)).tolist() == [False, True, False]
    assert check.check(neighbour, block(world)).tolist() == [False, True, True], "only the shy one keeps others away"
    session.deallocated(Event(job, [first], cls.request))
    assert check.check(second, block(world)).tolist() == [True, True, False]


def test_spread_constraints_are_checked_task_by_task() -> None:
    world = World()
    for i in range(3):
        world.node(f"n{i}", cpu=9)
    constraint = {
        "maxSkew": 1, "topologyKey": "kubernetes.io/hostname", "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {"matchLabels": {"app": "web"}},
    }  # fmt: skip
    cls = world.cls({"cpu": 1}, {"topologySpreadConstraints": [constraint]})
    world.task(None, cls, node=0, labels={"app": "web"})
    task = world.task(world.job("j"), cls, labels={"app": "web"})
    (check,) = [each for each in world.session("predicates").functions("task_predicate") if each.cause == "spread"]
    assert check.applies(task)
    assert check.check(task, block(world)).tolist() == [False, True, True]


_KEYS, _VALUES = st.sampled_from(["a", "b", "metadata.name"]), st.sampled_from(["1", "2", "x", ""])
_LABELS = st.dictionaries(st.sampled_from(["a", "b"]), _VALUES, max_size=2)
_EXPRESSION = st.fixed_dictionaries({
    "key": _KEYS, "operator": st.sampled_from(["In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt"]),
    "values": st.lists(_VALUES, max_size=2),
})  # fmt: skip
_TERM = st.fixed_dictionaries({"matchExpressions": st.lists(_EXPRESSION, max_size=2)})
_TAINT = st.fixed_dictionaries({
    "key": st.sampled_from(["k", "l"]), "value": _VALUES,
    "effect": st.sampled_from(["NoSchedule", "NoExecute", "PreferNoSchedule"]),
})  # fmt: skip
_TOLERATION = st.fixed_dictionaries({}, optional={
    "key": st.sampled_from(["k", "l", ""]), "operator": st.sampled_from(["Equal", "Exists"]), "value": _VALUES,
    "effect": st.sampled_from(["", "NoSchedule", "NoExecute"]),
})  # fmt: skip


@given(
    st.lists(st.tuples(_LABELS, st.lists(_TAINT, max_size=2)), min_size=1, max_size=5),
    _LABELS, st.lists(_TERM, max_size=2), st.lists(_TOLERATION, max_size=2),
)  # fmt: skip
def test_answers_over_all_nodes_are_those_for_each_node(
    nodes: list[tuple[dict[str, str], list[Any]]], selector: dict[str, str], terms: list[Any], tolerations: list[Any]
) -> None:
    world = World()
    for i, (labels, taints) in enumerate(nodes):
        world.node(f"n{i}", cpu=9, labels=labels, taints=taints)
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}
    spec = {"nodeSelector": selector, "affinity": {"nodeAffinity": required}, "tolerations": tolerations}
    bad = {row for rows in refused(world, spec).values() for row in rows}
    for row, (labels, taints) in enumerate(nodes):
        fits = matches_node(spec, labels, f"n{row}") and not untolerated(tolerations, taints)
        assert fits is (row not in bad)


def test_checks_answer_for_rows_in_any_order_and_number() -> None:
    world = World()
    world.node("a", cpu=9, labels={"m": "1"})
    world.node("b", cpu=9, labels={"m": "2"}, unschedulable=True)
    cls = world.cls({"cpu": 1}, {"nodeSelector": {"m": "1"}, "tolerations": [{"operator": "Exists"}]})
    session = world.session("predicates")
    for check in session.functions("predicate"):
        if check.applies is None or check.applies(cls):
            straight = check.check(cls, block(world, 0, 1))
            assert check.check(cls, block(world, 1, 0, 1)).tolist() == straight[[1, 0, 1]].tolist()


@pytest.mark.parametrize("rows", [1, 64, 200])
def test_rows_without_a_node_do_no_harm(rows: int) -> None:
    world = World()
    for i in range(rows):
        world.node(f"n{i}", cpu=9)
    for i in range(0, rows, 2):
        world.nodes.remove(f"n{i}")
    cls = world.cls({"cpu": 1}, {"nodeSelector": {"a": "b"}, "tolerations": [{"operator": "Exists"}]})
    session = world.session("predicates", "nodeorder", "binpack")
    everything = block(world, *range(world.nodes.rows))
    for check in session.functions("predicate"):
        if check.applies is None or check.applies(cls):
            assert len(check.check(cls, everything)) == world.nodes.rows
    for item in session.functions("node_score"):
        assert np.isfinite(item.score(cls, everything)).all()
