"""The Job manifest: defaults, refusals with their places, and what may change."""

from __future__ import annotations

from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from jobs.manifest import default
from tests.jobs.manifests import BOX, POD, Queues, changed, faults
from tests.jobs.world import job, task


def test_a_sound_job_has_no_faults():
    assert faults(job()) == {}


def test_defaults_come_in_volcanos_order():
    manifest = job("train", {"replicas": 3, "template": task()["template"]}, task("b", 2, minAvailable=1))
    default(manifest)
    spec = manifest["spec"]
    assert (spec["queue"], spec["schedulerName"], spec["maxRetry"]) == ("default", "volcano", 3)
    assert [(t["name"], t["minAvailable"], t["maxRetry"]) for t in spec["tasks"]] == [("default0", 3, 3), ("b", 1, 3)]
    assert spec["minAvailable"] == 4


@pytest.mark.parametrize(
    ("policy", "minimum"),
    [
        ({"totalPartitions": 4, "partitionSize": 2, "minPartitions": 3}, 6),
        ({"totalPartitions": 4, "partitionSize": 2}, 8),
    ],
)
def test_a_partitioned_tasks_minimum_comes_from_its_partitions(policy, minimum):
    manifest = job("train", task(replicas=8, partitionPolicy=policy))
    default(manifest)
    assert manifest["spec"]["minAvailable"] == minimum


@pytest.mark.parametrize(
    ("plugins", "complete"),
    [
        ({"pytorch": []}, {"pytorch", "svc"}),
        ({"tensorflow": []}, {"tensorflow", "svc"}),
        ({"ray": []}, {"ray", "svc"}),
        ({"mpi": []}, {"mpi", "svc", "ssh"}),
        ({"env": None}, {"env"}),
    ],
)
def test_plugins_bring_those_they_need(plugins, complete):
    manifest = job(plugins=plugins)
    default(manifest)
    assert manifest["spec"]["plugins"].keys() == complete


def test_a_pod_on_the_hosts_network_gets_the_fitting_dns_policy():
    worker = task()
    worker["template"]["spec"]["hostNetwork"] = True
    manifest = job("train", worker)
    default(manifest)
    assert manifest["spec"]["tasks"][0]["template"]["spec"]["dnsPolicy"] == "ClusterFirstWithHostNet"


_BEFORE, _RATHER = "requiredDuringSchedulingIgnoredDuringExecution", "preferredDuringSchedulingIgnoredDuringExecution"
SPREAD = {"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule"}


def _asks(operator: str, *values: str) -> dict[str, Any]:
    """A required node affinity with one condition."""
    return {
        "nodeAffinity": {
            _BEFORE: {"nodeSelectorTerms": [{"matchExpressions": [{"key": "k", "operator": operator, "values": [*values]}]}]}
        }
    }


_TERM = f"nodeAffinity/{_BEFORE}/nodeSelectorTerms/0/matchExpressions/0"
AFFINITY = [
    ({"podAffinity": {_BEFORE: ["x"]}}, f"podAffinity/{_BEFORE}/0", "a mapping"),
    ({"podAntiAffinity": {_BEFORE: [{"labelSelector": {}}]}}, f"podAntiAffinity/{_BEFORE}/0/topologyKey", "required"),
    (
        {"podAffinity": {_BEFORE: [{"topologyKey": "zone", "labelSelector": {"matchLabels": ["a"]}}]}},
        f"podAffinity/{_BEFORE}/0/labelSelector/matchLabels",
        "a mapping",
    ),
    ({"nodeAffinity": {_RATHER: [{"weight": 101, "preference": {}}]}}, f"nodeAffinity/{_RATHER}/0/weight", "100 or less"),
    ({"nodeAffinity": {_BEFORE: {"nodeSelectorTerms": "x"}}}, f"nodeAffinity/{_BEFORE}/nodeSelectorTerms", "a list"),
    ({"nodeAffinity": {_BEFORE: {"nodeSelectorTerms": []}}}, f"nodeAffinity/{_BEFORE}/nodeSelectorTerms", "not be empty"),
    (_asks("Like", "v"), f"{_TERM}/operator", "'DoesNotExist'"),
    (_asks("In"), _TERM, "must have values beside In"),
    (_asks("Exists", "v"), _TERM, "no values beside Exists"),
    (_asks("Gt", "many"), _TERM, "one whole number"),
]
"""What no scheduler could read: it is refused before any scheduler meets it."""


WRONG = [
    # one value, where the fault is told, and a word of what would be right
    ("/spec/tasks", [], "/spec/tasks", "at least one"),
    ("/spec/tasks", "worker", "/spec/tasks", "a list"),
    ("/spec", [], "/spec", "a mapping"),
    ("/metadata/name", "", "/metadata/name", "required"),
    ("/metadata/name", "Train_1", "/metadata/name", "lower-case"),
    ("/metadata/name", "a" * 60, "/spec/tasks/0/name", "characters too long"),
    ("/metadata/labels", {"a b": "c"}, "/metadata/labels/a b", "label key"),
    ("/spec/minAvailable", -1, "/spec/minAvailable", "0 or more"),
    ("/spec/minAvailable", "2", "/spec/minAvailable", "a whole number, not the text '2'"),
    ("/spec/minAvailable", True, "/spec/minAvailable", "not true"),
    ("/spec/minAvailable", 4, "/spec/minAvailable", "at most that many"),
    ("/spec/maxRetry", -1, "/spec/maxRetry", "0 or more"),
    ("/spec/minSuccess", 0, "/spec/minSuccess", "1 or more"),
    ("/spec/ttlSecondsAfterFinished", -5, "/spec/ttlSecondsAfterFinished", "0 or more"),
    ("/spec/tasks/0/replicas", -1, "/spec/tasks/0/replicas", "0 or more"),
    ("/spec/tasks/0/replicas", 2**31, "/spec/tasks/0/replicas", "or less"),
    ("/spec/tasks/0/replicas", 1.5, "/spec/tasks/0/replicas", "a whole number"),
    ("/spec/tasks/0/minAvailable", 3, "/spec/tasks/0/minAvailable", "at most that many"),
    ("/spec/tasks/0/name", "Bad.Name", "/spec/tasks/0/name", "DNS label"),
    ("/spec/tasks/1/name", "worker", "/spec/tasks/1/name", "task 0 is called"),
    ("/spec/policies", [{"event": "PodFailed"}], "/spec/policies/0/action", "AbortJob"),
    ("/spec/policies", [{"action": "AbortJob"}], "/spec/policies/0/event", "required"),
    ("/spec/policies", [{"event": "Boom", "action": "AbortJob"}], "/spec/policies/0/event", "PodFailed"),
    ("/spec/policies", [{"event": "OutOfSync", "action": "AbortJob"}], "/spec/policies/0/event", "no event"),
    ("/spec/policies", [{"event": "PodFailed", "action": "SyncJob"}], "/spec/policies/0/action", "no action"),
    ("/spec/policies", [{"exitCode": 0, "action": "AbortJob"}], "/spec/policies/0/exitCode", "success"),
    (
        "/spec/policies",
        [{"exitCode": 1, "event": "*", "action": "AbortJob"}],
        "/spec/policies/0/exitCode",
        "events or an exitCode",
    ),
    (
        "/spec/policies",
        [{"event": "*", "action": "AbortJob"}, {"event": "PodFailed", "action": "AbortJob"}],
        "/spec/policies/0/event",
        "keep it alone",
    ),
    (
        "/spec/policies",
        [{"exitCode": 3, "action": "AbortJob"}, {"exitCode": 3, "action": "RestartJob"}],
        "/spec/policies/1/exitCode",
        "already handled by entry 0",
    ),
    ("/spec/tasks/0/policies", [{"event": "PodFailed", "action": "Go"}], "/spec/tasks/0/policies/0/action", "no action"),
    ("/spec/policies", [{"event": "PodFailed", "action": "AbortJob", "timeout": "5"}], "/spec/policies/0/timeout", "duration"),
    ("/spec/plugins", {"magic": []}, "/spec/plugins/magic", "known are env"),
    ("/spec/plugins", {"svc": "yes"}, "/spec/plugins/svc", "a list"),
    ("/spec/plugins", {"mpi": []}, "/spec/plugins/mpi", "a task named 'master'"),
    ("/spec/plugins", {"mpi": ["--master=boss"]}, "/spec/plugins/mpi", "'boss'"),
    ("/spec/queue", "nowhere", "/spec/queue", "no queue 'nowhere'"),
    ("/spec/queue", "root", "/spec/queue", "below it"),
    ("/spec/volumes", [{"volumeClaimName": "a"}], "/spec/volumes/0/mountPath", "required"),
    ("/spec/volumes", [{"mountPath": "/a:b", "volumeClaimName": "a"}], "/spec/volumes/0/mountPath", "':'"),
    ("/spec/volumes", [{"mountPath": "/a"}], "/spec/volumes/0/volumeClaimName", "required"),
    ("/spec/volumes", [{"mountPath": "/a", "volumeClaimName": "A_"}], "/spec/volumes/0/volumeClaimName", "no claim name"),
    (
        "/spec/volumes",
        [{"mountPath": "/a", "volumeClaimName": "a", "volumeClaim": {}}],
        "/spec/volumes/0/volumeClaimName",
        "beside volumeClaim",
    ),
    (
        "/spec/volumes",
        [{"mountPath": "/a", "volumeClaimName": "a"}, {"mountPath": "/a", "volumeClaimName": "b"}],
        "/spec/volumes/1/mountPath",
        "two volumes",
    ),
    (
        "/spec/networkTopology",
        {"highestTierAllowed": 1, "highestTierName": "rack"},
        "/spec/networkTopology/highestTierName",
        "number or its name",
    ),
    ("/spec/networkTopology", {"mode": "firm"}, "/spec/networkTopology/mode", "'hard', 'soft'"),
    ("/spec/tasks/0/dependsOn", {"name": ["ghost"]}, "/spec/tasks/0/dependsOn/name/0", "no task 'ghost'"),
    ("/spec/tasks/0/dependsOn", {"name": ["worker"]}, "/spec/tasks/0/dependsOn", "circle"),
    ("/spec/tasks/0/dependsOn", {"name": ["second", "second"]}, "/spec/tasks/0/dependsOn/name/1", "twice"),
    (
        "/spec/tasks/0/partitionPolicy",
        {"totalPartitions": 3, "partitionSize": 2},
        "/spec/tasks/0/partitionPolicy/totalPartitions",
        "2 replicas",
    ),
    (
        "/spec/tasks/0/partitionPolicy",
        {"totalPartitions": 0, "partitionSize": 2},
        "/spec/tasks/0/partitionPolicy/totalPartitions",
        "1 or more",
    ),
    ("/spec/tasks/0/topologyPolicy", "magic", "/spec/tasks/0/topologyPolicy", "single-numa-node"),
    ("/spec/tasks/0/template", {}, POD, "required"),
    (POD, {"containers": []}, f"{POD}/containers", "at least one container"),
    (POD, {}, f"{POD}/containers", "required"),
    (f"{POD}/restartPolicy", "Sometimes", f"{POD}/restartPolicy", "'OnFailure'"),
    (f"{POD}/nodeSelector", {"a": "b c"}, f"{POD}/nodeSelector/a", "no label"),
    (f"{POD}/tolerations", [{"value": "x"}], f"{POD}/tolerations/0/operator", "Exists"),
    *((f"{POD}/affinity", value, f"{POD}/affinity/{where}", word) for value, where, word in AFFINITY),
    (f"{POD}/topologySpreadConstraints", ["x"], f"{POD}/topologySpreadConstraints/0", "a mapping"),
    (f"{POD}/topologySpreadConstraints", [SPREAD | {"maxSkew": 0}], f"{POD}/topologySpreadConstraints/0/maxSkew", "1 or more"),
    (f"{POD}/volumes", [{"name": "v", "configMap": "x"}], f"{POD}/volumes/0/configMap", "a mapping"),
    (f"{POD}/volumes", [{"name": "v", "emptyDir": {"sizeLimit": "big"}}], f"{POD}/volumes/0/emptyDir/sizeLimit", "'big'"),
    (
        f"{POD}/volumes",
        [{"name": "v", "persistentVolumeClaim": {}}],
        f"{POD}/volumes/0/persistentVolumeClaim/claimName",
        "required",
    ),
    (f"{POD}/resources", {"requests": {"cpu": "x"}}, f"{POD}/resources/requests/cpu", "not a quantity"),
    (f"{POD}/resourceClaims", [5], f"{POD}/resourceClaims/0", "a mapping"),
    (f"{POD}/securityContext", {"runAsUser": "root"}, f"{POD}/securityContext/runAsUser", "a whole number"),
    (f"{POD}/hostname", "a_b", f"{POD}/hostname", "DNS label"),
    (f"{BOX}/name", "Main", f"{BOX}/name", "DNS label"),
    (f"{BOX}/image", "", f"{BOX}/image", "name an image"),
    (f"{BOX}/image", 5, f"{BOX}/image", "text, not 5"),
    (f"{BOX}/command", "sleep 1", f"{BOX}/command", "a list"),
    (f"{BOX}/env", [{"name": "A=B"}], f"{BOX}/env/0/name", "without '='"),
    (f"{BOX}/env", [{"name": "A", "value": 1}], f"{BOX}/env/0/value", "text, not 1"),
    (f"{BOX}/env", [{"name": "A", "valueFrom": {"fieldRef": "x"}}], f"{BOX}/env/0/valueFrom/fieldRef", "a mapping"),
    (f"{BOX}/envFrom", [{"secretRef": {"name": 1}}], f"{BOX}/envFrom/0/secretRef/name", "text, not 1"),
    ("/spec/policies", [{"events": [{"a": 1}], "action": "AbortJob"}], "/spec/policies/0/events/0", "text, not a mapping"),
    (f"{BOX}/ports", [{"containerPort": 70000}], f"{BOX}/ports/0/containerPort", "65535 or less"),
    (f"{BOX}/ports", [{"containerPort": 80, "name": "UPPER"}], f"{BOX}/ports/0/name", "port name"),
    (f"{BOX}/volumeMounts", [{"name": "ghost", "mountPath": "/x"}], f"{BOX}/volumeMounts/0/name", "no volume 'ghost'"),
    (f"{BOX}/resources", {"requests": {"cpu": "2cpus"}}, f"{BOX}/resources/requests/cpu", "write '2'"),
    (f"{BOX}/resources", {"requests": {"cpu": "-1"}}, f"{BOX}/resources/requests/cpu", "0 or more"),
    (f"{BOX}/resources", {"requests": {"memory": "1_000"}}, f"{BOX}/resources/requests/memory", "not a quantity"),
    (f"{BOX}/resources", {"requests": {"cpu": "2"}, "limits": {"cpu": "1"}}, f"{BOX}/resources/requests/cpu", "above the limit"),
    (f"{BOX}/resources", {"limits": {"nvidia.com/gpu": "0.5"}}, f"{BOX}/resources/limits/nvidia.com~1gpu", "whole numbers"),
    (f"{BOX}/resources", {"requests": {"nvidia.com/gpu": 1}}, f"{BOX}/resources/requests/nvidia.com~1gpu", "equal limit"),
    (f"{BOX}/resources", {"limits": {"gpus": 1}}, f"{BOX}/resources/limits/gpus", "no resource"),
]


@pytest.mark.parametrize(("path", "value", "where", "word"), WRONG, ids=[f"{i}:{row[2]}" for i, row in enumerate(WRONG)])
def test_a_fault_is_told_where_it_is_and_with_what_would_be_right(path, value, where, word):
    found = faults(changed(path, value))
    assert where in found
    assert word in found[where]


def test_one_fault_is_told_once():
    for path, value, where, _ in WRONG:
        assert [p for p in faults(changed(path, value)) if p == where or p.startswith(where + "/")] == [where]


def test_all_faults_are_told_at_once():
    manifest = changed("/spec/minAvailable", 9)
    manifest["spec"]["queue"] = "nowhere"
    manifest["spec"]["tasks"][0]["replicas"] = "two"
    manifest["spec"]["tasks"][1]["template"]["spec"]["containers"][0].pop("image")
    assert faults(manifest).keys() == {
        "/spec/queue",
        "/spec/tasks/0/replicas",
        "/spec/tasks/1/template/spec/containers/0/image",
    }


@pytest.mark.parametrize(
    ("queues", "word"),
    [
        (Queues(team={"status": {"state": "Closed"}}), "is Closed"),
        (Queues(team={"status": {"state": "Closing"}}), "is Closing"),
        (Queues(team={}, child={"spec": {"parent": "team"}}), "'child'"),
    ],
)
def test_a_queue_that_takes_no_jobs_is_refused(queues, word):
    assert word in faults(job(queue="team"), queues)["/spec/queue"]


def test_a_brand_new_queue_counts_as_open():
    assert faults(job(queue="team"), Queues(team={})) == {}


@pytest.mark.parametrize("cpu", ["500m", "0", None])
def test_a_numa_policy_needs_whole_cpus(cpu):
    worker = task(topologyPolicy="restricted")
    worker["template"]["spec"]["containers"][0]["resources"] = {"requests": {"cpu": cpu}} if cpu else {}
    assert f"{BOX}/resources/requests/cpu" in faults(job("train", worker))


def test_limits_stand_in_for_requests_under_a_numa_policy():
    worker = task(topologyPolicy="best-effort")
    worker["template"]["spec"]["containers"][0]["resources"] = {"limits": {"cpu": 20}}
    assert faults(job("train", worker)) == {}


def test_unknown_fields_are_kept_and_not_refused():
    manifest = job(somethingNew={"a": 1})
    assert faults(manifest) == {}
    default(manifest)
    assert manifest["spec"]["somethingNew"] == {"a": 1}


def test_a_null_is_as_good_as_nothing():
    manifest = job(priorityClassName=None, volumes=None)
    manifest["spec"]["tasks"][0]["template"]["spec"]["nodeSelector"] = None
    assert faults(manifest) == {}


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)


@given(path=st.sampled_from([row[0] for row in WRONG]), value=JSON)
def test_whatever_stands_in_a_manifest_it_is_judged_and_never_breaks(path, value):
    found = faults(changed(path, value))
    assert all(pointer.startswith("/") and message for pointer, message in found.items())


def job_documents(shared_dir: Any, wanted: str) -> list[tuple[str, dict[str, Any]]]:
    found = []
    for path in sorted((shared_dir / "data" / "manifests").glob(wanted)):
        for document in yaml.safe_load_all(path.read_text()):
            if document and (document.get("apiVersion"), document.get("kind")) == ("batch.volcano.sh/v1alpha1", "Job"):
                found.append((path.name, document))
    return found


REFUSED = {
    "invalid-duplicate-policy-event.yaml": {"/spec/policies/1/event"},
    "invalid-duplicate-task-name.yaml": {"/spec/tasks/1/name"},
    "invalid-min-available.yaml": {"/spec/minAvailable"},
    # Volcano refuses it too: one volume has no claim, the other both a name and a description
    "job-preemptable-cooldown.yaml": {"/spec/volumes/0/volumeClaimName", "/spec/volumes/1/volumeClaimName"},
}


def test_real_manifests_are_accepted_and_the_faulty_ones_refused_at_the_right_field(shared_dir):
    documents = job_documents(shared_dir, "*.yaml")
    assert len(documents) > 25
    for name, document in documents:
        queues = Queues(**{document["spec"].get("queue", "default"): {}})
        assert faults(document, queues).keys() == REFUSED.get(name, set()), name


def test_plugin_arguments_that_are_no_text_are_told_and_passed_over():
    manifest = job("mpi", task("master", 1))
    manifest["spec"]["plugins"] = {"mpi": [{"a": 1}, "--master=master"]}
    assert list(faults(manifest)) == ["/spec/plugins/mpi/0"]


def test_node_and_gpus_are_left_to_the_scheduler():
    manifest = job("sly", task("w", 1))
    template = manifest["spec"]["tasks"][0]["template"]
    template["spec"]["nodeName"] = "node-1"
    template.setdefault("metadata", {}).setdefault("annotations", {})["basalt.dev/gpu-indices"] = "0,1"
    assert set(faults(manifest)) == {
        "/spec/tasks/0/template/spec/nodeName",
        "/spec/tasks/0/template/metadata/annotations/basalt.dev~1gpu-indices",
    }
