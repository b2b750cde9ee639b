"""Snapshots are saved and loaded without loss, and cycles on them repeat."""

from scheduler.conf import DEFAULT
from scheduler.snapshot import Offline, Snapshot
from tests.scheduler.world import BARE, gang, node, queue


def test_a_saved_snapshot_is_loaded_as_it_was_and_decides_alike():
    snapshot = Snapshot.of([node("n0", gpu=8), queue("default"), *gang("a", 2, cpu=1, gpu=2)], BARE)
    again = Snapshot.load(snapshot.dump())
    assert again == snapshot
    assert Offline(again).cycle().binds == Offline(snapshot).cycle().binds


def test_documents_are_read_with_the_configuration_they_bring():
    text = """\
apiVersion: v1
kind: ConfigMap
metadata: {name: volcano-scheduler-configmap}
data:
  volcano-scheduler.conf: |
    actions: "allocate"
    tiers: []
---
apiVersion: v1
kind: Node
metadata: {name: n0}
status: {allocatable: {cpu: 4}}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: other}
"""
    snapshot = Snapshot.load(text)
    assert [found["metadata"]["name"] for found in snapshot.nodes] == ["n0"]
    assert snapshot.conf.startswith('actions: "allocate"')
    assert Snapshot.of([]).conf == DEFAULT
