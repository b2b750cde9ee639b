"""Expansion, fields and amounts, as Kubernetes has them."""

import pytest

from cluster.admission import Admission
from cluster.embedded.processes.environment import ConfigError, Refused, Sources, environment, expand, field_value, resource_value
from cluster.embedded.store import EmbeddedCluster
from cluster.kinds import SECRET

POD = {
    "metadata": {"name": "p", "namespace": "default", "uid": "u", "labels": {"a": "1", "b": 'x"y'}, "annotations": {"k": "v"}},
    "spec": {"nodeName": "n", "containers": [{"name": "main", "resources": {"limits": {"cpu": "1500m", "memory": "1Gi"}}}]},
}


@pytest.fixture
def sources():
    return Sources(EmbeddedCluster(admission=Admission()), "127.16.0.1", "127.0.0.1", {"cpu": "64", "memory": "8Gi"})


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("$(A)-$(B)", "1-$(B)"),
        ("$$(A)", "$(A)"),
        ("$$$(A)", "$1"),
        ("$A ${A} $", "$A ${A} $"),
        ("$(A", "$(A"),
        ("$()", "$()"),
        ("a$(A)$(A)b", "a11b"),
    ],
)
def test_references_are_expanded(text, expected):
    assert expand(text, {"A": "1"}) == expected


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("metadata.name", "p"),
        ("metadata.labels['a']", "1"),
        ("metadata.annotations['none']", ""),
        ("metadata.labels", 'a="1"\nb="x\\"y"'),
        ("spec.nodeName", "n"),
        ("status.podIP", "127.16.0.1"),
        ("status.hostIP", "127.0.0.1"),
    ],
)
def test_fields_of_the_pod(sources, path, expected):
    assert field_value(POD, path, sources) == expected


def test_a_field_that_does_not_exist_is_refused(sources):
    with pytest.raises(Refused, match=r"no field 'metadata\.nme'"):
        field_value(POD, "metadata.nme", sources)


@pytest.mark.parametrize(
    ("resource", "divisor", "expected"),
    [
        ("limits.cpu", None, "2"),
        ("limits.cpu", "1m", "1500"),
        ("limits.memory", "1Mi", "1024"),
        ("requests.cpu", "1m", "1500"),
        ("limits.ephemeral-storage", None, "0"),
    ],
)
def test_amounts_are_rounded_up_in_units_of_the_divisor(sources, resource, divisor, expected):
    reference = {"resource": resource} | ({"divisor": divisor} if divisor else {})
    assert resource_value(POD, POD["spec"]["containers"][0], reference, sources) == expected


def test_a_limit_that_is_not_set_is_what_the_node_has(sources):
    assert resource_value(POD, {"name": "other"}, {"resource": "limits.cpu"}, sources) == "64"


def test_secrets_are_remembered_for_masking_and_optional_ones_may_miss(sources):
    sources.reader.create(SECRET, {"metadata": {"name": "s"}, "data": {"k": "c2VjcmV0LXZhbHVl", "bad-name ": "eA=="}})
    container = {
        "name": "main",
        "envFrom": [{"prefix": "P_", "secretRef": {"name": "s"}}, {"configMapRef": {"name": "none", "optional": True}}],
        "env": [{"name": "N", "valueFrom": {"secretKeyRef": {"name": "s", "key": "none", "optional": True}}}],
    }
    values = environment(POD, container, sources, "")
    assert values["P_k"] == "secret-value"
    assert "P_bad-name " not in values
    assert "N" not in values
    assert "secret-value" in sources.secrets


def test_a_missing_key_is_said(sources):
    sources.reader.create(SECRET, {"metadata": {"name": "s"}, "data": {}})
    container = {"env": [{"name": "N", "valueFrom": {"secretKeyRef": {"name": "s", "key": "k"}}}]}
    with pytest.raises(ConfigError, match="Secret default/s has no key 'k'"):
        environment(POD, container, sources, "")
