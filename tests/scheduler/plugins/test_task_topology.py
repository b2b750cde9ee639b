"""task-topology: what annotations say, how tasks come into buckets, their order, and how good nodes are for them."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scheduler.framework.statement import Statement
from scheduler.model.tasks import TaskInfo
from scheduler.plugins.task_topology import wishes
from tests.scheduler import world as clusters
from tests.scheduler.plugins.world import World, block

NEAR, APART, ORDER = wishes.AFFINITY, wishes.ANTI_AFFINITY, wishes.ORDER
ROLES = {"ps", "worker", "chief", "evaluator"}


# -- annotations (the rows are those of Volcano's own table) ---------------------------------------------------------------


def test_groups_become_pairs_and_urgencies() -> None:
    marks = {NEAR: "ps,worker;ps,chief", APART: "ps;worker,chief", ORDER: "ps,worker,chief,evaluator"}
    found = wishes.read(marks, ROLES)
    assert found is not None
    assert found.near == {("ps", "worker"), ("worker", "ps"), ("ps", "chief"), ("chief", "ps")}
    assert found.apart == {("ps", "ps"), ("worker", "chief"), ("chief", "worker")}
    urgencies = {role: found.urgency(role) for role in sorted(ROLES)}
    assert urgencies == {"ps": (4, 4), "worker": (3, 3), "chief": (2, 3), "evaluator": (1, 0)}
    assert not found.concern("evaluator")


def test_names_with_dashes_are_names() -> None:
    found = wishes.read({NEAR: "ps-some,worker-another-some"}, {"ps-some", "worker-another-some"})
    assert found is not None
    assert ("worker-another-some", "ps-some") in found.near


def test_nothing_said_is_no_wish() -> None:
    assert wishes.read({}, ROLES) is None


@pytest.mark.parametrize(
    ("marks", "words"),
    [
        ({NEAR: "$%GF$^trtqwrg^", APART: "ps;worker,chief;#@FGEW^vfa897bgs;;"}, r"no task '\$%GF\$\^trtqwrg\^'"),
        ({NEAR: "ps,worker", APART: "ps", ORDER: "ps,worker,nobody"}, "task-order: the job has no task 'nobody'"),
        ({NEAR: "ps,worker", APART: "ps,ps"}, "anti-affinity: task 'ps' is named twice"),
        ({ORDER: "ps,worker,ps"}, "task 'ps' is named twice"),
    ],
)
def test_a_wrong_name_is_told(marks: dict[str, str], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        wishes.read(marks, ROLES)


def test_redundant_punctuation_is_passed_over() -> None:
    marks = {NEAR: "ps,worker;ps,,chief,;", APART: "ps;worker,chief;;;", ORDER: "ps,worker,chief,evaluator,,,"}
    found = wishes.read(marks, ROLES)
    assert found is not None
    assert {pair for pair in found.near if all(pair)} == {
        ("ps", "worker"), ("worker", "ps"), ("ps", "chief"), ("chief", "ps"),
    }  # fmt: skip
    assert found.urgency("ps") == (7, 4)


@pytest.mark.parametrize(
    ("marks", "weight"),
    [({APART: "ps"}, 4), ({NEAR: "ps,worker"}, 3), ({NEAR: "ps"}, 2), ({APART: "ps,worker"}, 1), ({NEAR: "ps", APART: "ps"}, 4)],
)
def test_the_strongest_wish_counts(marks: dict[str, str], weight: int) -> None:
    found = wishes.read(marks, ROLES)
    assert found is not None
    assert found.urgency("ps") == (0, weight)


# -- a session -------------------------------------------------------------------------------------------------------------


class Scene:
    """One job with roles (name → number, cpus of each task) on some nodes of so many cpus each."""

    def __init__(self, marks: dict[str, str], roles: dict[str, tuple[int, int]], *nodes: int, weight: int | None = None) -> None:
        self.at = World()
        self.rows = [self.at.node(f"n{i}", cpu=cpu, memory="64Gi") for i, cpu in enumerate(nodes)]
        self.job = self.at.job("j", annotations=marks)
        self.tasks: dict[str, TaskInfo] = {}
        self._weight = {} if weight is None else {"task-topology.weight": weight}
        for role, (count, cpu) in roles.items():
            for i in range(count):
                self.add(f"{role}{i}", role, cpu)

    def add(self, name: str, role: str, cpu: int, node: int = -1) -> TaskInfo:
        task = self.at.task(self.job, self.at.cls({"cpu": cpu, "memory": "1Gi"}), node, role=role)
        task.name = name
        task.pod["metadata"]["annotations"] = {"volcano.sh/task-spec": role}
        self.tasks[name] = task
        return task

    def open(self) -> Any:
        self.ssn = self.at.session(("task-topology", self._weight))
        return self.ssn

    def order(self) -> list[str]:
        pending = [task for task in self.tasks.values() if task.node < 0]
        return [task.name for task in sorted(pending, key=self.ssn.task_key)]

    def scores(self, name: str) -> list[float]:
        (item,) = self.ssn.functions("task_score")
        assert item.applies(self.tasks[name])
        return [float(value) for value in item.score(self.tasks[name], block(self.at))]


def test_tasks_go_bucket_by_bucket_and_those_without_one_last() -> None:
    scene = Scene({NEAR: "a"}, {"b": (1, 1), "a": (3, 1)}, 8)
    scene.add("a9", "a", 1, node=0)
    scene.open()
    # All a's share the bucket of the one that runs; b is in none.
    assert scene.order() == ["a0", "a1", "a2", "b0"]


def test_those_who_avoid_each_other_get_a_bucket_each_and_friends_spread_over_them() -> None:
    scene = Scene({NEAR: "ps,worker", APART: "ps"}, {"worker": (4, 1), "ps": (2, 1)}, 8, 8)
    scene.open()
    # ps0 and ps1 first (4 beats 3), a bucket each; workers balance them by size: 2 each.
    assert scene.order() == ["ps0", "worker0", "worker2", "ps1", "worker1", "worker3"]


def test_the_order_asked_for_goes_before_what_is_wished() -> None:
    scene = Scene({NEAR: "ps,worker", APART: "ps", ORDER: "worker,ps"}, {"worker": (1, 1), "ps": (2, 1)}, 8, 8)
    scene.open()
    assert scene.order() == ["worker0", "ps0", "ps1"]


def test_the_bucket_with_most_to_place_goes_first() -> None:
    scene = Scene({NEAR: "a;b"}, {"a": (1, 1), "b": (3, 1)}, 8)
    scene.open()
    # Neither friends nor foes: a0 comes into the first bucket, and so does whoever finds 0 there.
    assert scene.order() == ["a0", "b0", "b1", "b2"]
    scene = Scene({NEAR: "a;b", APART: "a,b"}, {"a": (1, 1), "b": (3, 1)}, 8)
    scene.open()
    assert scene.order() == ["b0", "b1", "b2", "a0"]


def test_a_node_is_as_good_as_what_of_the_bucket_it_has_and_takes() -> None:
    scene = Scene({NEAR: "a"}, {"a": (3, 2)}, 8, 4, 2, 1)
    scene.add("a9", "a", 2, node=0)
    scene.open()
    # Bucket of 4. n0: 1 there + 3 fit into 6 cpus; n1: 2 of 3 fit; n2: only itself; n3: no room at all.
    assert scene.scores("a0") == [100, 50, 25, 0]


def test_the_weight_multiplies_and_nothing_turns_it_off() -> None:
    scene = Scene({NEAR: "a"}, {"a": (2, 2)}, 4, 2, weight=10)
    scene.open()
    assert scene.scores("a0") == [1000, 500]
    scene = Scene({NEAR: "a"}, {"a": (2, 2)}, 4, 2, weight=0)
    assert not scene.open().functions("task_score")


def test_tasks_of_this_session_that_it_avoids_count_against_a_node() -> None:
    scene = Scene({NEAR: "ps,worker", APART: "ps"}, {"ps": (2, 1), "worker": (2, 1)}, 8, 8)
    statement = Statement(scene.open())
    statement.allocate([scene.tasks["ps0"]], [0])
    # ps1 waits with one worker: 2 − 1 foe on n0; the largest bucket has 2.
    assert scene.scores("ps1") == [50, 100]
    # worker0 is of ps0's bucket: 1 there + itself.
    assert scene.scores("worker0") == [100, 50]
    statement.discard()
    assert scene.scores("ps1") == [100, 100]
    assert scene.scores("worker0") == [100, 100]


def test_what_is_only_reserved_counts_as_there() -> None:
    scene = Scene({NEAR: "a"}, {"a": (2, 2)}, 4, 4)
    statement = Statement(scene.open())
    statement.pipeline([scene.tasks["a0"]], [1])
    assert scene.scores("a1") == [50, 100]


def test_roles_by_label_are_in_no_bucket() -> None:
    scene = Scene({NEAR: "a"}, {"a": (2, 1)}, 4)
    for task in scene.tasks.values():
        task.pod["metadata"]["annotations"] = {}
    scene.open()
    (item,) = scene.ssn.functions("task_score")
    assert not item.applies(scene.tasks["a0"])


def test_a_wrong_annotation_leaves_the_job_without(caplog: pytest.LogCaptureFixture) -> None:
    scene = Scene({NEAR: "a,nobody"}, {"a": (2, 1)}, 4)
    assert not scene.open().functions("task_score")
    assert "ns/j: annotation volcano.sh/task-topology-affinity: the job has no task 'nobody'" in caplog.text


# -- against a direct reading of the rules -----------------------------------------------------------------------------------


def naive_buckets(scene: Scene, wished: wishes.Wishes) -> list[list[str]]:
    """Task after task into the best bucket, all of them looked at each time."""
    nodes = {name: task.node for name, task in scene.tasks.items() if wished.concern(task.role)}
    bound = sorted((f"n{node}", name) for name, node in nodes.items() if node >= 0)
    waiting = sorted(
        (name for name, node in nodes.items() if node < 0),
        key=lambda name: (*(-part for part in wished.urgency(scene.tasks[name].role)), name),
    )
    buckets: list[list[str]] = []
    sizes: list[float] = []
    of_node: dict[str, int] = {}
    for node, name in [*bound, *(("", name) for name in waiting)]:
        role, best = scene.tasks[name].role, None
        if node:
            best = of_node.get(node)
        else:
            most = 0
            for i, members in enumerate(buckets):
                others = [scene.tasks[other].role for other in members]
                found = sum((role, other) in wished.near for other in others)
                found -= sum((role, other) in wished.apart for other in others)
                if best is None or found > most or (found == most and sizes[i] < sizes[best]):
                    best, most = i, found
            if most < 0:
                best = None
        if best is None:
            best = len(buckets)
            buckets.append([])
            sizes.append(0)
            if node:
                of_node[node] = best
        buckets[best].append(name)
        if not node:
            cpu, memory, pods = (int(value) for value in scene.tasks[name].request[:3])
            sizes[best] += cpu + memory / (1 << 20) + pods
    return buckets


scenes = st.tuples(
    st.sampled_from(["a", "a;b", "a,b", "a,b,c", "a,b;c"]),
    st.sampled_from(["a", "b", "a,c", "a;b;c", "c"]),
    st.lists(st.tuples(st.sampled_from("abc"), st.integers(1, 3), st.integers(-3, 2)), min_size=1, max_size=14),
)


def build(spec: Any) -> tuple[Scene, wishes.Wishes]:
    near, apart, tasks = spec
    scene = Scene({NEAR: near, APART: apart}, {}, 9, 6, 4)
    for i, (role, cpu, node) in enumerate([*tasks, ("a", 1, -1), ("b", 1, -1), ("c", 1, -1)]):
        scene.add(f"{role}{i:02}", role, cpu, max(node, -1))
    scene.open()
    wished = wishes.read(scene.job.annotations, {"a", "b", "c"})
    assert wished is not None
    return scene, wished


@settings(max_examples=150, deadline=None)
@given(scenes)
def test_buckets_are_those_of_a_direct_reading(spec: Any) -> None:
    scene, wished = build(spec)
    buckets = scene.ssn._plugins[0]._jobs["ns/j"]
    seen: dict[int, set[str]] = {}
    for name, task in scene.tasks.items():
        if (bucket := buckets.of(task)) is not None:
            seen.setdefault(bucket.number, set()).add(name)
    assert [seen[number] for number in sorted(seen)] == [set(members) for members in naive_buckets(scene, wished)]


@settings(max_examples=60, deadline=None)
@given(scenes, st.lists(st.tuples(st.integers(0, 20), st.integers(0, 2)), max_size=8))
def test_what_is_undone_leaves_no_trace(spec: Any, steps: Any) -> None:
    scene, _ = build(spec)
    concerned = [task for task in scene.tasks.values() if scene.ssn._plugins[0]._is_in_bucket(task)]
    before = {task.name: scene.scores(task.name) for task in concerned}
    statement, pending = Statement(scene.ssn), [task for task in scene.tasks.values() if task.node < 0]
    for which, row in steps:
        if pending:
            statement.allocate([pending.pop(which % len(pending))], [row])
    statement.discard()
    assert {task.name: scene.scores(task.name) for task in concerned} == before


# -- whole cycles ------------------------------------------------------------------------------------------------------------

CONF = 'actions: "allocate"\ntiers:\n- plugins:\n  - name: gang\n  - name: task-topology\n'


def test_a_parameter_server_is_placed_with_its_workers() -> None:
    marks = {NEAR: "ps,worker", APART: "ps"}
    group = clusters.group("tf", 6)
    group["metadata"]["annotations"] = marks
    pods = [clusters.pod("tf", "worker", i, {"cpu": 2}) for i in range(4)]
    pods += [clusters.pod("tf", "ps", i, {"cpu": 2}) for i in range(2)]
    world = clusters.World([clusters.node(f"n{i}", cpu=6) for i in range(3)], group, pods, conf=CONF).cycle()
    assert world.bound == {
        "tf-ps-0": "n0", "tf-worker-0": "n0", "tf-worker-2": "n0",
        "tf-ps-1": "n1", "tf-worker-1": "n1", "tf-worker-3": "n1",
    }  # fmt: skip
