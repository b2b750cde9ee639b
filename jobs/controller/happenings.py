"""What has happened to a job, read off its pods. Pure.

Most events can be seen in what is there: a pod that has failed, a role that has finished. They are read anew at each pass, so a
restart of the controller loses none, and a delay counts from the time that the pod itself tells. What leaves no trace (a pod
that is gone) is told from what the job's status remembers, by `memory`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace

from cluster import objects
from cluster.port import Obj
from jobs import keys
from jobs.policies import Event, Happening
from jobs.roles import PodTable, is_marked, phase_of, role_of, tasks_of, version_of


def observed(job: Obj, pods: Iterable[Obj]) -> list[Happening]:
    """The events that the pods of the present generation show, oldest first."""
    version = int((job.get("status") or {}).get("version") or 0)
    unmarked = [pod for pod in pods if not is_marked(pod)]
    there = [pod for pod in unmarked if not objects.is_deleting(pod)]
    begun = {role_of(pod) for pod in there if version_of(pod) >= version}
    found = [*_of_pods(job, [pod for pod in unmarked if version_of(pod) >= version]), *_of_roles(job, begun, PodTable.of(there))]
    return sorted(found, key=lambda happening: happening.at)


def of_pod(job_uid: str, pod: Obj, event: Event, at: float, exit_code: int = 0) -> Happening:
    """An event of one pod."""
    return Happening(
        event=event,
        role=role_of(pod),
        pod=objects.name(pod),
        pod_uid=objects.uid(pod),
        partition=objects.labels(pod).get(keys.PARTITION_ID, ""),
        exit_code=exit_code,
        job_uid=job_uid,
        version=version_of(pod),
        at=at,
    )


def of_failed(job: Obj, pod: Obj) -> Happening:
    """The failure of a pod, when and with which code."""
    return of_pod(objects.uid(job), pod, Event.POD_FAILED, _finished_at(pod), int(_terminated(pod).get("exitCode") or 0))


def _of_pods(job: Obj, pods: Iterable[Obj]) -> Iterator[Happening]:
    for pod in pods:
        phase = phase_of(pod)
        if phase == "Failed":
            yield of_failed(job, pod)
        elif phase == "Pending" and not objects.is_deleting(pod):
            yield of_pod(objects.uid(job), pod, Event.POD_PENDING, _created_at(pod))


def _of_roles(job: Obj, begun: set[str], table: PodTable) -> Iterator[Happening]:
    version = int((job.get("status") or {}).get("version") or 0)
    for task in tasks_of(job):
        if task["name"] not in begun:
            continue  # what stayed of an earlier generation raises nothing
        pods = list(table.role(task["name"]).values())
        phases = [phase_of(pod) for pod in pods]
        if phases.count("Succeeded") >= int(task.get("replicas") or 0) > 0:
            yield _of_role(job, Event.TASK_COMPLETED, version, pods, _finished_at)
        limit = int(task.get("maxRetry") or 3)
        alive = [pod for pod in pods if phase_of(pod) in ("Running", "Pending")]
        if limit > 0 and sum(map(_restarts, alive)) >= limit:
            yield _of_role(job, Event.TASK_FAILED, version, alive, _restarted_at)


def _of_role(job: Obj, event: Event, version: int, pods: list[Obj], instant: Callable[[Obj], float]) -> Happening:
    """An event of a whole role, raised by the pod that was the last to move."""
    last = max(pods, key=lambda pod: (instant(pod), keys.index_of(objects.name(pod))))
    return replace(of_pod(objects.uid(job), last, event, instant(last)), version=version)


def _terminated(pod: Obj) -> Obj:
    """How the first container ended; later ones, init containers and sidecars do not count."""
    statuses = (pod.get("status") or {}).get("containerStatuses") or [{}]
    return (statuses[0].get("state") or {}).get("terminated") or {}


def _created_at(pod: Obj) -> float:
    return objects.parse_time(pod["metadata"]["creationTimestamp"])


def _finished_at(pod: Obj) -> float:
    """When the pod ended: its container says so, or (a pod that its node threw out) the last of its conditions."""
    text = _terminated(pod).get("finishedAt")
    if text:
        return objects.parse_time(text)
    stamps = [c.get("lastTransitionTime") for c in (pod.get("status") or {}).get("conditions") or ()]
    return max((objects.parse_time(stamp) for stamp in stamps if stamp), default=_created_at(pod))


def _restarted_at(pod: Obj) -> float:
    """When a container of the pod last ended and was started again."""
    ends = [((c.get("lastState") or {}).get("terminated") or {}).get("finishedAt") for c in _containers(pod)]
    return max((objects.parse_time(end) for end in ends if end), default=_created_at(pod))


def _restarts(pod: Obj) -> int:
    return sum(int(container.get("restartCount") or 0) for container in _containers(pod))


def _containers(pod: Obj) -> list[Obj]:
    status = pod.get("status") or {}
    return [*(status.get("containerStatuses") or ()), *(status.get("initContainerStatuses") or ())]
