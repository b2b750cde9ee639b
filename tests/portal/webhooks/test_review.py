"""Reviews: what comes in, what the rules fill in and refuse, and what an API server is told."""

from __future__ import annotations

import json
from base64 import b64decode
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cluster.admission import admission
from cluster.embedded import patches
from cluster.embedded.store import EmbeddedCluster
from cluster.errors import BadRequest
from cluster.kinds import JOB, POD_GROUP, QUEUE, Kind
from portal.webhooks import review
from portal.webhooks.difference import json_patch
from portal.webhooks.pending import HELD_SECONDS, Pending

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 3) | st.text("a/~", max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text("ab/~", max_size=2), inner, max_size=3),
    max_leaves=8,
)
TASK = {"name": "worker", "replicas": 2, "template": {"spec": {"containers": [{"name": "main", "image": "busybox"}]}}}


@given(st.dictionaries(st.text("ab/~", max_size=2), VALUES), st.dictionaries(st.text("ab/~", max_size=2), VALUES))
def test_a_patch_makes_the_new_of_the_old(old: dict[str, Any], new: dict[str, Any]) -> None:
    made = patches.json_patch(json.loads(json.dumps(old)), json_patch(old, new))
    assert json.dumps(made, sort_keys=True) == json.dumps(new, sort_keys=True)


def test_what_is_equal_needs_no_patch_and_true_is_not_one() -> None:
    assert json_patch({"a": [1, {"b": 2}]}, {"a": [1, {"b": 2}]}) == []
    assert json_patch({"a": 1}, {"a": True}) == [{"op": "replace", "path": "/a", "value": True}]
    assert json_patch({"a": {"x/y": 1}}, {"a": {"x/y": 1, "z": 2}}) == [{"op": "add", "path": "/a/z", "value": 2}]


def asked(
    kind: Kind, obj: dict[str, Any] | None, old: dict[str, Any] | None = None, *, operation: str = "CREATE", **more: Any
) -> bytes:
    said = {"group": kind.group, "version": kind.version, "kind": kind.kind}
    request = {
        "uid": "u-1",
        "operation": operation,
        "kind": said,
        "object": obj,
        "oldObject": old,
        "namespace": "default",
        **more,
    }
    return json.dumps({"apiVersion": review.API_VERSION, "kind": "AdmissionReview", "request": request}).encode()


def job(name: str = "j", **spec: Any) -> dict[str, Any]:
    head = {"apiVersion": JOB.api_version, "kind": JOB.kind, "metadata": {"name": name}}
    return {**head, "spec": {"tasks": [TASK], **spec}}


@pytest.fixture
def cluster() -> EmbeddedCluster:
    cluster = EmbeddedCluster()
    for name in ("root", "default"):
        cluster.create(QUEUE, {"metadata": {"name": name}})
    return cluster


def validated(cluster: EmbeddedCluster, body: bytes, pending: Pending | None = None) -> dict[str, Any]:
    answer = review.validate(review.parse(body), admission, cluster, cluster, pending or Pending())
    assert (answer["apiVersion"], answer["kind"], answer["response"]["uid"]) == (review.API_VERSION, "AdmissionReview", "u-1")
    return answer["response"]


def mutated(cluster: EmbeddedCluster, body: bytes) -> list[dict[str, Any]]:
    response = review.mutate(review.parse(body), admission, cluster)["response"]
    assert response["allowed"] is True
    return json.loads(b64decode(response["patch"])) if "patch" in response else []


def test_defaults_come_as_a_json_patch(cluster: EmbeddedCluster) -> None:
    steps = mutated(cluster, asked(JOB, job()))
    assert {"op": "add", "path": "/spec/queue", "value": "default"} in steps
    assert {"op": "add", "path": "/spec/tasks/0/minAvailable", "value": 2} in steps
    assert all(not step["path"].startswith("/metadata") for step in steps)
    whole = patches.json_patch(job(), steps)
    assert mutated(cluster, asked(JOB, whole)) == []


def test_on_update_what_the_object_never_had_is_not_filled_in(cluster: EmbeddedCluster) -> None:
    old = job()
    assert mutated(cluster, asked(JOB, job(), old, operation="UPDATE")) == []
    whole = patches.json_patch(job(), mutated(cluster, asked(JOB, job())))
    again = mutated(cluster, asked(JOB, job(), whole, operation="UPDATE"))
    assert patches.json_patch(job(), again) == whole


def test_a_refusal_names_each_field_as_the_api_server_does(cluster: EmbeddedCluster) -> None:
    response = validated(cluster, asked(JOB, job(queue="none", plugins={"x.y": []}, minAvailable=5)))
    status = response["status"]
    assert (response["allowed"], status["code"], status["reason"]) == (False, 422, "Invalid")
    assert {cause["field"] for cause in status["details"]["causes"]} == {"spec.queue", "spec.plugins[x.y]", "spec.minAvailable"}
    assert (status["details"]["kind"], status["details"]["name"]) == ("Job", "j")


def test_a_copy_that_lags_refuses_nothing(cluster: EmbeddedCluster) -> None:
    response = review.validate(review.parse(asked(JOB, job())), admission, EmbeddedCluster(), cluster, Pending())["response"]
    assert response["allowed"] is True


def test_an_update_that_leaves_the_judged_part_alone_is_let_in(cluster: EmbeddedCluster) -> None:
    old = job(queue="gone", minAvailable=7)
    new = {**old, "metadata": {"name": "j", "finalizers": []}, "status": {"running": 1}}
    assert validated(cluster, asked(JOB, new, old, operation="UPDATE"))["allowed"] is True
    leaving = {**old, "metadata": {"name": "j", "deletionTimestamp": "2030-01-01T00:00:00Z", "finalizers": ["a"]}}
    other = {**job(queue="other"), "metadata": leaving["metadata"]}
    assert validated(cluster, asked(JOB, other, leaving, operation="UPDATE"))["allowed"] is True


def test_a_built_in_queue_cannot_be_deleted(cluster: EmbeddedCluster) -> None:
    old = cluster.get(QUEUE, "default")
    response = validated(cluster, asked(QUEUE, None, old, operation="DELETE"))
    assert (response["allowed"], response["status"]["code"]) == (False, 403)


def test_a_field_that_nobody_knows_is_kept_and_what_is_likely_meant_is_said(cluster: EmbeddedCluster) -> None:
    manifest = job()
    manifest["spec"]["minAvailabel"] = manifest["spec"].pop("minAvailable", 1)
    manifest["spec"]["tasks"][0]["template"]["spec"]["containers"][0]["comand"] = ["sleep"]
    response = validated(cluster, asked(JOB, manifest))
    assert response["allowed"]
    assert response["warnings"] == [
        "spec.tasks[0].template.spec.containers[0].comand: nobody knows this field, and it does nothing: command is meant?",
        "spec.minAvailabel: nobody knows this field, and it does nothing: minAvailable is meant?",
    ]


def test_warnings_say_what_may_keep_it_waiting(cluster: EmbeddedCluster) -> None:
    cluster.create(QUEUE, {"metadata": {"name": "small"}, "spec": {"capability": {"cpu": "1", "memory": "1Gi"}}})
    task = {**TASK, "template": {"spec": {"containers": [{"name": "m", "image": "i", "resources": {"requests": {"cpu": "1"}}}]}}}
    response = validated(cluster, asked(JOB, job(queue="small", schedulerName="other", priorityClassName="p", tasks=[task])))
    assert response["allowed"] is True
    assert response["warnings"] == [
        "spec.schedulerName: 'other' is not volcano or basalt, which Basalt serves: another scheduler has to place its pods",
        "spec.priorityClassName: there is no priority class 'p': it counts as 0 until there is",
        "spec.minAvailable: the gang minimum asks 2 cpu, queue 'small' may use 1: it cannot start as the queue stands",
    ]
    group = {"metadata": {"name": "g"}, "spec": {"minMember": 1, "queue": "small", "minResources": {"memory": "2Gi"}}}
    assert [text.partition(" asks")[0] for text in validated(cluster, asked(POD_GROUP, group))["warnings"]] == [
        "spec.minResources: the gang minimum"
    ]


def queue(name: str, cpu: str) -> dict[str, Any]:
    return {"metadata": {"name": name}, "spec": {"parent": "lab", "deserved": {"cpu": cpu}}}


def test_what_another_replica_let_in_counts_as_soon_as_it_is_kept(cluster: EmbeddedCluster) -> None:
    """Two webhooks share nothing but the cluster, which is what queues are weighed by."""
    one, other = Pending(), Pending()
    lab = {"metadata": {"name": "lab"}, "spec": {"deserved": {"cpu": "10"}}}
    child = asked(QUEUE, queue("child", "6"))
    assert not validated(cluster, child, other)["allowed"], "there is no parent yet"
    assert validated(cluster, asked(QUEUE, lab), one)["allowed"]
    cluster.create(QUEUE, lab)
    assert validated(cluster, child, other)["allowed"], "refused for a parent that is there"
    cluster.create(QUEUE, queue("child", "6"))
    refused = validated(cluster, asked(QUEUE, queue("second", "6")), one)
    assert not refused["allowed"], "let in beyond its parent, beside a child that the other replica let in"
    cluster.delete(QUEUE, "child")
    assert validated(cluster, asked(QUEUE, queue("second", "6")), one)["allowed"]


def test_a_queue_on_its_way_counts_until_it_is_there_or_given_up(cluster: EmbeddedCluster) -> None:
    now = [0.0]
    pending = Pending(lambda: now[0])
    cluster.create(QUEUE, {"metadata": {"name": "lab"}, "spec": {"deserved": {"cpu": "10"}}})

    def allowed(body: bytes) -> bool:
        return bool(validated(cluster, body, pending)["allowed"])

    assert allowed(asked(QUEUE, queue("tried", "8"), dryRun=True))
    assert allowed(asked(QUEUE, queue("a", "6")))
    assert not allowed(asked(QUEUE, queue("b", "6")))
    now[0] = HELD_SECONDS + 1  # the first never came
    assert allowed(asked(QUEUE, queue("b", "6")))
    kept = cluster.create(QUEUE, queue("b", "6"))
    assert not allowed(asked(QUEUE, queue("c", "6")))
    smaller = {**kept, "spec": {**kept["spec"], "deserved": {"cpu": "3"}}}
    assert allowed(asked(QUEUE, smaller, kept, operation="UPDATE"))
    assert allowed(asked(QUEUE, queue("c", "6")))


@pytest.mark.parametrize(
    ("body", "said"),
    [
        (b"{", "no JSON"),
        (b"[]", "AdmissionReview"),
        (b'{"apiVersion":"admission.k8s.io/v1beta1","kind":"AdmissionReview"}', "admission.k8s.io/v1"),
        (b'{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":{}}', "uid"),
        (asked(JOB, None), "comes with its object"),
        (asked(JOB, job(), operation="CONNECT"), "CREATE, UPDATE, DELETE"),
        (asked(JOB, job(), operation="UPDATE"), "comes with its object"),
        (asked(JOB, {"metadata": []}), "metadata is a mapping"),
    ],
)
def test_what_is_no_review_is_no_refusal_either(body: bytes, said: str) -> None:
    with pytest.raises(BadRequest, match=said):
        review.parse(body)


def test_a_kind_without_rules_is_let_in(cluster: EmbeddedCluster) -> None:
    other = Kind("example.org", "v1", "Thing", "things")
    assert validated(cluster, asked(other, {"metadata": {"name": "x"}}))["allowed"] is True
    assert mutated(cluster, asked(other, {"metadata": {"name": "x"}})) == []


@given(VALUES, VALUES)
def test_whatever_is_sent_is_answered_or_called_no_review(spec: Any, meta: Any) -> None:
    cluster = EmbeddedCluster()
    body = asked(JOB, {"apiVersion": JOB.api_version, "kind": "Job", "metadata": meta, "spec": spec})
    try:
        found = review.parse(body)
    except BadRequest:
        return
    review.mutate(found, admission, cluster)
    assert review.validate(found, admission, cluster, cluster, Pending())["response"]["allowed"] is False
