"""Apply: all documents or none, what others name first, and every fault where it is."""

import json

import pytest

from cluster import runtime
from cluster.documents import load
from cluster.embedded.store import EmbeddedCluster
from cluster.errors import NotFound
from cluster.kinds import JOB, NAMESPACE, POD, POD_GROUP, QUEUE
from cluster.rest.problems import Refused, faults_of
from jobs.models import Job
from portal.apply import apply, in_order
from queues.models import Queue
from tests.scheduler.claims.make import claim

pytestmark = pytest.mark.django_db

JOB_YAML = """
apiVersion: batch.volcano.sh/v1alpha1
kind: Job
metadata: {{name: {name}, annotations: {{basalt.dev/owner: somebody}}}}
spec:
  queue: {queue}
  minAvailable: {least}
  tasks:
  - name: w
    replicas: 1
    template:
      spec:
        containers: [{{name: c, image: i}}]
"""
QUEUE_YAML = """
apiVersion: scheduling.volcano.sh/v1beta1
kind: Queue
metadata: {{name: {name}}}
spec: {{weight: {weight}, parent: {parent}}}
"""


def bundle(*texts: str):
    return load("\n---\n".join(texts))


@pytest.fixture
def cluster():
    found = EmbeddedCluster()
    for name in ("root", "default"):
        found.create(QUEUE, {"metadata": {"name": name}, "spec": {"weight": 1}})
    return found


def refused(cluster, documents, user):
    with pytest.raises(Refused) as caught:
        apply(cluster, documents, user=user)
    return [fault for refusal in caught.value.refusals for fault in faults_of(refusal)]


def test_a_job_may_name_a_queue_that_comes_after_it_and_whose_parent_comes_last(cluster, make_user):
    documents = bundle(
        JOB_YAML.format(name="a", queue="child", least=1),
        QUEUE_YAML.format(name="child", weight=1, parent="parent"),
        QUEUE_YAML.format(name="parent", weight=1, parent="root"),
    )
    results = apply(cluster, documents, user=make_user(staff=True))
    assert [(r.item.kind.kind, r.status) for r in results] == [("Job", "created"), ("Queue", "created"), ("Queue", "created")]
    assert Job.objects.get().owner == "ada"
    assert Queue.objects.filter(name="child", parent="parent").exists()


def test_one_refusal_writes_nothing_and_names_document_line_and_field(cluster, make_user):
    documents = bundle(QUEUE_YAML.format(name="q", weight=1, parent="root"), JOB_YAML.format(name="a", queue="q", least=7))
    (fault,) = refused(cluster, documents, make_user(staff=True))
    assert (fault["pointer"], fault["document"], fault["line"]) == ("/spec/minAvailable", 1, 14)
    with pytest.raises(NotFound):
        cluster.get(QUEUE, "q")
    assert not Job.objects.exists()


def test_a_dry_run_writes_nothing(cluster, make_user):
    documents = bundle(QUEUE_YAML.format(name="q", weight=1, parent="root"), JOB_YAML.format(name="a", queue="q", least=1))
    results = apply(cluster, documents, user=make_user(staff=True), dry_run=True)
    assert [r.status for r in results] == ["created", "created"]
    assert cluster.list(JOB).items == []


def test_what_is_there_is_configured_or_unchanged(cluster, make_user):
    user = make_user(staff=True)
    first = bundle(QUEUE_YAML.format(name="q", weight=1, parent="root"), JOB_YAML.format(name="a", queue="q", least=1))
    apply(cluster, first, user=user)
    again = apply(cluster, first, user=user)
    assert [r.status for r in again] == ["unchanged", "unchanged"]
    heavier = apply(cluster, bundle(QUEUE_YAML.format(name="q", weight=3, parent="root")), user=user)
    assert [r.status for r in heavier] == ["configured"]
    assert Queue.objects.get(name="q").weight == 3


@pytest.mark.parametrize(
    ("text", "pointer", "code", "says"),
    [
        (
            "apiVersion: training.volcano.sh/v1alpha1\nkind: HyperJob\nmetadata: {name: a}",
            "/kind",
            "not_served",
            "not served yet",
        ),
        (
            "apiVersion: ray.io/v1\nkind: RayCluster\nmetadata: {name: a}",
            "/kind",
            "unknown",
            "Queue (scheduling.volcano.sh/v1beta1)",
        ),
        ("apiVersion: batch/v1\nkind: Job\nmetadata: {name: a}", "/apiVersion", "unknown", "batch.volcano.sh/v1alpha1"),
        ("apiVersion: bus.volcano.sh/v1alpha1\nkind: Command\nmetadata: {name: a}", "/kind", "not_applied", "not applied"),
        ("apiVersion: v1\nmetadata: {name: a}", "/kind", "required", "kind"),
        ("apiVersion: v1\nkind: Pod", "/metadata", "required", "name"),
    ],
)
def test_kinds_that_are_not_taken_are_refused_with_what_is(cluster, make_user, text, pointer, code, says):
    (fault,) = refused(cluster, load(text), make_user(staff=True))
    assert (fault["pointer"], fault["code"]) == (pointer, code)
    assert says in fault["detail"]


def test_the_same_object_twice_is_refused(cluster, make_user):
    text = QUEUE_YAML.format(name="q", weight=1, parent="root")
    (fault,) = refused(cluster, bundle(text, text), make_user(staff=True))
    assert (fault["pointer"], fault["document"]) == ("/metadata/name", 1)


def test_rights_are_asked_for_each_document_before_anything_is_written(cluster, make_user):
    documents = bundle(JOB_YAML.format(name="a", queue="default", least=1), QUEUE_YAML.format(name="q", weight=1, parent="root"))
    faults = refused(cluster, documents, make_user())
    assert [(fault["document"], fault["code"]) for fault in faults] == [(1, "Forbidden")]
    assert cluster.list(JOB).items == []


def test_somebody_elses_job_is_not_changed_by_applying_over_it(cluster, make_user):
    apply(cluster, bundle(JOB_YAML.format(name="a", queue="default", least=1)), user=make_user("ada"))
    documents = bundle(JOB_YAML.format(name="a", queue="default", least=0))
    faults = refused(cluster, documents, make_user("bob"))
    assert faults[0]["code"] == "Forbidden"


def test_a_namespace_goes_before_what_lives_in_it(cluster, make_user):
    documents = bundle(
        JOB_YAML.format(name="a", queue="default", least=1), "apiVersion: v1\nkind: Namespace\nmetadata: {name: team}"
    )
    results = apply(cluster, documents, user=make_user(staff=True))
    assert results[1].item.kind == NAMESPACE
    assert in_order([r.item for r in results])[0].kind == NAMESPACE


def pod(**metadata):
    spec = {"containers": [{"name": "c", "image": "i"}]}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p", **metadata}, "spec": spec}


def told(cluster, obj, user):
    return [fault["pointer"] for fault in refused(cluster, bundle(json.dumps(obj)), user)]


REFERENCE = {"apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job", "name": "a", "uid": "u", "controller": True}
FORGED = [
    (pod(ownerReferences=[REFERENCE]), "/metadata/ownerReferences"),
    (pod(finalizers=["a.b/c"]), "/metadata/finalizers"),
    (pod(annotations={"basalt.dev/gpu-indices": "0,1"}), "/metadata/annotations/basalt.dev~1gpu-indices"),
    (pod() | {"spec": pod()["spec"] | {"nodeName": "n"}}, "/spec/nodeName"),
    (
        claim("c", annotations={"pv.kubernetes.io/bind-completed": "yes"}),
        "/metadata/annotations/pv.kubernetes.io~1bind-completed",
    ),
    (
        claim("c", annotations={"volume.kubernetes.io/selected-node": "n"}),
        "/metadata/annotations/volume.kubernetes.io~1selected-node",
    ),
]


@pytest.mark.parametrize(("obj", "where"), FORGED)
def test_what_controllers_and_the_scheduler_say_is_not_for_everybody(cluster, make_user, obj, where):
    assert told(cluster, obj, make_user()) == [where]
    assert [r.status for r in apply(cluster, bundle(json.dumps(obj)), user=make_user("root", staff=True))] == ["created"]


def test_a_pod_joins_no_gang_of_somebody_elses_job(cluster, make_user):
    bob, eve = make_user("bob"), make_user("eve")
    apply(cluster, bundle(JOB_YAML.format(name="a", queue="default", least=1)), user=bob)
    uid = cluster.get(JOB, "a", "default")["metadata"]["uid"]
    for name, owners in (("of-a-job", [REFERENCE | {"uid": uid}]), ("free", [])):
        meta = {"name": name, "namespace": "default", "ownerReferences": owners}
        cluster.create(POD_GROUP, {"metadata": meta, "spec": {"minMember": 1, "queue": "default"}})
    joining = pod(annotations={"scheduling.k8s.io/group-name": "of-a-job"})
    assert told(cluster, joining, eve) == ["/metadata/annotations/scheduling.k8s.io~1group-name"]
    assert apply(cluster, bundle(json.dumps(joining)), user=bob, dry_run=True)
    assert apply(cluster, bundle(json.dumps(pod(annotations={"scheduling.k8s.io/group-name": "free"}))), user=eve)


def test_a_pod_belongs_to_who_applied_it_and_he_alone_may_delete_it(cluster, make_user):
    from rest_framework.test import APIClient

    from jobs.keys import OWNER
    from jobs.models import Pod

    runtime.use(cluster)
    ada, bob = make_user("ada"), make_user("bob")
    manifest = """
apiVersion: v1
kind: Pod
metadata: {name: lone, annotations: {basalt.dev/owner: bob}}
spec: {schedulerName: volcano, containers: [{name: main, image: busybox}]}
"""
    apply(cluster, load(manifest), user=ada)
    assert cluster.get(POD, "lone", "default")["metadata"]["annotations"][OWNER] == "ada"
    for user, code in ((bob, 403), (ada, 202)):
        client = APIClient()
        client.force_authenticate(user)
        assert client.delete(f"/api/v1/pods/{Pod.objects.get(name='lone').uid}").status_code == code
    assert cluster.list(POD).items == []
    runtime.use(None)
