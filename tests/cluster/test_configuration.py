"""ConfigMaps, Secrets, Services and NetworkPolicies: what is kept, what is refused, and where the fault is."""

import base64

import pytest

from cluster.embedded.store import EmbeddedCluster
from cluster.errors import Invalid
from cluster.kinds import CONFIG_MAP, NETWORK_POLICY, SECRET, SERVICE


def encoded(text):
    return base64.b64encode(text.encode()).decode()


@pytest.fixture
def cluster():
    return EmbeddedCluster()


def obj(**fields):
    return {"metadata": {"name": "it", "namespace": "default"}, **fields}


def faults(cluster, kind, **fields):
    with pytest.raises(Invalid) as refused:
        cluster.create(kind, obj(**fields))
    return [fault.pointer for fault in refused.value.fields]


class TestSecret:
    def test_texts_are_folded_into_the_data_and_win(self, cluster):
        made = cluster.create(SECRET, obj(data={"a": encoded("old"), "b": encoded("kept")}, stringData={"a": "new"}))
        assert made["data"] == {"a": encoded("new"), "b": encoded("kept")}
        assert "stringData" not in made
        assert made["type"] == "Opaque"

    @pytest.mark.parametrize("patch_type", ["merge", "apply", "json"])
    def test_every_patch_folds_texts(self, cluster, patch_type):
        cluster.create(SECRET, obj(data={"a": encoded("old")}))
        texts = {"a": "new", "c": "more"}
        body = [{"op": "add", "path": "/stringData", "value": texts}] if patch_type == "json" else {"stringData": texts}
        made = cluster.patch(SECRET, "it", "default", body, patch_type=patch_type, field_manager="me")
        assert made["data"] == {"a": encoded("new"), "c": encoded("more")}
        assert "stringData" not in made
        assert "new" not in str(made["metadata"])

    def test_no_fault_repeats_a_value(self, cluster):
        with pytest.raises(Invalid) as refused:
            cluster.create(SECRET, obj(data={"a": "hunter2!", "b": 271828}, stringData={"c": ["hunter3"]}))
        told = str(refused.value) + str(refused.value.fields)
        assert [fault.pointer for fault in refused.value.fields] == ["/stringData/c", "/data/a", "/data/b"]
        assert not any(value in told for value in ("hunter", "271828"))

    def test_the_type_stays(self, cluster):
        cluster.create(SECRET, obj(type="kubernetes.io/tls"))
        with pytest.raises(Invalid) as refused:
            cluster.patch(SECRET, "it", "default", {"type": "Opaque"})
        assert [fault.pointer for fault in refused.value.fields] == ["/type"]


@pytest.mark.parametrize(
    ("fields", "where"),
    [
        ({"data": {"a/b": "x"}}, ["/data/a~1b"]),
        ({"data": {"..": "x"}}, ["/data/.."]),
        ({"data": {"a": 1}}, ["/data/a"]),
        ({"data": ["a"]}, ["/data"]),
        ({"data": {"a": "x"}, "binaryData": {"a": "eA=="}}, ["/binaryData/a"]),
        ({"binaryData": {"a": "not base64"}}, ["/binaryData/a"]),
        ({"data": {"a": "é" * 524_288, "b": "x"}}, ["/data"]),
        ({"immutable": "yes"}, ["/immutable"]),
    ],
)  # fmt: skip
def test_a_config_map_is_refused_where_it_is_wrong(cluster, fields, where):
    assert faults(cluster, CONFIG_MAP, **fields) == where


def test_a_config_map_holds_a_mebibyte(cluster):
    assert cluster.create(CONFIG_MAP, obj(data={"a": "é" * 524_288}))["data"]


@pytest.mark.parametrize("kind", [CONFIG_MAP, SECRET], ids=str)
def test_what_is_immutable_stays(cluster, kind):
    cluster.create(kind, obj(data={"a": "eA=="}, immutable=True))
    for change, where in (({"data": {"a": "eQ=="}}, "/data"), ({"immutable": False}, "/immutable")):
        with pytest.raises(Invalid) as refused:
            cluster.patch(kind, "it", "default", change)
        assert [fault.pointer for fault in refused.value.fields] == [where]
    assert cluster.patch(kind, "it", "default", {"metadata": {"labels": {"a": "b"}}})["metadata"]["labels"] == {"a": "b"}


@pytest.mark.parametrize(
    ("spec", "where"),
    [
        ({}, ["/spec/ports"]),
        ({"ports": [{"port": 0}]}, ["/spec/ports/0/port"]),
        ({"ports": [{"port": 80}, {"port": 81, "name": "b"}]}, ["/spec/ports/0/name"]),
        ({"ports": [{"port": 80, "name": "a"}, {"port": 80, "name": "a"}]}, ["/spec/ports/1/name", "/spec/ports/1/port"]),
        ({"ports": [{"port": 80, "targetPort": "NO"}]}, ["/spec/ports/0/targetPort"]),
        ({"ports": [{"port": 80, "targetPort": 70_000}]}, ["/spec/ports/0/targetPort"]),
        ({"clusterIP": "here", "ports": [{"port": 80}]}, ["/spec/clusterIP"]),
        ({"clusterIP": "None", "type": "NodePort"}, ["/spec/clusterIP"]),
        ({"type": "ExternalName"}, ["/spec/externalName"]),
        ({"clusterIP": "None", "selector": {"a b": "c"}}, ["/spec/selector/a b"]),
    ],
)  # fmt: skip
def test_a_service_is_refused_where_it_is_wrong(cluster, spec, where):
    assert faults(cluster, SERVICE, spec=spec) == where


def test_a_headless_service_needs_no_ports_and_stays_headless(cluster):
    made = cluster.create(SERVICE, obj(spec={"clusterIP": "None", "selector": {"a": "b"}}))
    assert made["spec"]["type"] == "ClusterIP"
    with pytest.raises(Invalid, match="cannot change"):
        cluster.patch(SERVICE, "it", "default", {"spec": {"clusterIP": "10.0.0.1"}})


@pytest.mark.parametrize(
    ("spec", "where"),
    [
        ({}, ["/spec/podSelector"]),
        ({"podSelector": {}, "policyTypes": ["Inside"]}, ["/spec/policyTypes/0"]),
        ({"podSelector": {"matchLabels": {"a": "b c"}}}, ["/spec/podSelector/matchLabels/a"]),
        ({"podSelector": {}, "ingress": [{"from": "all"}]}, ["/spec/ingress/0/from"]),
        ({"podSelector": {}, "ingress": [{"from": [{}]}]}, ["/spec/ingress/0/from/0"]),
        (
            {"podSelector": {}, "egress": [{"to": [{"ipBlock": {"cidr": "0.0.0.0/0"}, "podSelector": {}}]}]},
            ["/spec/egress/0/to/0/ipBlock"],
        ),
        (
            {"podSelector": {"matchExpressions": [{"key": "a", "operator": "In"}]}},
            ["/spec/podSelector/matchExpressions/0/values"],
        ),
    ],
)
def test_a_network_policy_is_refused_where_it_is_wrong(cluster, spec, where):
    assert faults(cluster, NETWORK_POLICY, spec=spec) == where


def test_a_network_policy_says_what_it_is_about(cluster):
    assert cluster.create(NETWORK_POLICY, obj(spec={"podSelector": {}}))["spec"]["policyTypes"] == ["Ingress"]
    both = {"metadata": {"name": "both"}, "spec": {"podSelector": {}, "egress": [{}]}}
    assert cluster.create(NETWORK_POLICY, both)["spec"]["policyTypes"] == ["Ingress", "Egress"]
