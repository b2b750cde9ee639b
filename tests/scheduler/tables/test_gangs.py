"""gangpreempt and gangreclaim as Volcano's tables have them: whose pods are candidates at all."""

from __future__ import annotations

import pytest

from scheduler.snapshot import Offline, Snapshot
from tests.scheduler.tables.clusters import cluster, conf, decide, evicted

PREEMPT = conf("gangpreempt", "priority gang conformance predicates proportion")
RECLAIM = conf("gangreclaim", "priority gang conformance predicates capacity")
SPARING = conf(
    "gangpreempt", "priority gang conformance predicates proportion", arguments={"gangpreempt": {"allowWholeBundle": False}}
)
ONE = """
    node n1 cpu=1 memory=1G
    queue q1
    group victim q1 min=1 class=low
    group taker q1 min=1 class=high
    pod v victim n1 cpu=1
    pod t taker - cpu=1
    """
ACROSS = """
    node n1 cpu=2 memory=2G
    queue q1 deserved=cpu:1
    queue q2 deserved=cpu:0
    queue q3 deserved=cpu:0 reclaimable=false
    group taker q1 min=1 class=high
    group victim q2 min=1
    group other q3 min=1
    pod t taker - cpu=1
    pod v victim n1 cpu=1
    pod o other n1 cpu=1
    """


def test_a_gang_at_its_minimum_goes_whole_or_not_at_all():
    assert evicted(decide(ONE, SPARING)) == []
    assert evicted(decide(ONE, PREEMPT)) == ["v"]


@pytest.mark.parametrize("said", ["false", "true", None])
def test_a_gang_says_for_all_its_pods_whether_it_is_preemptable(said):
    objects = cluster(ONE)
    if said is not None:
        for each in objects:
            if each["metadata"]["name"] == "victim":
                each["metadata"]["annotations"] = {"volcano.sh/preemptable": said}
    done = Offline(Snapshot.of(objects, PREEMPT), now=1_893_456_000.0).decide()
    assert evicted(done) == ([] if said == "false" else ["v"])


def test_only_queues_that_are_reclaimed_from_lose_a_gang():
    assert evicted(decide(ACROSS, RECLAIM)) == ["v"]


def test_a_preemptor_of_no_higher_priority_takes_nothing():
    assert evicted(decide(ONE.replace("class=high", "class=low"), PREEMPT)) == []


@pytest.mark.parametrize("most", [0, -1])
def test_a_number_of_domains_that_makes_no_sense_is_the_default(most):
    text = conf("gangpreempt", "priority gang", arguments={"gangpreempt": {"maxDomains": most}})
    assert evicted(decide(ONE, text)) == ["v"]
