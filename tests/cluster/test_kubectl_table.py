"""The tables of `kubectl get`."""

import json
import urllib.request
from typing import Any

import pytest

from cluster.embedded.http.table import age, as_table, is_wanted
from cluster.errors import BadRequest
from cluster.kinds import CONFIG_MAP, EVENT, JOB, NODE, POD, SECRET
from tests.cluster.port_objects import NS, config
from tests.cluster.test_kubernetes import Served, port, served

__all__ = ["port", "served"]

ASKED = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json;as=Table;v=v1beta1;g=meta.k8s.io,application/json"
BORN = "2030-01-01T00:00:00Z"
NOW = 1893456000.0 + 300


def cells(kind: Any, *objects: dict[str, Any]) -> list[list[Any]]:
    meta = {"name": "a", "namespace": "default", "creationTimestamp": BORN}
    whole = [{**obj, "metadata": {**meta, **obj.get("metadata", {})}} for obj in objects]
    return [row["cells"] for row in as_table(kind, whole, NOW, {})["rows"]]


def names(kind: Any, wide: bool = False) -> list[str]:
    return [column["name"] for column in as_table(kind, [], NOW, {})["columnDefinitions"] if wide or not column["priority"]]


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (-5, "0s"),
        (119, "119s"),
        (120, "2m"),
        (303, "5m3s"),
        (3600, "60m"),
        (3 * 3600, "3h"),
        (7.5 * 3600, "7h30m"),
        (30 * 3600, "30h"),
        (49 * 3600, "2d1h"),
        (400 * 86400, "400d"),
        (800 * 86400, "2y70d"),
        (9 * 365 * 86400, "9y"),
    ],
)
def test_ages_are_written_as_kubectl_writes_them(seconds: float, text: str):
    assert age(seconds) == text


def test_a_job_has_volcanos_columns():
    assert names(JOB) == ["Name", "STATUS", "minAvailable", "RUNNINGS", "AGE"]
    assert names(JOB, wide=True)[-1] == "QUEUE"
    job = {"spec": {"queue": "nlp"}, "status": {"state": {"phase": "Running"}, "minAvailable": 3, "running": 2}}
    assert cells(JOB, job, {}) == [["a", "Running", 3, 2, "5m", "nlp"], ["a", None, None, None, "5m", None]]


def state(**said: Any) -> dict[str, Any]:
    return {"name": "main", "ready": "running" in said, "restartCount": 2, "state": said}


@pytest.mark.parametrize(
    ("status", "word"),
    [
        ({}, "Pending"),
        ({"phase": "Running", "containerStatuses": [state(running={})]}, "Running"),
        ({"phase": "Pending", "containerStatuses": [state(waiting={"reason": "ContainerCreating"})]}, "ContainerCreating"),
        ({"phase": "Succeeded", "containerStatuses": [state(terminated={"exitCode": 0, "reason": "Completed"})]}, "Completed"),
        ({"phase": "Failed", "containerStatuses": [state(terminated={"exitCode": 3})]}, "ExitCode:3"),
        ({"phase": "Failed", "reason": "Evicted"}, "Evicted"),
        ({"phase": "Pending", "initContainerStatuses": [state(terminated={"exitCode": 0}), state(running={})]}, "Init:1/2"),
        ({"phase": "Pending", "initContainerStatuses": [state(waiting={"reason": "CrashLoopBackOff"})]}, "Init:CrashLoopBackOff"),
    ],
)
def test_a_pods_status_says_what_its_phase_does_not(status: dict[str, Any], word: str):
    assert cells(POD, {"spec": {"containers": [{"name": "main"}]}, "status": status})[0][2] == word


def test_a_pod_that_ends_is_terminating_and_its_containers_are_counted():
    status = {"phase": "Running", "containerStatuses": [state(running={})]}
    spec = {"containers": [{"name": "main"}, {"name": "side"}], "nodeName": "n0"}
    pod = {"metadata": {"deletionTimestamp": BORN}, "spec": spec, "status": status}
    assert cells(POD, pod) == [["a", "1/2", "Terminating", "2", "5m", None, "n0"]]


def test_an_init_container_that_stays_beside_holds_nothing_up():
    spec = {"initContainers": [{"name": "main", "restartPolicy": "Always"}], "containers": [{"name": "w"}]}
    status = {"phase": "Running", "initContainerStatuses": [{**state(running={}), "started": True}]}
    assert cells(POD, {"spec": spec, "status": status})[0][2] == "Running"


def test_nodes_say_whether_they_take_pods_and_events_what_they_are_about():
    ready = {"conditions": [{"type": "Ready", "status": "True"}]}
    assert [row[1] for row in cells(NODE, {"status": ready}, {"status": ready, "spec": {"unschedulable": True}}, {})] == [
        "Ready",
        "Ready,SchedulingDisabled",
        "NotReady",
    ]
    about = {
        "involvedObject": {"kind": "Job", "name": "j"},
        "lastTimestamp": BORN,
        "type": "Normal",
        "reason": "R",
        "message": "m",
    }
    assert cells(EVENT, about) == [["5m", "Normal", "R", "job/j", "m"]]


def test_rows_carry_as_much_of_their_object_as_is_asked():
    secret = {"metadata": {"name": "s"}, "data": {"key": "aGlkZGVu"}}
    plain, none, whole = (as_table(SECRET, [secret], NOW, {}, asked)["rows"][0] for asked in ("", "None", "Object"))
    assert plain["object"] == {"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": {"name": "s"}}
    assert "object" not in none
    assert whole["object"] == secret
    with pytest.raises(BadRequest, match="includeObject='All' is none of None, Metadata, Object"):
        as_table(SECRET, [], NOW, {}, "All")


def test_a_table_is_given_to_those_alone_who_ask_for_it():
    assert is_wanted(ASKED)
    assert not any(map(is_wanted, ("", "application/json", "*/*", "application/json," + ASKED)))


def fetch(served: Served, path: str, accept: str) -> bytes:
    headers = {"Authorization": "Bearer all", "Accept": accept}
    with urllib.request.urlopen(urllib.request.Request(served.url + path, headers=headers)) as answer:
        return answer.read()


def test_lists_single_objects_and_watches_are_tables_over_http(served: Served, port: Any):
    port.create(CONFIG_MAP, config("a"))
    path = f"/api/v1/namespaces/{NS}/configmaps"
    listed, one = json.loads(fetch(served, path, ASKED)), json.loads(fetch(served, f"{path}/a", ASKED))
    assert [row["cells"][0] for row in listed["rows"]] == [row["cells"][0] for row in one["rows"]] == ["a"]
    assert listed["metadata"]["resourceVersion"]
    event = json.loads(fetch(served, f"{path}?watch=1&timeoutSeconds=1", ASKED).splitlines()[0])
    assert (event["type"], event["object"]["kind"], event["object"]["rows"][0]["cells"][0]) == ("ADDED", "Table", "a")
    assert json.loads(fetch(served, path, "application/json"))["kind"] == "ConfigMapList"
