"""A gang's domain is written to its PodGroup, once."""

from __future__ import annotations

from cluster.admission import Admission
from cluster.clock import ManualClock
from cluster.embedded.store import EmbeddedCluster
from cluster.kinds import HYPER_NODE, NODE, POD, POD_GROUP, QUEUE
from scheduler import conf
from scheduler.loop import SchedulerLoop
from scheduler.topology.places import ANNOTATION
from tests.scheduler.topology.test_allocate import CONF, RACKS, eight
from tests.scheduler.topology.world import close
from tests.scheduler.world import queue

KINDS = {"Node": NODE, "Queue": QUEUE, "PodGroup": POD_GROUP, "Pod": POD, "HyperNode": HYPER_NODE}


def test_the_domain_of_a_gang_is_written_once_and_removed_with_its_last_pod() -> None:
    clock = ManualClock(1_900_000_000.0)
    cluster = EmbeddedCluster(clock=clock, admission=Admission())
    for obj in (queue("default"), *eight(), *RACKS, *close("a", 2, cpu=2, tier=1)):
        kind = KINDS[obj["kind"]]
        made = cluster.create(kind, obj)
        if obj.get("status") and kind.has_status:
            cluster.patch_status(kind, made["metadata"]["name"], made["metadata"].get("namespace", ""), obj["status"])
    loop = SchedulerLoop(cluster, conf.load(CONF), clock)

    def marks() -> dict[str, str]:
        return cluster.get(POD_GROUP, "a", "default")["metadata"].get("annotations") or {}

    for _ in range(4):
        loop.step()
        clock.advance(1)
    assert marks() == {ANNOTATION: "s0"}
    version = cluster.list(POD_GROUP).resource_version
    for _ in range(15):
        loop.step()
        clock.advance(1)
    assert cluster.list(POD_GROUP).resource_version == version
    for item in cluster.list(POD).items:
        cluster.delete(POD, item["metadata"]["name"], "default", grace_seconds=0)
    for _ in range(3):
        loop.step()
        clock.advance(1)
    assert marks() == {}
