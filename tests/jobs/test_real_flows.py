"""Flows and cron jobs that other people wrote, taken unchanged and played to their end."""

from __future__ import annotations

from typing import Any

import pytest
import yaml

from cluster.errors import Invalid
from cluster.kinds import CRON_JOB, JOB, JOB_FLOW, JOB_TEMPLATE, NAMESPACE, Kind
from jobs import operations
from tests.conftest import SHARED
from tests.jobs.cron.world import go_to, runs
from tests.jobs.flows.world import finish, jobs, phase, status
from tests.jobs.world import World

FOLDER = SHARED / "data" / "manifests"
KINDS: dict[str, Kind] = {kind.kind: kind for kind in (JOB_TEMPLATE, JOB_FLOW, CRON_JOB)}

pytestmark = pytest.mark.skipif(not FOLDER.is_dir(), reason="no folder of shared data beside the project")


def load(world: World, file: str, namespace: str = "") -> None:
    for document in yaml.safe_load_all((FOLDER / file).read_text("utf-8")):
        if namespace:
            document["metadata"].setdefault("namespace", namespace)
        operations.submit_kind(world.cluster, KINDS[document["kind"]], document)


def test_the_diamond_runs_in_order_and_takes_its_jobs_away(world: World):
    load(world, "jobtemplates-a-e.yaml")
    load(world, "jobflow-diamond.yaml")
    seen: list[list[str]] = []
    for _ in range(4):
        world.turn()
        running = [job for job in jobs(world) if world.phase(job) == "Running"]
        seen.append(running)
        for job in running:
            finish(world, job)
    assert seen == [["test-a"], ["test-b"], ["test-c", "test-d"], ["test-e"]]
    assert (phase(world, "test"), jobs(world)) == ("Succeed", [])
    assert [entry["state"] for entry in status(world, "test")["jobStatusList"]] == ["Completed"] * 5


def test_a_patch_changes_the_image_of_the_only_container(world: World):
    load(world, "jobflow-patch-template.yaml", namespace="training")
    world.settle()
    job: Any = world.cluster.get(JOB, "mnist-experiments-ml-task", "training")
    containers = job["spec"]["tasks"][0]["template"]["spec"]["containers"]
    assert [(c["name"], c["image"]) for c in containers] == [("cnn-mnist-torch", "myregistry/cnn-mnist-torch-cuda:v1")]
    assert containers[0]["command"] == ["python", "train.py", "--epoch", "3"]
    assert world.cluster.get(NAMESPACE, "training")


def test_a_flow_finds_templates_in_its_own_namespace_alone(world: World):
    with pytest.raises(Invalid, match=r"no JobTemplate 'ml-task' in namespace 'training' \(there is one in default\)"):
        load(world, "jobflow-patch-template.yaml")


def test_a_cron_job_runs_every_five_minutes_never_twice_at_once_and_keeps_its_history(world: World):
    go_to(world, "2030-06-01T00:00:30")
    load(world, "cronjob-basic.yaml")
    for minute in range(5, 60, 5):
        go_to(world, f"2030-06-01T00:{minute:02}:00")
        world.turn()
        finish(world, runs(world)[-1])
    assert len(runs(world)) == 5
    go_to(world, "2030-06-01T01:00:00")
    world.turn()
    last = runs(world)[-1]
    go_to(world, "2030-06-01T01:20:00")
    assert runs(world)[-1] == last
    assert world.job(last)["spec"]["policies"] == [{"event": "PodEvicted", "action": "RestartJob"}]
    finish(world, last)
    assert len(world.cluster.get(CRON_JOB, "volcano-cronjob-example", "default")["status"]["active"]) == 1
