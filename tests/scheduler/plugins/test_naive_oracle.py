"""The real allocate places exactly what the slow, obvious one places."""

from __future__ import annotations

from typing import Any

from hypothesis import given, note, settings
from hypothesis import strategies as st

from scheduler.actions.allocate import Allocate
from scheduler.conf import Arguments
from scheduler.model.tasks import TaskStatus
from scheduler.plugins.nodeorder import WEIGHTS
from tests.scheduler.plugins.naive import Naive
from tests.scheduler.plugins.world import World

_PLUGINS = ("priority", "gang", "conformance", "drf", "predicates", "proportion")
_LABELS = st.sampled_from([{}, {"zone": "a"}, {"zone": "b"}])
_TAINTS = st.lists(
    st.sampled_from([{"key": key, "effect": effect} for key in "kl" for effect in ("NoSchedule", "PreferNoSchedule")]),
    max_size=2, unique_by=str,
)  # fmt: skip
_ZONE_A = {"matchExpressions": [{"key": "zone", "operator": "In", "values": ["a"]}]}
_WISH = {
    "affinity": {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 3, "preference": _ZONE_A}]}}
}
_SPEC: st.SearchStrategy[dict[str, Any]] = st.sampled_from(
    [{}, {}, {"nodeSelector": {"zone": "a"}}, {"tolerations": [{"key": "k", "operator": "Exists"}]}, _WISH]
)
_APP = {"labelSelector": {"matchLabels": {"app": "a"}}}
_COMPANY: list[dict[str, Any]] = [
    {"affinity": {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [{**_APP, "topologyKey": key}]}}}
    for key in ("zone", "kubernetes.io/hostname")
]
_EVEN = {**_APP, "topologyKey": "zone", "maxSkew": 1, "whenUnsatisfiable": "DoNotSchedule"}
_COMPANY += [{"topologySpreadConstraints": [_EVEN]}, {"topologySpreadConstraints": [_EVEN], "nodeSelector": {"zone": "a"}}]
_REQUEST = st.fixed_dictionaries(
    {"cpu": st.sampled_from(["0", "300m", "1", "2", "3"]), "memory": st.sampled_from(["0", "500Mi", "1Gi", "3Gi"])},
    optional={"gpu": st.integers(1, 2)},
)


@st.composite
def worlds(draw: st.DrawFn, spec: st.SearchStrategy[dict[str, Any]] = _SPEC) -> World:
    """A few nodes, some with pods that run or leave; queues near their limit; gangs of several roles, interleaved."""
    world = World()
    for i in range(draw(st.integers(1, 5))):
        amounts = draw(st.fixed_dictionaries({"cpu": st.integers(1, 6), "memory": st.sampled_from(["1Gi", "4Gi", "6Gi"])}))
        if draw(st.booleans()):
            amounts["gpu"] = draw(st.integers(1, 4))
        labels, taints = {"kubernetes.io/hostname": f"n{i}", **draw(_LABELS)}, draw(_TAINTS)
        world.node(f"n{i}", pods=draw(st.sampled_from([2, 5, 110])), labels=labels, taints=taints,
                   unschedulable=draw(st.integers(0, 9)) == 0, **amounts)  # fmt: skip
    for i in range(draw(st.integers(1, 3))):
        capability = draw(st.sampled_from([None, {"cpu": 3}, {"memory": "2Gi"}, {"cpu": 4, "gpu": 1}]))
        guarantee = draw(st.sampled_from([None, None, {"cpu": 1}]))
        world.queue(f"q{i}", draw(st.integers(1, 3)), capability=capability, guarantee=guarantee,
                    priority=draw(st.sampled_from([0, 0, 1])))  # fmt: skip
    for i in range(draw(st.integers(1, 6))):
        _job(draw, world, f"j{i}", spec)
    return world


def _job(draw: st.DrawFn, world: World, name: str, specs: st.SearchStrategy[dict[str, Any]]) -> None:
    templates = draw(st.lists(st.tuples(_REQUEST, specs), min_size=1, max_size=2))
    roles = [draw(st.sampled_from(["", f"role{i}"])) for i in range(len(templates))]
    members = draw(st.lists(st.integers(0, len(templates) - 1), min_size=1, max_size=7))
    minimum = draw(st.integers(0, len(members)))
    role_min = {role: draw(st.integers(0, 2)) for role in roles if role and draw(st.booleans())}
    job = world.job(name, draw(st.sampled_from(sorted(world.queues))), min_available=minimum, role_min=role_min,
                    priority=draw(st.sampled_from([0, 0, 5])), phase="Inqueue")  # fmt: skip
    for member in members:
        request, spec = templates[member]
        cls = world.cls(request, spec)
        node = _room(draw, world, cls)
        status = draw(st.sampled_from([TaskStatus.RUNNING, TaskStatus.RELEASING])) if node >= 0 else TaskStatus.PENDING
        labels = {"app": "a"} if spec in _COMPANY or draw(st.integers(0, 3)) == 0 else {}
        priority = draw(st.sampled_from([1, 1, 1, 2]))
        world.task(job, cls, node=node, status=status, role=roles[member], priority=priority, labels=labels)


def _room(draw: st.DrawFn, world: World, cls: Any) -> int:
    """Now and then a node on which the pod is already; only where it fits."""
    if draw(st.integers(0, 3)):
        return -1
    nodes = world.nodes
    width = len(cls.request)
    nodes.widen(width)
    fits = [
        row
        for row in nodes.live_rows().tolist()
        if (nodes.allocatable[row, :width] - nodes.used[row, :width] >= cls.request).all()
    ]
    return draw(st.sampled_from(fits)) if fits else -1


def _placements(world: World) -> dict[str, tuple[int, bool]]:
    found = {}
    for job in world.jobs.values():
        for status in (TaskStatus.ALLOCATED, TaskStatus.BINDING, TaskStatus.PIPELINED):
            for task in job.by_status[status].values():
                found[task.uid] = (task.node, status is TaskStatus.PIPELINED)
    return found


def describe(world: World) -> str:
    """The facts of a world, to read beside a failure."""
    lines = []
    for row, name in enumerate(world.nodes.names[: len(world.nodes)]):
        units = world.dims.units(world.nodes.allocatable[row])
        lines.append(f"{name}: {units} {world.nodes.labels[row]} {world.nodes.taints[row]} {world.nodes.cordoned[row]}")
    for queue in world.queues.values():
        limits = [world.dims.units(amounts.values) for amounts in (queue.capability, queue.guarantee)]
        lines.append(f"{queue.name}: weight {queue.weight} priority {queue.priority} capability, guarantee {limits}")
    for job in world.jobs.values():
        lines.append(f"{job.name} in {job.queue}: min {job.min_available} roles {job.role_min} priority {job.priority}")
        for task in job.tasks.values():
            asked = world.dims.units(task.request)
            lines.append(
                f"  {task.uid} {task.role!r} {task.status.name} {task.node} p{task.priority} {asked} {dict(task.cls.spec)}"
            )
    return "\n".join(lines)


def _agree(world: World, *extra: tuple[str, dict[str, Any]], weights: dict[str, int], binpack: dict[str, int]) -> None:
    session = world.session(*_PLUGINS, *extra)
    expected = Naive(world, weights, binpack).run()
    note(describe(world))
    Allocate(Arguments("allocate")).execute(session)
    assert _placements(world) == expected


@settings(max_examples=120, deadline=None)
@given(worlds())
def test_the_default_scores_give_the_same_placements(world: World) -> None:
    _agree(world, ("nodeorder", {}), weights=WEIGHTS, binpack={})


@settings(max_examples=60, deadline=None)
@given(worlds())
def test_packing_gives_the_same_placements(world: World) -> None:
    binpack = ("binpack", {"binpack.resources": "nvidia.com/gpu"})
    off = dict.fromkeys(WEIGHTS, 0)
    _agree(world, binpack, weights={**off}, binpack={"cpu": 1, "memory": 1, "nvidia.com/gpu": 1})


@settings(max_examples=60, deadline=None)
@given(worlds())
def test_all_scores_together_give_the_same_placements(world: World) -> None:
    weights = {**WEIGHTS, "mostrequested": 2, "leastrequested": 0, "nodeaffinity": 1}
    order = ("nodeorder", {f"{scorer}.weight": weight for scorer, weight in weights.items()})
    _agree(world, order, ("binpack", {}), weights=weights, binpack={"cpu": 1, "memory": 1})


@settings(max_examples=60, deadline=None)
@given(worlds(st.sampled_from([{}, *_COMPANY])))
def test_pods_that_look_at_each_other_are_placed_the_same(world: World) -> None:
    _agree(world, ("nodeorder", {}), weights=WEIGHTS, binpack={})
