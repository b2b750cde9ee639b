"""REST as command lines use it: who asks and what time it is there, label selectors, lists with whole objects, use of nodes."""

import pytest
from django.test import Client

from cluster import runtime
from cluster.clock import ManualClock
from cluster.embedded.store import EmbeddedCluster
from cluster.kinds import NODE, QUEUE
from cluster.projection import Batch, project_nodes
from jobs.models import Job
from jobs.projection import project_jobs, project_pods
from queues.projection import project as project_queues
from tests.portal import objects as make

pytestmark = pytest.mark.django_db


@pytest.fixture
def ada(make_user):
    client = Client()
    client.force_login(make_user("ada"), "django.contrib.auth.backends.ModelBackend")
    return client


@pytest.fixture
def cluster():
    found = EmbeddedCluster(clock=ManualClock(1_900_000_000.0))
    runtime.use(found)
    yield found
    runtime.use(None)


def get(client, path, status=200, **query):
    answer = client.get(f"/api/v1/{path}", query)
    assert answer.status_code == status, answer.content
    return answer.json()


def names(client, path, **query):
    return sorted(row["name"] for row in get(client, path, **query)["results"])


def test_about_says_who_and_the_clusters_time(ada, cluster):
    said = get(ada, "about")
    assert said["now"] == "2030-03-17T17:46:40+00:00"
    assert (said["user"], said["is_staff"], said["cluster"], said["volcano_api"]) == ("ada", False, "embedded", "v1alpha1")


def labelled(name, **labels):
    return make.job(name, labels=labels)


@pytest.mark.parametrize(
    ("selector", "found"),
    [
        ("team=a", ["one", "two"]),
        ("team=a,tier=gold", ["one"]),
        ("team!=a", ["bare", "three"]),
        ("team in (a, b)", ["one", "three", "two"]),
        ("team notin (a,b)", ["bare"]),
        ("tier", ["one"]),
        ("!tier", ["bare", "three", "two"]),
        ("team=it's", []),
        ("", ["bare", "one", "three", "two"]),
    ],
)
def test_jobs_by_labels(ada, selector, found):
    project_jobs(
        Batch(
            [
                labelled("one", team="a", tier="gold"),
                labelled("two", team="a"),
                labelled("three", team="b"),
                labelled("bare"),
            ]
        )
    )
    if "'" in selector:
        assert "it's" in get(ada, "jobs", 400, labelSelector=selector)["errors"][0]["detail"]
    else:
        assert names(ada, "jobs", labelSelector=selector) == found


@pytest.mark.parametrize("selector", ["=", "team=a,", "team>1", "a b c", "team in ()x"])
def test_a_selector_that_is_none_is_refused_at_its_parameter(ada, selector):
    assert get(ada, "jobs", 400, labelSelector=selector)["errors"][0]["pointer"].endswith("labelSelector")


def test_keys_with_a_prefix_and_values_of_digits(ada):
    obj = make.job("one", labels={"volcano.sh/job-type": "MPI", "run": "7"})
    project_jobs(Batch([obj, make.job("two", labels={"run": "70"})]))
    assert names(ada, "jobs", labelSelector="volcano.sh/job-type=MPI,run=7") == ["one"]


def test_a_jobs_row_has_its_labels_and_its_list_is_narrowed_by_scheduler(ada):
    other = make.job("other", labels={"team": "a"})
    other["spec"]["schedulerName"] = "basalt"
    other["status"]["unknown"] = 2
    project_jobs(Batch([make.job("one"), other]))
    (row,) = get(ada, "jobs", scheduler="basalt")["results"]
    assert (row["name"], row["labels"], row["unknown"]) == ("other", {"team": "a"}, 2)


def test_a_list_with_the_objects_themselves(ada, cluster):
    project_jobs(Batch([make.job("one")]))
    cluster.create(QUEUE, {"metadata": {"name": "gold"}, "spec": {"weight": 3}})
    project_queues(Batch(cluster.list(QUEUE).items))
    (job,) = get(ada, "jobs", include="manifest")["results"]
    (queue,) = get(ada, "queues", include="manifest")["results"]
    assert (job["manifest"]["kind"], job["manifest"]["metadata"]["name"]) == ("Job", "one")
    assert queue["manifest"]["spec"]["weight"] == 3
    assert "manifest" not in get(ada, "jobs")["results"][0]
    assert get(ada, "jobs", 400, include="secrets")["errors"][0]["pointer"] == "?include"


def test_a_list_reads_no_manifests_unless_they_are_asked_for(ada, django_assert_num_queries):
    project_jobs(Batch([make.job(f"j{number}") for number in range(5)]))
    assert len(Job.objects.all()) == 5
    with django_assert_num_queries(3):  # session, user, jobs
        assert len(get(ada, "jobs")["results"]) == 5
    with django_assert_num_queries(3):
        assert len(get(ada, "jobs", include="manifest")["results"]) == 5


def test_nodes_say_what_their_pods_ask_and_go_by_labels(ada, cluster):
    node = {**make.node(), "metadata": {"name": "gpu-01", "labels": {"zone": "a"}}}
    cluster.create(NODE, node)
    cluster.create(NODE, {**make.node(), "metadata": {"name": "gpu-02"}})
    project_nodes(Batch(cluster.list(NODE).items))
    pod = make.pod("p", phase="Running", nodeName="gpu-01")
    pod["spec"]["containers"][0]["resources"] = {"requests": {"cpu": "2", "nvidia.com/gpu": "2"}}
    project_pods(Batch([pod]))
    (row,) = get(ada, "nodes", labelSelector="zone=a")["results"]
    assert row["name"] == "gpu-01"
    assert (row["used"]["cpu"], row["used"]["pods"], row["used"]["gpus"]) == (2000, 1, 2)
    assert get(ada, "nodes/gpu-02")["used"] == {"pods": 0, "gpus": 0}


def test_a_pods_row_says_its_state_as_kubectl_does(ada):
    pod = make.pod("p", phase="Running")
    waits = {"name": "c", "ready": False, "restartCount": 4, "state": {"waiting": {"reason": "CrashLoopBackOff"}}}
    waits["lastState"] = {"terminated": {"finishedAt": "2026-01-02T03:04:05Z", "exitCode": 1}}
    pod["status"]["containerStatuses"] = [waits]
    project_pods(Batch([pod]))
    (row,) = get(ada, "pods")["results"]
    assert (row["word"], row["ready"], row["containers"], row["restarts"]) == ("CrashLoopBackOff", 0, 1, 4)
    assert row["restarted_at"] == "2026-01-02T03:04:05+00:00"


def test_a_manifest_without_a_namespace_goes_where_the_query_says(ada, cluster):
    cluster.create(QUEUE, {"metadata": {"name": "default"}, "spec": {"weight": 1}})
    project_queues(Batch(cluster.list(QUEUE).items))
    spec = make.job()["spec"]
    bare = {"apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job", "metadata": {"name": "one"}, "spec": spec}
    named = {**bare, "metadata": {"name": "one", "namespace": "b"}}
    for sent, found in ((bare, "a"), (named, "b")):
        made = ada.post("/api/v1/jobs?namespace=a", sent, "application/json")
        assert (made.status_code, made.json()["namespace"]) == (201, found)
    refused = ada.post("/api/v1/jobs?namespace=Not_One", {**bare, "metadata": {"name": "two"}}, "application/json")
    assert (refused.status_code, refused.json()["errors"][0]["pointer"]) == (422, "/metadata/namespace")
