"""Other people's Job manifests, on the demo fleet, with the real scheduler and simulated kubelets: each runs to its end."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from cluster.clock import ManualClock
from cluster.embedded import fleets
from cluster.embedded.kubelet import Kubelet
from cluster.embedded.store import EmbeddedCluster
from cluster.errors import AlreadyExists
from cluster.kinds import JOB, POD, POD_GROUP, PRIORITY_CLASS, QUEUE
from jobs import operations
from jobs.controller import ControllerManager
from jobs.lifecycle import FINAL
from scheduler.loop import SchedulerLoop
from tests.jobs.world import SCHEDULERS, START, all_rules

FOLDER = Path(__file__).resolve().parents[3] / "shared" / "data" / "manifests"
REFUSED = {"job-preemptable-cooldown.yaml"}
ELSEWHERE = {"job-vllm-rdma-pytorch.yaml"}  # asks for resources that no demo node has


def real_jobs() -> list[Any]:
    """(file, its documents) of every file with a Job that is sound."""
    found = []
    for path in sorted(FOLDER.glob("*.yaml")):
        documents = [d for d in yaml.safe_load_all(path.read_text()) if d]
        if path.name.startswith("invalid-") or path.name in REFUSED:
            continue
        if any((d["apiVersion"], d["kind"]) == (JOB.api_version, "Job") for d in documents):
            found.append(pytest.param(path.name, documents, id=path.stem))
    return found


class Machine:
    """Everything that `manage.py run` starts but the web, in one thread and in simulated time."""

    def __init__(self) -> None:
        self.clock = ManualClock(START)
        self.cluster = EmbeddedCluster(clock=self.clock, admission=all_rules())
        self.controllers = ControllerManager(self.cluster, self.clock, schedulers=SCHEDULERS)
        self.controllers.settle()
        fleets.load(self.cluster, fleets.demo(), self.clock)
        self.kubelet = Kubelet(self.cluster, self.clock)
        self.scheduler = SchedulerLoop(self.cluster, None, self.clock, scheduler_names=SCHEDULERS)

    def second(self) -> None:
        """One second of life."""
        self.controllers.settle()
        self.scheduler.step()
        self.controllers.settle()
        self.clock.advance(1)
        self.kubelet.settle()

    def bring(self, documents: list[dict[str, Any]]) -> list[dict[str, Any]]:
        """Create the documents and what they name but do not bring; the jobs among them."""
        jobs = []
        for document in documents:
            if document["kind"] == "Job":
                self._provide(QUEUE, document["spec"].get("queue") or "default")
                jobs.append(operations.submit(self.cluster, document))
            else:
                self.cluster.create({"Queue": QUEUE, "PriorityClass": PRIORITY_CLASS}[document["kind"]], document)
        return jobs

    def _provide(self, kind: Any, name: str) -> None:
        try:
            self.cluster.create(kind, {"apiVersion": kind.api_version, "kind": kind.kind, "metadata": {"name": name}, "spec": {}})
        except AlreadyExists:
            return

    def phase(self, job: dict[str, Any]) -> str:
        """The phase of a job."""
        stored = self.cluster.get(JOB, job["metadata"]["name"], job["metadata"]["namespace"])
        return stored.get("status", {}).get("state", {}).get("phase", "")


@pytest.mark.parametrize(("name", "documents"), real_jobs())
def test_a_real_job_runs_to_its_end(name, documents):
    machine = Machine()
    jobs = machine.bring(documents)
    for _ in range(600):
        machine.second()
        if all(machine.phase(job) in FINAL for job in jobs):
            break
    machine.second()
    if name in ELSEWHERE:
        assert [machine.phase(job) for job in jobs] == ["Pending"]
        return
    assert [machine.phase(job) for job in jobs] == ["Completed"] * len(jobs)
    for _ in range(10):
        machine.second()
    assert {pod["status"]["phase"] for pod in machine.cluster.list(POD).items} == {"Succeeded"}
    assert machine.cluster.list(POD_GROUP).items == []
