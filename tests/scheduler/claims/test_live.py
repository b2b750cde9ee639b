"""Claims through the whole loop: the scheduler, the port, and the embedded cluster's controllers of claims."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest

from cluster.admission import Admission
from cluster.clock import ManualClock
from cluster.embedded.claims import ClaimKeeper
from cluster.embedded.store import EmbeddedCluster
from cluster.errors import ApiError, Conflict
from cluster.kinds import CLAIM, NODE, POD, RESOURCE_CLAIM, STORAGE_CLASS, VOLUME, by_api
from cluster.port import Obj, Outcome
from scheduler import conf
from scheduler.loop import SchedulerLoop
from tests.scheduler.claims.make import (
    claim,
    device_class,
    mounting,
    request,
    resource_claim,
    slice_of,
    storage_class,
    template,
    using,
    volume,
)
from tests.scheduler.world import CONF, gang, node, queue

START = 1_900_000_000.0


class Live:
    """A cluster in memory with a scheduler that is stepped."""

    def __init__(self, *parts: Any, keeper: bool = True) -> None:
        self.clock = ManualClock(START)
        self.cluster = EmbeddedCluster(clock=self.clock, random=Random(0), admission=Admission())
        self.keeper = ClaimKeeper(self.cluster) if keeper else None
        self.create(queue("default"), *parts)
        self.scheduler = SchedulerLoop(self.cluster, conf.load(CONF), self.clock)

    def create(self, *parts: Any) -> None:
        for part in parts:
            for each in part if isinstance(part, list) else [part]:
                kind = by_api(each["apiVersion"], each["kind"])
                assert kind is not None
                meta = {key: value for key, value in each["metadata"].items() if key not in ("uid", "creationTimestamp")}
                made = self.cluster.create(kind, {**each, "metadata": meta})
                if each.get("status") and not made.get("status"):
                    self.cluster.patch_status(kind, meta["name"], meta.get("namespace", ""), each["status"])

    def step(self, times: int = 1) -> Live:
        for _ in range(times):
            if self.keeper is not None:
                self.keeper.settle()
            self.scheduler.step()
            if self.keeper is not None:
                self.keeper.settle()
            self.clock.advance(1)
        return self

    def nodes(self) -> dict[str, str]:
        return {pod["metadata"]["name"]: pod["spec"].get("nodeName", "") for pod in self.cluster.list(POD).items}

    def get(self, kind: Any, name: str) -> Obj:
        return self.cluster.get(kind, name, "default" if kind.namespaced else "")


def test_a_volume_is_asked_for_on_the_node_and_the_pod_bound_when_it_is_there() -> None:
    live = Live(node("n0"), storage_class("fast"), claim("data"), gang("a", 1, cpu=1, pod_spec=mounting("data")), keeper=False)
    live.step(2)
    assert live.nodes() == {"a-w-0": ""}, "not before the claim is bound"
    assert live.get(CLAIM, "data")["metadata"]["annotations"] == {"volume.kubernetes.io/selected-node": "n0"}
    live.keeper = ClaimKeeper(live.cluster)
    live.step()
    assert live.nodes() == {"a-w-0": "n0"}
    found = live.get(CLAIM, "data")
    assert (found["status"]["phase"], found["status"]["capacity"]) == ("Bound", {"storage": "1Gi"})
    made = live.get(VOLUME, found["spec"]["volumeName"])
    assert (made["spec"]["claimRef"]["uid"], made["status"]["phase"]) == (found["metadata"]["uid"], "Bound")


def test_an_existing_volume_is_reserved_for_its_claim() -> None:
    there = [storage_class("fast", "kubernetes.io/no-provisioner"), volume("pv", on="n1"), claim("data")]
    live = Live(node("n0"), node("n1"), there, gang("a", 1, cpu=1, pod_spec=mounting("data"))).step(2)
    assert live.nodes() == {"a-w-0": "n1"}
    assert live.get(CLAIM, "data")["spec"]["volumeName"] == "pv"


def test_a_claim_that_names_no_class_gets_the_standard_one_and_runs() -> None:
    plain = claim("data")
    del plain["spec"]["storageClassName"]
    live = Live(node("n0"), plain, gang("a", 1, cpu=1, pod_spec=mounting("data"))).step(2)
    assert live.nodes() == {"a-w-0": "n0"}
    assert [each["metadata"]["name"] for each in live.cluster.list(STORAGE_CLASS).items] == ["standard"]


def test_an_immediate_claim_is_bound_before_any_pod() -> None:
    live = Live(node("n0"), storage_class("fast", delayed=False), claim("data"))
    assert live.step().get(CLAIM, "data")["status"]["phase"] == "Bound"


def test_what_was_made_goes_with_its_claim_and_what_was_there_stays() -> None:
    there = [storage_class("fast"), storage_class("old", "kubernetes.io/no-provisioner"), volume("pv", of="old")]
    claims = [claim("data"), claim("kept", of="old")]
    live = Live(node("n0"), there, claims, gang("a", 1, cpu=1, pod_spec=mounting("data", "kept"))).step(2)
    assert len(live.cluster.list(VOLUME).items) == 2
    for name in ("data", "kept"):
        live.cluster.delete(CLAIM, name, "default")
    live.step()
    (left,) = live.cluster.list(VOLUME).items
    assert (left["metadata"]["name"], left["status"]["phase"]) == ("pv", "Released")


def test_a_claim_for_an_ephemeral_volume_is_made_for_its_pod_and_goes_with_it() -> None:
    spec = {"storageClassName": "fast", "accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    volumes = [{"name": "scratch", "ephemeral": {"volumeClaimTemplate": {"spec": spec}}}]
    live = Live(node("n0"), storage_class("fast"), gang("a", 1, cpu=1, pod_spec={"volumes": volumes})).step(2)
    assert live.nodes() == {"a-w-0": "n0"}
    assert live.get(CLAIM, "a-w-0-scratch")["status"]["phase"] == "Bound"
    live.cluster.delete(POD, "a-w-0", "default", grace_seconds=0)
    live.step()
    assert not live.cluster.list(CLAIM).items


def test_a_provisioner_that_gives_up_lets_the_pod_look_for_another_node() -> None:
    job = gang("a", 1, cpu=1, pod_spec=mounting("data"))
    live = Live(node("n0"), node("n1"), storage_class("fast"), claim("data"), job, keeper=False)
    live.step(2)
    assert live.get(CLAIM, "data")["metadata"]["annotations"]["volume.kubernetes.io/selected-node"] == "n0"
    live.scheduler.step()
    live.cluster.patch(CLAIM, "data", "default", {"metadata": {"annotations": {"volume.kubernetes.io/selected-node": None}}})
    live.cluster.patch(NODE, "n0", "", {"spec": {"unschedulable": True}})
    live.step(2)
    assert live.get(CLAIM, "data")["metadata"]["annotations"]["volume.kubernetes.io/selected-node"] == "n1"


def test_a_bind_is_given_up_when_claims_are_not_bound_in_time(monkeypatch: pytest.MonkeyPatch) -> None:
    live = Live(node("n0"), storage_class("fast"), claim("data"), gang("a", 1, cpu=1, pod_spec=mounting("data")), keeper=False)
    writer, lost = live.scheduler._writer, list[str]()
    real = writer.give_up
    monkeypatch.setattr(writer, "give_up", lambda binds: (lost.extend(b.name for b, _ in binds), real(binds))[1])
    live.step(2)
    live.clock.advance(597)
    live.step()
    assert lost == []
    live.clock.advance(2)
    live.step(2)
    assert lost == ["a-w-0"]
    assert live.nodes() == {"a-w-0": ""}
    assert live.scheduler.cache.nodes.used[0, 0] == 1000, "it is tried again at once"


# -- devices ---------------------------------------------------------------------------------------------------------------


def test_devices_are_written_into_the_claim_before_the_pod_is_bound_and_given_back_after_it() -> None:
    spec = {"resourceClaims": [{"name": "gpus", "resourceClaimTemplateName": "two"}]}
    live = Live(
        node("n0"), device_class(), slice_of("n0", 3), template("two", request(count=2)), gang("a", 1, cpu=1, pod_spec=spec)
    )
    live.step(2)
    assert live.nodes() == {"a-w-0": "n0"}
    pod = live.get(POD, "a-w-0")
    (said,) = pod["status"]["resourceClaimStatuses"]
    found = live.get(RESOURCE_CLAIM, said["resourceClaimName"])
    assert [result["device"] for result in found["status"]["allocation"]["devices"]["results"]] == ["gpu-0", "gpu-1"]
    assert found["status"]["reservedFor"] == [{"resource": "pods", "name": "a-w-0", "uid": pod["metadata"]["uid"]}]
    assert found["metadata"]["finalizers"] == ["resource.kubernetes.io/delete-protection"]
    live.cluster.delete(POD, "a-w-0", "default", grace_seconds=0)
    live.step()
    assert not live.cluster.list(RESOURCE_CLAIM).items


def test_a_named_claim_outlives_its_pod_and_gives_its_devices_back() -> None:
    live = Live(node("n0"), device_class(), slice_of("n0"), resource_claim("mine"), gang("a", 1, cpu=1, pod_spec=using("mine")))
    live.step(2)
    assert "allocation" in live.get(RESOURCE_CLAIM, "mine")["status"]
    live.cluster.patch_status(POD, "a-w-0", "default", {"phase": "Succeeded"})
    live.step()
    assert live.get(RESOURCE_CLAIM, "mine")["status"] == {}
    assert "finalizers" not in live.get(RESOURCE_CLAIM, "mine")["metadata"]


def test_devices_are_let_go_when_the_bind_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    live = Live(node("n0"), device_class(), slice_of("n0"), resource_claim("mine"), gang("a", 1, cpu=1, pod_spec=using("mine")))
    refuse: list[ApiError] = [Conflict("no")]
    real = live.cluster.bind_many
    monkeypatch.setattr(
        live.cluster, "bind_many",
        lambda binds: [Outcome(b.namespace, b.name, refuse.pop()) for b in binds] if refuse else real(binds),
    )  # fmt: skip
    live.step()
    assert live.get(RESOURCE_CLAIM, "mine").get("status", {}) in ({}, {"reservedFor": []})
    assert live.step(2).nodes() == {"a-w-0": "n0"}
