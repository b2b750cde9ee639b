"""Preemption as Volcano's own table has it: cluster in, evictions out."""

from __future__ import annotations

import pytest

from tests.scheduler.tables.clusters import conf, decide, evicted

PLAIN = conf("preempt", "conformance gang priority proportion predicates")
AWARE = conf(
    "preempt", "conformance gang priority proportion predicates", arguments={"preempt": {"enableTopologyAwarePreemption": True}}
)

CASES = {
    "there is room for the pod that waits": (
        """
        node n1 cpu=10 memory=10G pods=10
        queue q1
        group pg1 q1 min=3
        pod a pg1 n1 cpu=1 memory=1G
        pod b pg1 n1 cpu=1 memory=1G
        pod c pg1 - cpu=1 memory=1G
        """,
        [],
    ),
    "gangs that have their minimum do not starve": (
        """
        node n1 cpu=3 memory=3G pods=10
        queue q1
        group pg1 q1 min=1 roles=w:2
        group pg2 q1 min=1 roles=w:2
        pod a pg1 n1 cpu=1 memory=1G
        pod b pg1 n1 cpu=1 memory=1G
        pod c pg2 n1 cpu=1 memory=1G
        pod d pg2 - cpu=1 memory=1G
        """,
        [],
    ),
    "one task goes so that both jobs run": (
        """
        node n1 cpu=2 memory=2G pods=10
        queue q1
        group pg1 q1 min=1 class=low
        group pg2 q1 min=1 class=high
        pod a pg1 n1 cpu=1 memory=1G preemptable=true
        pod b pg1 n1 cpu=1 memory=1G preemptable=false
        pod c pg2 - cpu=1 memory=1G
        pod d pg2 - cpu=1 memory=1G
        """,
        ["a"],
    ),
    "as many go as a large task needs": (
        """
        node n1 cpu=6 memory=6G pods=10
        queue q1
        group pg1 q1 min=1 class=low
        group pg2 q1 min=1 class=high
        pod a pg1 n1 cpu=1 memory=1G preemptable=true
        pod b pg1 n1 cpu=1 memory=1G preemptable=true
        pod c pg1 n1 cpu=1 memory=1G preemptable=false
        pod d pg2 - cpu=5 memory=5G
        """,
        ["a", "b"],
    ),
    "the queue is full though the node is not": (
        """
        node n1 cpu=12 memory=12G pods=10
        queue q1 capability=cpu:4,memory:4G
        group pg1 q1 min=0 class=low
        group pg2 q1 min=1 class=high
        pod a pg1 n1 cpu=3 memory=3G
        pod b pg2 - cpu=3 memory=3G
        """,
        ["a"],
    ),
    "queue and node have room": (
        """
        node n1 cpu=12 memory=12G pods=10
        queue q1 capability=cpu:6,memory:6G
        group pg1 q1 min=1 class=low
        group pg2 q1 min=1 class=high
        pod a pg1 n1 cpu=3 memory=3G
        pod b pg2 - cpu=3 memory=3G
        """,
        [],
    ),
    "neither a pod that is not preemptable nor the one of higher priority": (
        """
        node n1 cpu=12 memory=12G pods=10
        queue q1 capability=cpu:3,memory:3G
        group pg1 q1 min=1 class=low
        group pg2 q1 min=1 class=high
        pod a pg1 n1 cpu=1 memory=1G preemptable=false
        pod b pg1 n1 cpu=1 memory=1G
        pod c pg1 n1 cpu=1 memory=1G priority=100000
        pod d pg2 - cpu=1 memory=1G
        """,
        ["b"],
    ),
    "a pod that asks nothing gives its place to one that asks": (
        """
        node n1 cpu=12 memory=12G pods=1
        queue q1 capability=cpu:6,memory:6G
        group pg1 q1 min=0 class=low
        group pg2 q1 min=1 class=high
        pod a pg1 n1
        pod b pg2 - cpu=3 memory=3G
        """,
        ["a"],
    ),
    "a pod that asks nothing takes the place of its like": (
        """
        node n1 cpu=12 memory=12G pods=1
        queue q1 capability=cpu:6,memory:6G
        group pg1 q1 min=0 class=low
        group pg2 q1 min=1 class=high
        pod a pg1 n1
        pod b pg2 -
        """,
        ["a"],
    ),
    "a pod that asks nothing does not drive out one that asks": (
        """
        node n1 cpu=12 memory=12G pods=1
        queue q1 capability=cpu:6,memory:6G
        group pg1 q1 min=0 class=low
        group pg2 q1 min=1 class=high
        pod a pg1 n1 cpu=1
        pod b pg2 -
        """,
        [],
    ),
    "the policy of the pod is never": (
        """
        node n1 cpu=1 memory=1Gi pods=1
        queue q1
        group pg1 q1 min=0 class=low
        group pg2 q1 min=1 class=high
        pod a pg1 n1 cpu=1 memory=1G
        pod b pg2 - cpu=1 memory=1G policy=Never
        """,
        [],
    ),
    "more is asked than the queue may ever have": (
        """
        node n1 cpu=10 memory=10G pods=10
        queue q1 capability=cpu:3,memory:3G
        group pg1 q1 min=1 class=low
        group pg2 q1 min=1 class=high
        pod a pg1 n1 cpu=1 memory=1G
        pod b pg1 n1 cpu=1 memory=1G
        pod c pg2 - cpu=4 memory=4G
        """,
        [],
    ),
    "what goes is on the node where it helps, and nothing on any other": (
        """
        node n1 cpu=3 memory=3G pods=10
        node n2 cpu=4 memory=4G pods=10
        queue q1 capability=cpu:6,memory:6G
        group pg1 q1 min=0 class=low
        group pg2 q1 min=1 class=high
        group pg3 q1 min=0 class=low
        pod a pg1 n1 cpu=1 memory=1G
        pod b pg3 n2 cpu=4 memory=4G
        pod c pg2 - cpu=3 memory=3G
        """,
        ["b"],
    ),
    "a queue that starves comes to its right whatever another does": (
        """
        node n1 cpu=2 memory=2G pods=10
        queue q1
        queue q2 capability=cpu:4,memory:4G
        group pg1 q1 min=1
        group pg2 q2 min=0 class=low
        group pg3 q2 min=1 class=high
        pod a pg1 n1 cpu=1 memory=1G
        pod b pg2 n1 cpu=1 memory=1G
        pod c pg3 - cpu=1 memory=1G
        """,
        ["b"],
    ),
    "the pod that is avoided goes, not any pod": (
        """
        node n1 cpu=2 memory=2Gi pods=2
        queue q1 capability=cpu:2,memory:2G
        group pg1 q1 min=0 class=low
        group pg2 q1 min=0 class=low
        group pg3 q1 min=1 class=high
        pod a pg2 n1 cpu=1 memory=1G
        pod b pg1 n1 cpu=1 memory=1G label=test:test avoids=test:test
        pod c pg3 - cpu=1 memory=1G label=test:test avoids=test:test
        """,
        ["b"],
    ),
    "a job of another queue stays, however its queue stands": (
        """
        node n1 cpu=2 memory=2Gi pods=2
        queue q1 priority=1 capability=cpu:1,memory:1G
        queue q2 priority=10 capability=cpu:1,memory:1G
        group pg3 q2 min=1 class=high
        group pg1 q1 min=0 class=low
        group pg2 q1 min=1 class=high
        pod a pg3 n1 cpu=1 memory=1G
        pod b pg1 n1 cpu=1 memory=1G
        pod c pg2 - cpu=1 memory=1G policy=PreemptLowerPriority
        """,
        ["b"],
    ),
}


@pytest.mark.parametrize("text", [PLAIN, AWARE], ids=["plain", "aware"])
@pytest.mark.parametrize("case", list(CASES))
def test_who_goes_when(case: str, text: str):
    lines, gone = CASES[case]
    assert evicted(decide(lines, text)) == gone


def test_the_smallest_set_goes_where_volcano_takes_pods_in_their_order():
    """On purpose: Volcano evicts `c`, then `b`, then `a`, until the pod fits; here `a` alone is enough."""
    lines = """
        node n1 cpu=4 memory=4G pods=10
        queue q1
        group pg1 q1 min=0 class=low
        group pg2 q1 min=1 class=high
        pod a pg1 n1 cpu=2 memory=2G
        pod b pg1 n1 cpu=1 memory=1G
        pod c pg1 n1 cpu=1 memory=1G
        pod d pg2 - cpu=2 memory=2G
        """
    assert evicted(decide(lines, PLAIN)) == ["a"]


def test_where_nobody_says_when_a_gang_is_pipelined_part_of_it_may_preempt():
    lines = """
        node n1 cpu=1 memory=1G pods=10
        queue q1
        group pg1 q1 min=0 class=low
        group pg2 q1 min=2 class=high
        pod a pg1 n1 cpu=1 memory=1G
        pod b pg2 - cpu=1 memory=1G policy=Never
        pod c pg2 - cpu=1 memory=1G
        """
    tier = "conformance gang priority proportion predicates"
    assert evicted(decide(lines, conf("preempt", tier))) == []
    assert evicted(decide(lines, conf("preempt", tier, gang={"enableJobPipelined": False}))) == ["a"]
