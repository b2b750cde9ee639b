"""Small rules by their numbers: what a task is, when a gang is worth going on with, how votes and switches decide."""

from __future__ import annotations

import pytest

from scheduler.conf import SWITCHES
from scheduler.framework.explain import Code, Stage, Verdict
from scheduler.framework.plugin import Vote
from scheduler.framework.registrations import SWITCH_OF
from scheduler.model import build
from scheduler.model.tasks import TaskStatus
from scheduler.snapshot import Offline, Snapshot
from tests.scheduler.plugins.world import World as Model
from tests.scheduler.tables.clusters import bound, cluster, conf, decide
from tests.scheduler.world import World, gang, node, pod


def task(**changes):
    made = pod("g", "w", 3, {"cpu": 1})
    for key, value in changes.items():
        made[key] = {**made.get(key, {}), **value}
    return made


# -- what a pod is as a task ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("phase", "node_name", "leaving", "status"),
    [
        ("Pending", "", False, TaskStatus.PENDING),
        ("Pending", "n0", False, TaskStatus.BOUND),
        ("Pending", "", True, TaskStatus.RELEASING),
        ("Running", "n0", False, TaskStatus.RUNNING),
        ("Running", "n0", True, TaskStatus.RELEASING),
        ("Succeeded", "n0", True, TaskStatus.SUCCEEDED),
        ("Failed", "n0", False, TaskStatus.FAILED),
        ("Unknown", "n0", False, TaskStatus.UNKNOWN),
        ("Odd", "n0", False, TaskStatus.UNKNOWN),
    ],
)
def test_the_status_of_a_task_follows_the_pod(phase, node_name, leaving, status):
    made = task(status={"phase": phase}, spec={"nodeName": node_name})
    if leaving:
        made["metadata"]["deletionTimestamp"] = "2030-01-01T00:00:00Z"
    assert build.status_of(made) is status


@pytest.mark.parametrize(
    ("spec", "mark", "priority"),
    [({}, None, 1), ({"priority": 7}, None, 7), ({"priority": 7}, "40", 40), ({"priority": 7}, "x", 7)],
)
def test_the_priority_of_a_task_is_the_pods_unless_an_annotation_says_another(spec, mark, priority):
    made = pod("g", "w", 0, {"cpu": 1}, **spec)
    if mark is not None:
        made["metadata"]["annotations"]["volcano.sh/task-priority"] = mark
    world = World(node("n0"), [gang("g", 0, 1)[0], made])
    assert world.offline.cache.tasks["pod-g-w-0"].priority == priority


@pytest.mark.parametrize(("name", "index"), [("job-w-12", 12), ("a-b-c-3", 3), ("w-12", -1), ("job-w-x", -1), ("solo", -1)])
def test_only_names_of_three_pieces_and_a_number_have_an_index(name, index):
    made = task(metadata={"name": name, "uid": name})
    world = World(node("n0"), [gang("g", 0, 1)[0], made])
    assert world.offline.cache.tasks[name].index == index


# -- what a node offers ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("label", "marks", "cpu"),
    [
        ("true", {"cpu": "2000"}, 10_000),
        ("false", {"cpu": "2000"}, 8000),
        (None, {"cpu": "2000"}, 8000),
        ("true", {}, 8000),
        ("true", {"cpu": "500", "memory": "1024"}, 8500),
    ],
)
def test_an_oversubscribed_node_offers_more(label, marks, cpu):
    made = node("n0", cpu=8, labels={"volcano.sh/oversubscription": label} if label else {})
    made["metadata"]["annotations"] = {f"volcano.sh/oversubscription-{key}": value for key, value in marks.items()}
    cache = World(made).offline.cache
    assert cache.nodes.allocatable[0, 0] == cpu
    assert cache.nodes.allocatable[0, 1] == (64 << 30) + int(marks.get("memory", 0) if label == "true" else 0)


@pytest.mark.parametrize("amount", ["-1", "2.5", "1e3", "9" * 30, "two"])
def test_an_oversubscription_that_is_no_amount_is_named(amount):
    made = node("n0", labels={"volcano.sh/oversubscription": "true"})
    made["metadata"]["annotations"] = {"volcano.sh/oversubscription-cpu": amount}
    (aside,) = World(made, node("n1")).offline.cache.aside.values()
    assert "volcano.sh/oversubscription-cpu" in aside.reason


# -- after a task found no node --------------------------------------------------------------------------------------------


def roles(least: int, minimums: dict[str, int], **counts: int):
    lines = f"node n1 cpu=99\nqueue q\ngroup g q min={least}"
    lines += f" roles={','.join(f'{role}:{n}' for role, n in minimums.items())}\n" if minimums else "\n"
    lines += "\n".join(f"pod {role}{i} g - cpu=1 role={role}" for role, count in counts.items() for i in range(count))
    return Offline(Snapshot.of(cluster(lines), conf("allocate", "gang"))).cache.jobs["default/g"]


@pytest.mark.parametrize(
    ("job", "failed", "goes_on"),
    [
        (roles(4, {}, a=2, b=2), {"a"}, False),  # all are needed
        (roles(2, {}, a=2, b=2), {"a"}, True),
        (roles(3, {"a": 2, "b": 2}, a=3, b=3), {"a"}, True),  # the roles' minimums are above the gang's: only numbers count
        (roles(3, {"a": 2, "b": 2}, a=3, b=2), {"b"}, True),
        (roles(3, {"a": 2, "b": 2}, a=2, b=3), {"b"}, False),
        (roles(4, {"a": 2, "b": 2}, a=3, b=3), {"a"}, False),  # a role that failed is below its minimum
        (roles(4, {"a": 0, "b": 2}, a=3, b=4), {"a"}, True),
    ],
)
def test_whether_a_gang_can_still_come_together(job, failed, goes_on):
    assert job.worth_continuing(failed) is goes_on


def test_a_gang_of_which_all_are_needed_is_given_up_at_the_first_failure():
    lines = """
        node n1 cpu=10
        queue q
        group other q
        group g q min=2
        pod o other n1 cpu=5
        pod a g - cpu=9 role=a
        pod b g - cpu=1 role=b
        """
    done = decide(lines, conf("allocate", "gang"))
    assert done.record.verdicts["default/g"].placeable == 0


# -- how answers combine -----------------------------------------------------------------------------------------------------

PERMIT, ABSTAIN, REJECT = Vote.PERMIT, Vote.ABSTAIN, Vote.REJECT
NO = Verdict(Stage.ADMISSION, Code.OVERCOMMIT)


def session(family: str, tiers: list[list[object]]):
    """A session in which `tiers` answer for a family of functions."""
    opened = Model().session("gang")
    opened._tiers[family] = [[lambda _, answer=answer: answer for answer in tier] for tier in tiers]
    opened._flat[family] = [item for tier in opened._tiers[family] for item in tier]
    return opened


@pytest.mark.parametrize(
    ("tiers", "holds"),
    [
        ([], True),
        ([[ABSTAIN]], True),
        ([[PERMIT, REJECT]], False),
        ([[PERMIT, ABSTAIN], [REJECT]], True),
        ([[ABSTAIN], [REJECT, PERMIT]], False),
        ([[ABSTAIN], [PERMIT]], True),
    ],
)
def test_pipelined_any_rejection_refuses_and_the_first_tier_with_a_permit_decides(tiers, holds):
    assert session("job_pipelined", tiers).job_pipelined(None) is holds


@pytest.mark.parametrize(
    ("tiers", "admitted"),
    [([], True), ([[PERMIT, NO]], False), ([[PERMIT], [NO]], True), ([[ABSTAIN], [NO]], False), ([[ABSTAIN]], True)],
)
def test_admission_is_voted_alike(tiers, admitted):
    assert (session("enqueueable", tiers).enqueueable(None) is None) is admitted


@pytest.mark.parametrize(
    ("tiers", "starving"), [([], False), ([[True, True]], True), ([[True, False]], False), ([[True], [False]], True)]
)
def test_starving_is_decided_by_the_first_tier_that_says_anything(tiers, starving):
    assert session("job_starving", tiers).job_starving(None) is starving


@pytest.mark.parametrize(("answers", "holds"), [([], True), ([True, True], True), ([True, False], False)])
def test_preemptive_needs_all(answers, holds):
    opened = session("preemptive", [answers])
    opened._flat["preemptive"] = [lambda queue, tasks, answer=answer: answer for answer in answers]
    assert opened.preemptive(None, []) is holds


@pytest.mark.parametrize(("answers", "dropped"), [([], False), ([None, None], False), ([None, NO], True)])
def test_overused_needs_one(answers, dropped):
    assert (session("overused", [answers]).overused(None) is not None) is dropped


# -- switches ------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("family", [family for family, switch in SWITCH_OF.items() if switch is not None])
def test_each_family_is_asked_unless_its_switch_is_off(family):
    switch = SWITCH_OF[family]
    assert switch in SWITCHES
    for on in (True, False):
        opened = Model().session("gang", **{switch: on})
        opened._add(family, "gang", "asked")
        asked = [item for tier in opened.named(family) for _, item in tier]
        assert ("asked" in asked) is on


@pytest.mark.parametrize("family", [family for family, switch in SWITCH_OF.items() if switch is None])
def test_a_family_without_a_switch_is_always_asked(family):
    opened = Model().session("gang", **dict.fromkeys(SWITCHES, False))
    opened._add(family, "gang", "asked")
    assert "asked" in [item for tier in opened.named(family) for _, item in tier]


def test_one_candidate_is_taken_whatever_its_score():
    lines = "node n1 cpu=1 role=x\nnode n2 cpu=9\nqueue q\ngroup g q\npod a g - cpu=1 on=role:x"
    assert bound(decide(lines, conf("allocate", "gang predicates nodeorder"))) == {"a": "n1"}
