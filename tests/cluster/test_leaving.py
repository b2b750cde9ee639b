"""Which pods leave a node that is drained, by kubectl's rules."""

import pytest

from cluster.leaving import DRAIN, Stay, drain_of, has_local_data, is_bare, why_stays


def pod(owner="", phase="Running", volumes=(), **notes):
    references = [{"kind": owner, "name": "x", "uid": "u", "apiVersion": "apps/v1", "controller": True}] if owner else []
    meta = {"name": "p", "namespace": "default", "ownerReferences": references, "annotations": notes}
    return {"metadata": meta, "spec": {"volumes": list(volumes)}, "status": {"phase": phase}}


@pytest.mark.parametrize(
    ("obj", "why"),
    [
        (pod("DaemonSet"), Stay.DAEMON), (pod("DaemonSet", "Succeeded"), Stay.DAEMON),
        (pod(**{"kubernetes.io/config.mirror": "h"}), Stay.STATIC), (pod("ReplicaSet", "Succeeded"), Stay.ENDED),
        (pod("Job", "Failed"), Stay.ENDED), (pod("Job"), None), (pod("ReplicaSet", "Pending"), None), (pod(), None),
    ],
)  # fmt: skip
def test_who_stays_and_why(obj, why):
    assert why_stays(obj) is why


def test_bare_pods_have_no_controller():
    owned = pod("ReplicaSet")
    owned["metadata"]["ownerReferences"][0]["controller"] = False
    assert (is_bare(pod()), is_bare(pod("ReplicaSet")), is_bare(owned)) == (True, False, True)


def test_an_empty_dir_is_local_data_in_memory_too():
    assert has_local_data(pod(volumes=[{"name": "a", "emptyDir": {"medium": "Memory"}}]))
    assert not has_local_data(pod(volumes=[{"name": "a", "hostPath": {"path": "/x"}}, {"name": "b", "configMap": {}}]))


def test_a_node_is_drained_while_it_is_cordoned_and_marked():
    marked = {"metadata": {"annotations": {DRAIN: "7"}}, "spec": {"unschedulable": True}}
    assert drain_of(marked) == "7"
    assert drain_of({**marked, "spec": {}}) == ""
    assert drain_of({"metadata": {}, "spec": {"unschedulable": True}}) == ""
