"""Admission of the cluster's own kinds."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from cluster import documents
from cluster.embedded.store import EmbeddedCluster
from cluster.errors import Invalid
from cluster.kinds import CONFIG_MAP, HYPER_NODE, NODE, NUMATOPOLOGY, POD, Kind
from cluster.port import Obj

TOPOLOGY, UNHEALTHY = "/metadata/annotations/basalt.dev~1gpu-topology", "/metadata/annotations/volcano.sh~1gpu-unhealthy-ids"


def member(**selector: Any) -> Obj:
    return {"spec": {"tier": 1, "members": [{"type": "Node", "selector": selector}]}}


def cpus(allocatable: str) -> Obj:
    return {"spec": {"cpuDetail": {"0": {"numa": 0}}, "numares": {"cpu": {"allocatable": allocatable, "capacity": 1}}}}


@pytest.mark.parametrize(
    ("kind", "obj", "pointer"),
    [
        (NODE, {"status": {"allocatable": {"cpu": "2cpus"}}}, "/status/allocatable/cpu"),
        (NODE, {"status": {"capacity": {"memory": "1e300"}}}, "/status/capacity/memory"),
        (NODE, {"status": {"allocatable": {"cpu": -1}}}, "/status/allocatable/cpu"),
        (NODE, {"status": []}, "/status"),
        (NODE, {"spec": {"unschedulable": "yes"}}, "/spec/unschedulable"),
        (NODE, {"spec": {"taints": [{"key": "k", "effect": "Sometimes"}]}}, "/spec/taints/0/effect"),
        (NODE, {"metadata": {"annotations": {"basalt.dev/gpu-topology": "GPU0 GPU1"}}}, TOPOLOGY),
        (NODE, {"metadata": {"annotations": {"volcano.sh/gpu-unhealthy-ids": "0;1"}}}, UNHEALTHY),
        (HYPER_NODE, {}, "/spec"),
        (HYPER_NODE, {"spec": {"tier": 1, "members": []}}, "/spec/members"),
        (HYPER_NODE, {"spec": {"tier": -1}}, "/spec/tier"),
        (HYPER_NODE, member(), "/spec/members/0/selector"),
        (HYPER_NODE, member(exactMatch={"name": "a"}, regexMatch={"pattern": "a"}), "/spec/members/0/selector"),
        (HYPER_NODE, member(regexMatch={"pattern": "("}), "/spec/members/0/selector/regexMatch/pattern"),
        (HYPER_NODE, {"spec": {"tier": 2, "members": [{"type": "Rack", "selector": {}}]}}, "/spec/members/0/type"),
        (
            HYPER_NODE,
            {"spec": {"tier": 2, "members": [{"type": "HyperNode", "selector": {"regexMatch": {"pattern": "a"}}}]}},
            "/spec/members/0/selector/regexMatch",
        ),
        (CONFIG_MAP, {"data": {"k": 1}}, "/data/k"),
        (NUMATOPOLOGY, {"spec": []}, "/spec"),
        (NUMATOPOLOGY, {"spec": {"policies": {"CPUManagerPolicy": "fixed"}}}, "/spec/policies/CPUManagerPolicy"),
        (NUMATOPOLOGY, {"spec": {"policies": {"TopologyManagerPolicy": "strict"}}}, "/spec/policies/TopologyManagerPolicy"),
        (NUMATOPOLOGY, {"spec": {"cpuDetail": {"a": {"numa": 0}}}}, "/spec/cpuDetail/a"),
        (NUMATOPOLOGY, {"spec": {"cpuDetail": {"4096": {}}}}, "/spec/cpuDetail/4096"),
        (NUMATOPOLOGY, {"spec": {"cpuDetail": {"0": {"numa": -1}}}}, "/spec/cpuDetail/0/numa"),
        (NUMATOPOLOGY, cpus("0,2-1"), "/spec/numares/cpu/allocatable"),
        (NUMATOPOLOGY, cpus("0-1"), "/spec/numares/cpu/allocatable"),
        (NUMATOPOLOGY, {"spec": {"resReserved": {"cpu": "two"}}}, "/spec/resReserved/cpu"),
        (NUMATOPOLOGY, {"spec": {"podAllocations": [{"uid": 3}]}}, "/spec/podAllocations/0/uid"),
    ],
)
def test_what_is_wrong_is_refused_with_its_place(cluster: EmbeddedCluster, kind: Kind, obj: Obj, pointer: str) -> None:
    metadata = {"name": "x", **obj.get("metadata", {})}
    with pytest.raises(Invalid) as caught:
        cluster.create(kind, {**obj, "metadata": metadata})
    assert [fault.pointer for fault in caught.value.fields] == [pointer]


def test_what_a_kubelet_tells_of_its_cpus_is_taken(cluster: EmbeddedCluster) -> None:
    pods = [{"uid": "u", "name": "p", "namespace": "n", "containerAllocations": [{"name": "c", "allocations": {"cpu": "0"}}]}]
    spec = {"policies": {"CPUManagerPolicy": "static", "TopologyManagerPolicy": "restricted"}, "podAllocations": pods}
    cluster.create(NUMATOPOLOGY, {"metadata": {"name": "n0"}, "spec": {**cpus("0")["spec"], **spec, "resReserved": {"cpu": "1"}}})
    assert cluster.get(NUMATOPOLOGY, "n0")["spec"]["cpuDetail"] == {"0": {"numa": 0}}


def test_real_hypernodes_are_taken(cluster: EmbeddedCluster, shared_dir: Path) -> None:
    for document in documents.load((shared_dir / "data/manifests/hypernodes-leaf-four.yaml").read_bytes()):
        cluster.create(HYPER_NODE, document.obj)
    assert len(cluster.list(HYPER_NODE).items) >= 4


@pytest.mark.parametrize(
    ("change", "pointers"),
    [
        ({"spec": {"nodeName": "n"}}, ["/spec/nodeName"]),
        ({"spec": {"restartPolicy": "Never"}}, ["/spec/restartPolicy"]),
        ({"spec": {"containers": [{"name": "c", "image": "other"}]}}, []),
        ({"spec": {"containers": [{"name": "c", "image": "i", "command": ["x"]}]}}, ["/spec/containers"]),
        ({"spec": {"activeDeadlineSeconds": 5}}, []),
        ({"spec": {"tolerations": [{"operator": "Exists"}]}}, ["/spec/tolerations"]),
        ({"spec": {"tolerations": [{"key": "k", "operator": "Exists"}, {"operator": "Exists"}]}}, []),
        ({"spec": {"schedulingGates": []}}, []),
        ({"spec": {"schedulingGates": [{"name": "example.com/more"}]}}, ["/spec/schedulingGates"]),
        ({"metadata": {"labels": {"a": "b"}}}, []),
    ],
)
def test_little_may_change_in_a_pod(cluster: EmbeddedCluster, change: Obj, pointers: list[str]) -> None:
    spec = {
        "containers": [{"name": "c", "image": "i"}],
        "tolerations": [{"key": "k", "operator": "Exists"}],
        "schedulingGates": [{"name": "example.com/wait"}],
    }
    cluster.create(POD, {"metadata": {"name": "p"}, "spec": spec})
    found: list[str] = []
    try:
        cluster.patch(POD, "p", "default", change)
    except Invalid as error:
        found = [fault.pointer for fault in error.fields]
    assert found == pointers


def test_gpus_that_a_pod_holds_are_figures(cluster: EmbeddedCluster) -> None:
    pod: Obj = {"metadata": {"name": "p", "annotations": {"basalt.dev/gpu-indices": "a,b"}}}
    pod["spec"] = {"containers": [{"name": "c", "image": "i"}]}
    with pytest.raises(Invalid) as caught:
        cluster.create(POD, pod)
    assert [fault.pointer for fault in caught.value.fields] == ["/metadata/annotations/basalt.dev~1gpu-indices"]


def test_a_pod_that_asks_for_its_queues_gate_is_given_it() -> None:
    from cluster.admission import Admission
    from cluster.embedded.store import EmbeddedCluster
    from cluster.kinds import POD
    from cluster.objects import QUEUE_GATE
    from cluster.rules import RULES

    admission = Admission()
    admission.register(POD, RULES[POD])
    store = EmbeddedCluster(admission=admission)

    def gates(name: str, asks: str = "") -> object:
        meta = {"name": name, "namespace": "default", "annotations": {QUEUE_GATE: asks} if asks else {}}
        return store.create(POD, {"metadata": meta, "spec": {"containers": []}})["spec"].get("schedulingGates")

    assert gates("a", asks="true") == [{"name": QUEUE_GATE}]
    assert gates("b", asks="false") is None
    assert gates("c") is None
    opened = store.patch(POD, "a", "default", {"spec": {"schedulingGates": None}})
    assert "schedulingGates" not in opened["spec"]
