"""Refusals say the same in every language, made from one template."""

import json
import pickle

import pytest
import yaml
from django.conf import settings
from django.utils import translation

from cluster import documents
from cluster.errors import ApiError
from cluster.said import said, words
from jobs import manifest
from jobs.submit.shapes import BY_KEY
from tests.jobs.manifests import Queues

LANGUAGES = [code for code, _name in settings.LANGUAGES]


def test_a_sentence_is_an_ordinary_text_that_can_be_said_again():
    inner = said("use at most 63 lower-case letters, digits and '-', beginning and ending with a letter or digit")
    told = said("%(name)r is no DNS label: %(advice)s", name="A", advice=inner)
    assert told == f"'A' is no DNS label: {inner}"
    assert json.loads(json.dumps({"a": told}))["a"] == told
    assert yaml.safe_load(documents.dump({"a": told}))["a"] == told
    assert words(pickle.loads(pickle.dumps(told))) == words(told)
    assert words("anything else") == "anything else"
    with translation.override("zh-hans"):
        assert words(told) != told
        assert "'A'" in words(told)
        assert str(inner) not in words(told)


def test_a_percent_sign_stays_one():
    assert words(said("100%")) == "100%"


FAULTS = {
    "metadata": {"name": "Bad_Name", "labels": {"a b": "c"}},
    "spec": {
        "queue": "nowhere",
        "minAvailable": -1,
        "plugins": {"nothing": [], "svc": ["--what"]},
        "policies": [{"event": "Never", "action": "Nothing"}, {"event": "PodFailed", "exitCode": 1, "action": "RestartJob"}],
        "networkTopology": {"mode": "medium"},
        "volumes": [{"mountPath": "/a:b"}],
        "tasks": [
            {"name": "A", "replicas": "many", "dependsOn": {"name": ["x"]}, "template": {"spec": {"containers": []}}},
            {
                "name": "b",
                "replicas": 1,
                "minAvailable": 3,
                "template": {
                    "spec": {
                        "tolerations": [{"operator": "Exists", "value": "x"}],
                        "containers": [
                            {
                                "name": "c",
                                "image": " ",
                                "env": [{"name": "a=b"}],
                                "volumeMounts": [{"name": "none", "mountPath": "/x"}],
                                "resources": {"limits": {"cpu": "2cpus", "memory": "1Gi"}, "requests": {"memory": "2Gi"}},
                            }
                        ],
                    }
                },
            },
        ],
    },
}


def test_every_fault_of_a_manifest_is_said_in_chinese_too():
    job = {"apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job", **json.loads(json.dumps(FAULTS))}
    faults = manifest.validate(job, Queues())
    assert len(faults) > 12
    with translation.override("zh-hans"):
        plain = [fault for fault in faults if words(fault.message) == fault.message]
    assert plain == []


@pytest.mark.parametrize("text", ["a: [", "a: 1\na: 2", "- 1", "a: *b", "a: !x 1", "{[1]: 2}", "a: \x00"])
def test_what_is_no_yaml_is_said_in_chinese_too(text):
    with pytest.raises(ApiError) as caught:
        documents.load(text)
    with translation.override("zh-hans"):
        assert all(words(fault.message) != fault.message for fault in caught.value.fields)


def test_shapes_have_no_fault_to_tell():
    job = documents.load(BY_KEY["single"].manifest("fine"))[0].obj
    manifest.default(job)
    assert manifest.validate(job, Queues()) == []
