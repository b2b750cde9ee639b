"""What any `cluster.port.Cluster` does with pods: bound, evicted, deleted."""

from __future__ import annotations

import pytest

from cluster.errors import Conflict, NotFound
from cluster.kinds import POD
from cluster.port import Binding, Cluster
from tests.cluster.port_objects import NS, Suite, pod


class PodSuite(Suite):
    """What of the port's promises is about pods."""

    def test_a_pod_is_bound_once_with_its_annotations(self, port: Cluster) -> None:
        made = port.create(POD, pod("p", annotations={"old": "1"}))
        uid = made["metadata"]["uid"]
        port.bind(Binding(NS, "p", uid, "n1", {"basalt.dev/gpu-indices": "0,3"}))
        bound = port.get(POD, "p", NS)
        assert bound["spec"]["nodeName"] == "n1"
        assert bound["metadata"]["annotations"] == {"old": "1", "basalt.dev/gpu-indices": "0,3"}
        assert [(c["type"], c["status"]) for c in bound["status"]["conditions"]] == [("PodScheduled", "True")]
        with pytest.raises(Conflict):
            port.bind(Binding(NS, "p", uid, "n2"))

    def test_many_bindings_tell_each_outcome_in_order(self, port: Cluster) -> None:
        uids = {name: port.create(POD, pod(name))["metadata"]["uid"] for name in ("a", "b", "c")}
        outcomes = port.bind_many(
            [
                Binding(NS, "a", uids["a"], "n1"),
                Binding(NS, "missing", "x", "n1"),
                Binding(NS, "b", "00000000-0000-4000-8000-000000000000", "n1"),
                Binding(NS, "c", uids["c"], "n1"),
            ]
        )
        assert [(o.name, type(o.error)) for o in outcomes] == [
            ("a", type(None)), ("missing", NotFound), ("b", Conflict), ("c", type(None)),
        ]  # fmt: skip
        assert [type(o.error) for o in port.bind_many([Binding(NS, "a", uids["a"], "n2")])] == [Conflict]
        assert [p["metadata"]["name"] for p in port.list(POD, NS, fields="spec.nodeName=n1").items] == ["a", "c"]

    def test_a_pod_without_a_node_goes_at_once_and_one_with_a_node_has_grace(self, port: Cluster) -> None:
        for name in ("free", "bound"):
            port.create(POD, pod(name))
        port.bind(Binding(NS, "bound", "", "n1"))
        port.delete(POD, "free", NS)
        port.delete(POD, "bound", NS)
        meta = port.get(POD, "bound", NS)["metadata"]
        assert (meta["deletionGracePeriodSeconds"], bool(meta["deletionTimestamp"])) == (30, True)
        with pytest.raises(NotFound):
            port.get(POD, "free", NS)
        with pytest.raises(Conflict):
            port.bind(Binding(NS, "bound", "", "n2"))
        port.delete(POD, "bound", NS, grace_seconds=0)
        with pytest.raises(NotFound):
            port.get(POD, "bound", NS)

    def test_an_evicted_pod_says_why_and_is_deleted(self, port: Cluster) -> None:
        port.create(POD, pod("p"))
        port.bind(Binding(NS, "p", "", "n1"))
        with pytest.raises(Conflict):
            port.evict(NS, "p", uid="00000000-0000-4000-8000-000000000000")
        port.evict(NS, "p", reason="Preempted", message="for somebody else")
        evicted = port.get(POD, "p", NS)
        target = next(c for c in evicted["status"]["conditions"] if c["type"] == "DisruptionTarget")
        assert (target["status"], target["reason"], target["message"]) == ("True", "Preempted", "for somebody else")
        assert evicted["metadata"]["deletionTimestamp"]
