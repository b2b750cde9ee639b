"""Reclaiming as Volcano's own table has it: cluster in, evictions out."""

from __future__ import annotations

import pytest

from tests.scheduler.tables.clusters import conf, decide, evicted

FAIR = conf("reclaim", "conformance gang proportion priority", gang={"enableJobPipelined": False})
CAPACITY = conf("reclaim", "conformance gang capacity priority", gang={"enableJobPipelined": False})

CASES = {
    "a queue above its share loses what is preemptable": (
        """
        node n1 cpu=3 memory=3Gi pods=10
        queue q1
        queue q2
        group pg1 q1 min=1 class=low
        group pg2 q2 min=1 class=high
        pod a pg1 n1 cpu=1 memory=1G preemptable=false
        pod b pg1 n1 cpu=1 memory=1G preemptable=true
        pod c pg1 n1 cpu=1 memory=1G preemptable=false
        pod d pg2 - cpu=1 memory=1G
        """,
        ["b"],
    ),
    "of two such queues the job of lower priority loses": (
        """
        node n1 cpu=4 memory=4Gi pods=10
        queue q1
        queue q2
        queue q3
        group pg1 q1 min=1 class=mid
        group pg2 q2 min=1 class=low
        group pg3 q3 min=1 class=high
        pod a1 pg1 n1 cpu=1 memory=1G
        pod a2 pg1 n1 cpu=1 memory=1G
        pod b1 pg2 n1 cpu=1 memory=1G
        pod b2 pg2 n1 cpu=1 memory=1G preemptable=false
        pod c pg3 - cpu=1 memory=1G
        """,
        ["b1"],
    ),
    "the queue of lower priority loses": (
        """
        node n1 cpu=4 memory=4Gi pods=10
        queue q1 priority=5
        queue q2 priority=10
        queue q3 priority=1
        group pg1 q1 min=1 class=mid
        group pg2 q2 min=1 class=mid
        group pg3 q3 min=1 class=mid
        pod a1 pg1 n1 cpu=1 memory=1G
        pod a2 pg1 n1 cpu=1 memory=1G preemptable=false
        pod b1 pg2 n1 cpu=1 memory=1G
        pod b2 pg2 n1 cpu=1 memory=1G preemptable=false
        pod c pg3 - cpu=1 memory=1G
        """,
        ["a1"],
    ),
    "the policy of the pod is never": (
        """
        node n1 cpu=1 memory=1Gi pods=1
        queue q1 weight=5
        queue q2 weight=10
        group pg1 q1 min=0 class=low
        group pg2 q2 min=0 class=high
        pod a pg1 n1 cpu=1 memory=1G
        pod b pg2 - cpu=1 memory=1G policy=Never
        """,
        [],
    ),
    "a closed queue takes nothing": (
        """
        node n1 cpu=3 memory=3Gi pods=10
        queue q1
        queue q2 state=Closed
        group pg1 q1 min=1 class=low phase=Running
        group pg2 q2 min=1 class=high
        pod a pg1 n1 cpu=1 memory=1G
        pod b pg1 n1 cpu=1 memory=1G
        pod c pg1 n1 cpu=1 memory=1G
        pod d pg2 - cpu=1 memory=1G
        """,
        [],
    ),
    "what the node has left counts": (
        """
        node n1 cpu=10 memory=2Gi pods=10
        queue q1 priority=1
        queue q2 priority=2
        queue q3 weight=3
        group pg1 q1 min=0 class=mid phase=Running
        group pg2 q2 min=0 class=mid phase=Running
        group pg3 q3 min=1 class=mid
        pod a pg1 n1 cpu=1 memory=1G
        pod b pg2 n1 cpu=1 memory=1G
        pod c pg3 - cpu=2 memory=1G
        """,
        ["a"],
    ),
    "the second task reclaims though the first may not": (
        """
        node n1 cpu=2 memory=2G pods=10
        queue q1
        queue q2
        group pg1 q1 min=1 class=low phase=Running
        group pg2 q2 min=2 class=high
        pod a pg1 n1 cpu=1 memory=1G preemptable=false
        pod b pg1 n1 cpu=1 memory=1G
        pod c pg2 - cpu=1 memory=1G policy=Never
        pod d pg2 - cpu=1 memory=1G
        """,
        ["b"],
    ),
    "nobody goes where there is room": (
        """
        node n1 cpu=10 memory=10G pods=10
        queue q1
        queue q2 weight=9
        group pg1 q1 min=0 class=low phase=Running
        group pg2 q2 min=1 class=low
        pod a pg1 n1 cpu=2 memory=2G
        pod b pg2 - cpu=3 memory=3G
        """,
        [],
    ),
}


@pytest.mark.parametrize("case", list(CASES))
def test_who_goes_when(case: str):
    lines, gone = CASES[case]
    assert evicted(decide(lines, FAIR)) == gone


def test_a_closed_queue_takes_nothing_by_capacity_either():
    assert evicted(decide(CASES["a closed queue takes nothing"][0], CAPACITY)) == []


def test_a_gang_that_could_not_run_all_the_same_reclaims_nothing():
    """On purpose, wherever gang says when a gang is pipelined: one pod of two does not make a gang."""
    text = conf("reclaim", "conformance gang proportion priority")
    assert evicted(decide(CASES["the second task reclaims though the first may not"][0], text)) == []
