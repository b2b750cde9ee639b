"""Pods in trouble are told beside their job's own phase, and no longer than they are in it."""

from __future__ import annotations

import pytest
from django.utils import translation

from cluster.port import Obj
from cluster.projection import Batch
from jobs import summary
from jobs.models import Job, Pod
from jobs.projection import project_jobs, project_pods
from tests.portal import objects as make

pytestmark = pytest.mark.django_db


def pod(name: str, version: int = 1, reason: str = "", field: str = "containerStatuses", **more: str) -> Obj:
    found = make.pod(name, version, **more)
    state = (
        {"waiting": {"reason": reason, "message": "back-off 5m0s"}}
        if reason
        else {"running": {"startedAt": make.STAMP.format(9)}}
    )
    found["status"][field] = [{"name": "healthy", "state": {"running": {}}}, {"name": "c", "state": state}]
    return found


def trouble() -> dict[str, object] | None:
    return Job.objects.get().trouble


def test_what_most_pods_wait_for_is_told_with_one_of_them() -> None:
    project_jobs(Batch([make.job(phase="Running")]))
    pods = [("a", "ErrImagePull"), ("b", "CrashLoopBackOff"), ("c", "CrashLoopBackOff"), ("d", "")]
    project_pods(Batch([pod(name, reason=reason, phase="Running") for name, reason in pods]))
    assert trouble() == {"reason": "CrashLoopBackOff", "pods": 2, "pod": "b"}
    assert Pod.objects.get(name="b").message == "back-off 5m0s"


def test_a_job_seen_after_its_pods_tells_it_too() -> None:
    project_pods(Batch([pod("a", reason="ErrImagePull", field="initContainerStatuses")]))
    project_jobs(Batch([make.job(phase="Pending")]))
    assert trouble() == {"reason": "ErrImagePull", "pods": 1, "pod": "a"}


@pytest.mark.parametrize("reason", ["ContainerCreating", "PodInitializing", ""])
def test_what_passes_by_itself_is_no_trouble(reason: str) -> None:
    project_jobs(Batch([make.job(phase="Running")]))
    project_pods(Batch([pod("a", reason=reason, phase="Running")]))
    assert trouble() is None


def test_it_ends_when_the_pod_recovers_ends_or_goes() -> None:
    project_jobs(Batch([make.job(phase="Running")]))
    for version, after in enumerate([pod("a"), pod("a", reason="ErrImagePull", phase="Failed")], 1):
        project_pods(Batch([pod("a", 10 * version, reason="ErrImagePull")]))
        assert trouble() is not None
        after["metadata"]["resourceVersion"] = str(10 * version + 1)
        project_pods(Batch([after]))
        assert trouble() is None
    project_pods(Batch([pod("b", 90, reason="ErrImagePull")]))
    project_pods(Batch(deletes=[pod("b", 91, reason="ErrImagePull")]))
    assert trouble() is None


def test_the_line_of_a_list_says_how_many_and_which() -> None:
    project_jobs(Batch([make.job(phase="Running")]))
    project_pods(Batch([pod("a", reason="CrashLoopBackOff", phase="Running")]))
    assert summary.line(Job.objects.get()) == "1 of 3 pods: CrashLoopBackOff (a)"
    with translation.override("zh-hans"):
        assert summary.line(Job.objects.get()) == "3 个 Pod 中有 1 个：CrashLoopBackOff（a）"
    project_jobs(Batch([make.job(version=2, phase="Failed")]))
    assert "CrashLoopBackOff" not in summary.line(Job.objects.get())


def test_an_evicted_pod_keeps_the_reason_after_it_is_gone() -> None:
    victim = make.pod("a", phase="Running")
    said = {"type": "DisruptionTarget", "status": "True", "reason": "PreemptionByScheduler", "message": "for team/big"}
    victim["status"]["conditions"] = [said]
    project_pods(Batch(deletes=[victim]))
    row = Pod.objects.get()
    assert (row.reason, row.message) == ("PreemptionByScheduler", "for team/big")
