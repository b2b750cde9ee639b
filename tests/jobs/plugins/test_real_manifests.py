"""Other people's manifests with plugins: what index.csv says that each exercises is there, by its exact name."""

from __future__ import annotations

import pytest
import yaml

from cluster.kinds import CONFIG_MAP, JOB, NETWORK_POLICY, QUEUE, SECRET, SERVICE
from cluster.objects import name
from tests.conftest import SHARED
from tests.jobs.world import World

FOLDER = SHARED / "data" / "manifests"
SVC, SSH = {"Service/{0}", "ConfigMap/{0}-svc", "NetworkPolicy/{0}"}, {"Secret/{0}-ssh"}
pytestmark = pytest.mark.skipif(not FOLDER.is_dir(), reason="no folder of shared manifests beside the project")

MADE = {
    "job-min-success": SVC,
    "job-mindspore-cpu": SVC | SSH,
    "job-policy-job-level": SVC,
    "job-policy-task-overrides": SVC,
    "job-mpi-ssh-svc": SVC | SSH,
    "job-plugin-env-tensorflow": SVC,
    "job-plugin-mpi": SVC | SSH,
    "job-plugin-pytorch": SVC,
    "job-plugin-ray": SVC | {"Service/{0}-head-svc"},
    "job-plugin-tensorflow": SVC,
    "job-plugins-env-ssh-svc": SVC | SSH,
    "job-vllm-rdma-pytorch": SVC,
    "job-mpi-dependson": SVC | SSH,
    "jobs-in-hierarchical-queues": SVC | SSH,
}


def submitted(file):
    """A world in which the jobs of a file have their pods, and the jobs."""
    world = World()
    documents = [each for each in yaml.safe_load_all((FOLDER / f"{file}.yaml").read_text()) if each]
    jobs = [each for each in documents if each["kind"] == "Job"]
    for job in jobs:
        if job["spec"].get("queue", "default") != "default":
            world.cluster.create(QUEUE, {"metadata": {"name": job["spec"]["queue"]}, "spec": {"weight": 1}})
        world.cluster.create(JOB, job)
    world.turn()
    return world, jobs


def containers(world, pod):
    return next(each for each in world.pods() if name(each) == pod)["spec"]["containers"]


def env(world, pod):
    return {each["name"]: each.get("value") for each in containers(world, pod)[0].get("env", ())}


@pytest.mark.parametrize("file", sorted(MADE))
def test_the_objects_of_each_are_there_by_their_names(file):
    world, jobs = submitted(file)
    found = {
        f"{kind.kind}/{name(obj)}"
        for kind in (SERVICE, CONFIG_MAP, SECRET, NETWORK_POLICY)
        for obj in world.cluster.list(kind).items
    }
    assert found == {entry.format(job["metadata"]["name"]) for job in jobs for entry in MADE[file]}
    assert world.pods()


def test_every_manifest_with_plugins_is_in_the_table():
    with_plugins = {"job-preemptable-cooldown"}  # has volumes that Volcano's own webhook refuses
    for path in FOLDER.glob("*.yaml"):
        documents = [each for each in yaml.safe_load_all(path.read_text()) if each]
        if any(each["kind"] == "Job" and (each.get("spec") or {}).get("plugins") for each in documents):
            with_plugins.add(path.stem)
    assert with_plugins == set(MADE) | {"job-preemptable-cooldown"}


def test_the_mpi_host_file():
    """Its command reads `/etc/volcano/mpiworker.host` and joins its lines by commas."""
    world, _ = submitted("job-mpi-ssh-svc")
    [mount] = [
        each for each in containers(world, "lm-mpi-job-mpimaster-0")[0]["volumeMounts"] if each["name"] == "lm-mpi-job-svc"
    ]
    assert mount["mountPath"] == "/etc/volcano"
    data = world.cluster.get(CONFIG_MAP, "lm-mpi-job-svc", "default")["data"]
    assert data["mpiworker.host"] == "lm-mpi-job-mpiworker-0.lm-mpi-job\nlm-mpi-job-mpiworker-1.lm-mpi-job"


def test_the_mpi_hosts():
    world, _ = submitted("job-plugin-mpi")
    hosts = "lm-mpi-job-mpiworker-0.lm-mpi-job,lm-mpi-job-mpiworker-1.lm-mpi-job"
    assert env(world, "lm-mpi-job-mpimaster-0")["MPI_HOST"] == hosts
    assert "MPI_HOST" not in env(world, "lm-mpi-job-mpiworker-0")
    for pod in world.pods():
        assert pod["spec"]["containers"][0]["ports"] == [{"name": "mpijob-port", "containerPort": 22}]


def test_tensorflow_with_the_port_that_the_manifest_declares_itself():
    world, _ = submitted("job-plugin-tensorflow")
    config = (
        '{"cluster":{"ps":["tensorflow-dist-job-ps-0.tensorflow-dist-job:2222"],'
        '"worker":["tensorflow-dist-job-worker-0.tensorflow-dist-job:2222","tensorflow-dist-job-worker-1.tensorflow-dist-job:2222"]},'
        '"task":{"type":"worker","index":1}}'
    )
    found = env(world, "tensorflow-dist-job-worker-1")
    assert (found["TF_CONFIG"], found["VC_TASK_INDEX"]) == (config, "1")
    assert containers(world, "tensorflow-dist-job-worker-1")[0]["ports"] == [{"name": "tfjob-port", "containerPort": 2222}]


def test_pytorch_with_a_wait_for_the_master():
    world, _ = submitted("job-plugin-pytorch")
    found = env(world, "pytorch-job-worker-1")
    assert {key: found[key] for key in ("MASTER_ADDR", "MASTER_PORT", "WORLD_SIZE", "RANK")} == {
        "MASTER_ADDR": "pytorch-job-master-0.pytorch-job", "MASTER_PORT": "23456", "WORLD_SIZE": "3", "RANK": "2",
    }  # fmt: skip
    pods = {name(pod): pod["spec"] for pod in world.pods()}
    assert [each["name"] for each in pods["pytorch-job-worker-1"]["initContainers"]] == ["wait-for-master"]
    assert "initContainers" not in pods["pytorch-job-master-0"]


def test_ray_joins_its_head():
    world, _ = submitted("job-plugin-ray")
    [container] = containers(world, "ray-cluster-job-worker-1")
    assert container["command"][2] == "ray start --block --address=ray-cluster-job-head-0.ray-cluster-job:6379"


def test_keys_in_a_home_of_ones_own():
    world, _ = submitted("job-plugins-env-ssh-svc")
    [container] = containers(world, "test-job-plugin-default-nginx-0")
    assert {each["mountPath"] for each in container["volumeMounts"]} == {"/etc/volcano", "/home/user/.ssh"}
    assert {"VK_TASK_INDEX", "VC_DEFAULT_NGINX_HOSTS", "VC_DEFAULT_NGINX_NUM"} <= env(
        world, "test-job-plugin-default-nginx-0"
    ).keys()
