"""Real distributed programs under `--runtime process`, and what a power cut leaves of them: nothing."""

import re
import shutil
import subprocess
import time
from pathlib import Path

import pytest

from tests.e2e.server import ROOT, Server, wait_for

EXAMPLES = ROOT / "docs" / "examples"
ENDED = ("Completed", "Failed", "Terminated", "Aborted")


@pytest.fixture(scope="module")
def real(tmp_path_factory):
    """A Basalt that runs commands on this machine."""
    running = Server(tmp_path_factory.mktemp("processes"), "--runtime", "process")
    running.start()
    yield running
    running.stop()


@pytest.fixture
def api(real):
    with real.client() as client:
        yield client


def needs_mounts(real):
    for line in real.output().splitlines():
        if line.startswith("Missing here: no mount namespaces"):
            pytest.skip(line)


def run_example(api, name, seconds=90):
    """Apply an example, wait for its job's end, and give the lines of its pods by pod."""
    text = (EXAMPLES / f"{name}.yaml").read_text()
    answer = api.post("/apply", content=text, headers={"Content-Type": "application/yaml"})
    assert answer.status_code == 200, answer.text
    job = wait_for(lambda: ended(api, name), seconds, f"the end of {name}")
    log = api.get(f"/jobs/default/{name}/logs").text
    assert job["phase"] == "Completed", log
    return [re.sub(r"^\[(\S+) \S+\] ", r"\1: ", line) for line in log.splitlines()]


def ended(api, name):
    job = api.get(f"/jobs/default/{name}").json()
    return job if job["phase"] in ENDED else None


def submit(api, name, script, *, policy="Never", replicas=1, **spec):
    container = {"name": "main", "image": "not-used", "command": ["sh", "-c", script]}
    task = {"name": "w", "replicas": replicas, "template": {"spec": {"restartPolicy": policy, "containers": [container]}}}
    manifest = {
        "apiVersion": "batch.volcano.sh/v1alpha1",
        "kind": "Job",
        "metadata": {"name": name},
        "spec": {"tasks": [task]} | spec,
    }
    answer = api.post("/jobs", json=manifest)
    assert answer.status_code == 201, answer.text


def test_a_gang_greets(real, api):
    assert sorted(run_example(api, "hello")) == [f"hello-worker-{n}: Hello from {n} at hello-worker-{n}" for n in range(3)]


def test_a_tensorflow_cluster_meets_by_tf_config(real, api):
    needs_mounts(real)
    lines = run_example(api, "tensorflow-cluster")
    assert {line for line in lines if "added up" in line or "got" in line} == {
        *(f"tensorflow-cluster-ps-{n}: ps {n} added up 60" for n in range(2)),
        *(f"tensorflow-cluster-worker-{n}: worker {n} got [60, 60]" for n in range(3)),
    }


def test_a_pytorch_rendezvous_adds_up(real, api):
    needs_mounts(real)
    pods = ["master-0", "worker-0", "worker-1", "worker-2"]
    assert sorted(run_example(api, "pytorch-allreduce")) == [
        f"pytorch-allreduce-{pod}: rank {rank} of 4: all-reduce gives [10, 30]" for rank, pod in enumerate(pods)
    ]


def test_open_mpi_reaches_its_workers_by_ssh_and_computes_pi(real, api):
    needs_mounts(real)
    if shutil.which("mpiexec") is None or not Path("/usr/sbin/sshd").exists():
        pytest.skip("needs openmpi-bin and openssh-server")
    lines = run_example(api, "mpi-pi")
    assert "mpi-pi-master-0: pi is 3.1415926536" in lines
    ranks = sorted(line for line in lines if ": rank " in line)
    assert [line.rsplit(" ", 1)[0] for line in ranks] == [f"mpi-pi-master-0: rank {rank} of 4 on" for rank in range(4)]
    assert {line.rsplit(" ", 1)[1] for line in ranks} == {"mpi-pi-worker-0", "mpi-pi-worker-1"}
    assert not any("PRIVATE KEY" in line for line in lines)


def test_a_log_is_followed_until_the_end(real, api):
    submit(api, "follow", "for n in 1 2 3; do echo line $n; sleep 0.4; done")
    wait_for(lambda: api.get("/jobs/default/follow").json()["phase"] in ("Running", *ENDED), 30, "a start")
    with api.stream("GET", "/jobs/default/follow/logs", params={"follow": "true", "format": "json"}) as answer:
        text = "".join(answer.iter_text())
    assert re.findall(r'"(line \d)"', text) == ["line 1", "line 2", "line 3"]
    assert text.rstrip().endswith('{"end":"over"}')


def test_a_log_outlives_its_pod(real, api):
    submit(api, "outlived", "echo last words")
    wait_for(lambda: ended(api, "outlived"), 30, "the end")
    uid = api.get("/jobs/default/outlived").json()["uid"]
    api.delete("/jobs/default/outlived")
    wait_for(lambda: api.get("/pods", params={"job": uid}).json()["results"] == [], 30, "the pods' end")
    assert api.get("/pods/default/outlived-w-0/log").text == "last words\n"


def test_every_page_says_that_commands_run_here(real, api):
    words = "Jobs run their commands on this machine"
    assert words in api.get(f"{real.url}/sign-in/").text


@pytest.fixture
def doomed(fresh_data):
    running = Server(fresh_data, "--runtime", "process")
    running.start()
    yield running
    running.stop()


def test_a_killed_basalt_leaves_no_process_and_jobs_go_on_by_their_policies(doomed):
    mark = f"6{time.time_ns() % 10_000_000:07d}"
    script = f"(setsid sleep {mark} &); sleep 3; echo end"
    with doomed.client() as api:
        submit(api, "again", script, policy="OnFailure", replicas=2)
        submit(api, "retry", script, policies=[{"event": "PodFailed", "action": "RestartJob"}])
        submit(api, "plain", script)
        names = ("again", "retry", "plain")
        wait_for(lambda: all(api.get(f"/jobs/default/{n}").json()["phase"] == "Running" for n in names), 60, "all running")
        wait_for(lambda: count(mark) >= 4, 20, "the programs")
    doomed.kill()
    wait_for(lambda: count(mark) == 0, 5, "nothing left")
    doomed.start()
    with doomed.client() as api:
        found = {name: wait_for(lambda name=name: ended(api, name), 60, f"the end of {name}") for name in names}
    assert {name: (job["phase"], job["retry_count"]) for name, job in found.items()} == {
        "again": ("Completed", 0),
        "retry": ("Completed", 1),
        "plain": ("Failed", 0),
    }
    assert [pod["restarts"] for pod in found["again"]["pods"]] == [1, 1]
    assert found["plain"]["pods"][0]["reason"] == "KubeletRestarted"


def count(mark):
    return int(subprocess.run(["pgrep", "-fc", f"sleep {mark}"], capture_output=True, text=True).stdout or 0)
