"""`manage.py schedule`: cycles over files of Kubernetes objects, and errors that name file, document and line."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from django.core.management import CommandError, call_command

from tests.scheduler.claims.make import device_class, request, resource_claim, slice_of, template, using
from tests.scheduler.world import gang, node, queue

BARE = 'actions: "enqueue, allocate, backfill"\ntiers:\n- plugins:\n  - name: gang\n  - name: predicates\n'


def job(name: str = "train", replicas: int = 2, *, minimum: int | None = None, **limits: Any) -> dict[str, Any]:
    container = {"name": "c", "image": "i", "resources": {"limits": {key: str(value) for key, value in limits.items()}}}
    task = {"name": "w", "replicas": replicas, "template": {"spec": {"containers": [container], "restartPolicy": "Never"}}}
    spec = {"minAvailable": replicas if minimum is None else minimum, "tasks": [task]}
    return {"apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job", "metadata": {"name": name}, "spec": spec}


@pytest.fixture
def schedule(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    def run(*objs: Any, conf: str = "", text: str = "", **options: Any) -> Any:
        path = tmp_path / "objects.yaml"
        path.write_text(text or yaml.safe_dump_all([each for obj in objs for each in (obj if isinstance(obj, list) else [obj])]))
        if conf:
            options["conf"] = tmp_path / "scheduler.conf"
            options["conf"].write_text(conf)
        call_command("schedule", path, **{"output": "json", **options})
        out = capsys.readouterr().out
        return json.loads(out) if options.get("output", "json") == "json" else out

    return run


def test_the_json_has_what_is_documented(schedule):
    found = schedule(node("n1", gpu=4), gang("g", 2, cpu=1, gpu=2))
    assert list(found) == ["binds", "evictions", "pipelined", "podGroups", "queues", "verdicts", "problems"]
    assert found["binds"] == [
        {"pod": "default/g-w-0", "node": "n1", "gpus": [0, 1]},
        {"pod": "default/g-w-1", "node": "n1", "gpus": [2, 3]},
    ]
    assert found["podGroups"]["default/g"]["phase"] == "Inqueue"
    assert [c["type"] for c in found["podGroups"]["default/g"]["conditions"]] == ["Scheduled"]
    assert found["queues"]["default"]["allocated"] == {"cpu": "2", "pods": "2", "nvidia.com/gpu": "4"}
    assert (found["verdicts"], found["evictions"], found["pipelined"], found["problems"]) == ({}, [], [], [])


def test_the_same_files_give_the_same_answer(schedule):
    objs = [node("n1", 4), node("n2", 4), *gang("a", 3, cpu=2), job("b", 3, cpu=1), job("c", 1, cpu=9)]
    assert schedule(objs, cycles=3) == schedule(objs, cycles=3)


def test_jobs_are_expanded_by_the_controllers_own_builder(schedule):
    found = schedule(node("n1"), queue("q"), {**job("a", 2, cpu=1), "spec": {**job("a", 2, cpu=1)["spec"], "queue": "q"}})
    assert [bind["pod"] for bind in found["binds"]] == ["default/a-w-0", "default/a-w-1"]
    assert found["queues"]["q"]["allocated"] == {"cpu": "2", "pods": "2"}
    (group,) = found["podGroups"]
    assert group.startswith("default/a-")


def test_pods_of_a_job_that_are_there_are_not_made_again(schedule):
    there = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": "a-w-0",
            "labels": {"volcano.sh/job-name": "a", "volcano.sh/task-spec": "w"},
            "annotations": {"volcano.sh/task-spec": "w"},
        },
        "spec": {"nodeName": "n1", "schedulerName": "volcano", "containers": [{"name": "c", "image": "i"}]},
        "status": {"phase": "Running"},
    }
    assert [bind["pod"] for bind in schedule(node("n1"), job("a", 2, minimum=1, cpu=1), there)["binds"]] == ["default/a-w-1"]


def test_a_plain_pod_gets_a_group_and_a_missing_scheduler_name_means_us(schedule):
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "solo"}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
    assert [bind["pod"] for bind in schedule(node("n1"), pod)["binds"]] == ["default/solo"]
    assert schedule(node("n1"), {**pod, "spec": {**pod["spec"], "schedulerName": "default-scheduler"}})["binds"] == []


def test_what_waits_is_told_with_numbers(schedule):
    found = schedule(node("n1", 4), gang("g", 3, cpu=2), conf=BARE)
    verdict = found["verdicts"]["default/g"]
    assert found["binds"] == []
    assert (verdict["code"], verdict["needed"], verdict["placeable"], verdict["resource"], verdict["asked"]) == (
        "gang.incomplete", 3, 2, "cpu", 2000,
    )  # fmt: skip
    assert verdict["rejected"] == {"insufficient:cpu": 1}
    assert verdict["text"] == "2 of the needed 3 pods have room; 0/1 nodes are available: 1 Insufficient cpu"


def test_further_cycles_go_on_from_what_was_decided(schedule):
    conf = BARE.replace("enqueue, ", "").replace("- name: gang", "- name: gang\n  - name: proportion")
    found = schedule(node("n1", 4), gang("a", 4, 1, cpu=1), gang("b", 1, cpu=1), conf=conf, cycles=3)
    assert len(found["binds"]) == 4
    assert found["podGroups"]["default/a"]["phase"] == "Running"


def test_a_configuration_is_taken_from_the_files_or_the_option(schedule):
    config = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "c"},
        "data": {"volcano-scheduler.conf": BARE.replace(", allocate, backfill", "")},
    }
    assert schedule(config, node("n1"), gang("g", 1, cpu=1))["binds"] == []
    assert len(schedule(config, node("n1"), gang("g", 1, cpu=1), conf=BARE)["binds"]) == 1


def test_a_bad_object_is_told_with_its_place_and_stops_no_other(schedule):
    found = schedule(node("n1", memory="-1Gi"), node("n2"), gang("g", 1, cpu=1), {"apiVersion": "v1", "kind": "Endpoints"})
    assert [bind["node"] for bind in found["binds"]] == ["n2"]
    assert len(found["problems"]) == 2
    assert "objects.yaml, document 1, line 1: Node n1 takes no part: status.allocatable: memory" in found["problems"][0]
    assert "document 5, line" in found["problems"][1]
    assert "kind Endpoints of v1" in found["problems"][1]


def test_the_table_says_the_same_for_people(schedule):
    out = schedule(node("n1", 4), gang("a", 1, cpu=1), gang("b", 1, cpu=9), output="table")
    lines = [line.split() for line in out.splitlines()]
    assert lines[:3] == [["Binds"], ["pod", "node", "gpus"], ["default/a-w-0", "n1"]]
    assert ["default/b", "a", "pod", "asks", "9", "cpu,", "and", "the", "largest", "node", "has", "4"] in lines
    assert schedule(text="{apiVersion: v1, kind: Namespace, metadata: {name: x}}", output="table").startswith("Queues")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("a: [", r"objects\.yaml, document 1, line 2: not valid YAML"),
        ("", "there is no object"),
        ("{apiVersion: v1}", r"objects\.yaml, document 1, line 1: an object has an apiVersion and a kind"),
        (
            "{apiVersion: v1, kind: Node}\n---\n{apiVersion: v1, kind: Node, metadata: {}}",
            r"document 2, line 3: Node: metadata\.name",
        ),
        ("{apiVersion: v1, kind: Node, metadata: {name: n1, labels: 3}}", r"metadata\.labels must be a mapping"),
        (
            "{apiVersion: v1, kind: Node, metadata: {name: n1}}\n---\n{apiVersion: v1, kind: Node, metadata: {name: n1}}",
            r"document 2, line 3: Node n1 is given twice; first in .*document 1, line 1",
        ),
        (yaml.safe_dump(job(replicas=-1)), r"document 1, line \d+: Job train: /spec/tasks/0/replicas"),
        (yaml.safe_dump({**job(), "spec": {**job()["spec"], "queue": "nowhere"}}), r"Job train: /spec/queue: .*'nowhere'"),
    ],
)
def test_files_that_cannot_be_used_are_told_with_file_document_and_line(tmp_path, text, said):
    path = tmp_path / "objects.yaml"
    path.write_text(text)
    with pytest.raises(CommandError, match=said) as error:
        call_command("schedule", path)
    assert error.value.returncode == 2


def test_wrong_configurations_and_options_are_told(tmp_path, schedule):
    with pytest.raises(CommandError, match=r"scheduler\.conf, line 1: action 'fly' is unknown"):
        schedule(node("n1"), conf=BARE.replace("enqueue", "fly"))
    with pytest.raises(CommandError, match="No such file"):
        call_command("schedule", tmp_path / "nowhere")
    with pytest.raises(CommandError, match="No such file"):
        call_command("schedule", __file__, conf=tmp_path / "nowhere")
    with pytest.raises(CommandError, match="from 1 to 10000"):
        call_command("schedule", __file__, "--cycles", "0")


def test_claims_are_made_for_pods_and_met(schedule):
    gpus = {"resourceClaims": [{"name": "gpus", "resourceClaimTemplateName": "two"}]}
    scratch = {"spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}}
    pod_spec = {**gpus, "volumes": [{"name": "scratch", "ephemeral": {"volumeClaimTemplate": scratch}}]}
    parts = [device_class(), slice_of("n1", 3), template("two", request(count=2))]
    found = schedule(node("n1"), node("n2"), *parts, gang("g", 2, 1, cpu=1, pod_spec=pod_spec))
    assert [(bind["pod"], bind["node"]) for bind in found["binds"]] == [("default/g-w-0", "n1")]
    assert found["problems"] == []


def test_a_claim_that_cannot_be_met_is_told_with_its_numbers(schedule):
    parts = [device_class(), slice_of("n1", 1), resource_claim("mine", request(count=2))]
    found = schedule(node("n1"), *parts, gang("g", 1, cpu=1, pod_spec=using("mine")))
    verdict = found["verdicts"]["default/g"]
    assert (verdict["code"], verdict["resource"]) == ("device.insufficient", "gpu")
    assert (verdict["asked"], verdict["free"], verdict["short"]) == (2000, 1000, 1000)


SPREAD = BARE + (
    "  - name: nodeorder\n    arguments: {podtopologyspread.weight: 2, leastrequested.weight: 0, balancedresource.weight: 0, "
    "nodeaffinity.weight: 0, podaffinity.weight: 0, tainttoleration.weight: 0, imagelocality.weight: 0}\n"
)


@pytest.mark.parametrize(
    ("plugins", "used"), [({}, ["n1", "n1"]), ({"svc": []}, ["n1", "n2"]), ({"mpi": ["--master=w"]}, ["n1", "n2"])]
)
def test_the_services_of_plugins_spread_their_pods_as_in_a_cluster(schedule, plugins, used):
    """Kubernetes spreads by default what a Service selects, and such plugins make one."""
    hosts = [node(name, labels={"kubernetes.io/hostname": name}) for name in ("n1", "n2")]
    asked = {**job("a", 2, cpu=1), "spec": {**job("a", 2, cpu=1)["spec"], "plugins": plugins}}
    assert [bind["node"] for bind in schedule(hosts, asked, conf=SPREAD)["binds"]] == used
