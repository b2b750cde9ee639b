"""The containers whose logs are wanted: of a pod that is there, of one that is gone, real or simulated."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from django.conf import settings

from cluster import runtime
from cluster.embedded import podlogs
from cluster.errors import NotFound
from cluster.kinds import POD
from cluster.logs.store import LogStore
from cluster.logs.streams import SimulatedStream, Stream
from cluster.port import Obj
from jobs.logs import remote
from jobs.logs.asked import Asked
from jobs.models import Job, Pod

MOST_PODS = 1000
"""Pods whose logs are read together."""


@dataclass(frozen=True, slots=True)
class Source:
    """One attempt of one container; `is_over` says whether nothing more will come."""

    pod_uid: str
    pod: str
    task: str
    index: int
    container: str
    attempt: int
    stream: Stream
    is_over: Callable[[], bool]

    @property
    def key(self) -> str:
        """What makes it one of its kind."""
        return f"{self.pod_uid}/{self.container}/{self.attempt}"


def store() -> LogStore:
    """The logs of this data folder."""
    return LogStore(settings.DATA_DIR / "logs")


def are_simulated() -> bool:
    """Whether no program runs behind the pods, so that what they would have printed is made up."""
    return settings.BASALT_CLUSTER == "embedded" and not runtime.runs_commands()


def are_remote() -> bool:
    """Whether the logs are kept by the kubelets of a cluster, as long as they keep them."""
    return bool(settings.BASALT_CLUSTER == "kubernetes")


def most_pods() -> int:
    """Pods whose logs are read together."""
    return remote.MOST_PODS if are_remote() else MOST_PODS


def are_masked(pods: Iterable[Pod]) -> bool:
    """Whether the values of all Secrets that these pods are given are masked: over a cluster we may be unable to read them."""
    return not are_remote() or all(remote.secrets_of(found)[1] for pod in pods if (found := _present(pod)) is not None)


def of_pods(pods: Iterable[Pod], job: Job | None, asked: Asked) -> list[Source]:
    """What is wanted of these pods, in their order."""
    return [source for pod in pods for source in of_pod(pod, job, asked)]


def of_pod(pod: Pod, job: Job | None, asked: Asked) -> list[Source]:
    """The wanted containers of one pod: the newest attempt of each, or the one before."""
    if are_remote():
        return _of_remote_pod(pod, job, asked)
    kept = store()
    names = containers(pod, job)
    wanted = [asked.container] if asked.container else names
    found = []
    for name in wanted:
        if name not in names:
            continue
        attempts = kept.attempts(pod.uid, name)
        if attempts:
            attempt = attempts[-1] - 1 if asked.previous else attempts[-1]
            if attempt in attempts:
                over = (lambda: True) if asked.previous else (lambda uid=pod.uid: kept.is_over(uid))
                found.append(
                    Source(pod.uid, pod.name, pod.task, pod.index, name, attempt, kept.stream(pod.uid, name, attempt), over)
                )
        elif are_simulated() and not kept.has(pod.uid) and not asked.previous:
            stream = SimulatedStream(name, _times(pod), lambda: runtime.now().timestamp())
            found.append(Source(pod.uid, pod.name, pod.task, pod.index, name, pod.restarts, stream, _has_ended(pod)))
    return found


def _of_remote_pod(pod: Pod, job: Job | None, asked: Asked) -> list[Source]:
    present = _present(pod)
    if present is None:
        return []
    names = containers(pod, job)
    found = []
    for name in [asked.container] if asked.container else names:
        attempt = remote.attempt(present, name) - asked.previous
        if name in names and attempt >= 0:
            stream = remote.stream(present, name, previous=asked.previous)
            found.append(Source(pod.uid, pod.name, pod.task, pod.index, name, attempt, stream, stream.is_over))
    return found


def containers(pod: Pod, job: Job | None) -> list[str]:
    """The names of a pod's containers, those that come first in front: from its log, itself, or its job's manifest."""
    if names := store().containers(pod.uid):
        return names
    spec = (_present(pod) or {}).get("spec") or {}
    if not spec and job is not None:
        for task in (job.manifest.get("spec") or {}).get("tasks") or ():
            if task.get("name") == pod.task:
                spec = (task.get("template") or {}).get("spec") or {}
    return [str(c.get("name") or "") for c in (*(spec.get("initContainers") or ()), *(spec.get("containers") or ()))]


def main_container(pod: Pod, job: Job | None) -> str:
    """The one that is meant when none is named: the first that is no init container."""
    if kept := store().main(pod.uid):
        return kept
    spec = (_present(pod) or {}).get("spec") or {}
    mains = [str(c.get("name") or "") for c in spec.get("containers") or ()]
    names = containers(pod, job)
    first = len(names) - len(mains) if mains else _inits(pod, job)
    return names[min(first, len(names) - 1)] if names else ""


def _inits(pod: Pod, job: Job | None) -> int:
    for task in ((job.manifest if job else {}).get("spec") or {}).get("tasks") or ():
        if task.get("name") == pod.task:
            return len(((task.get("template") or {}).get("spec") or {}).get("initContainers") or ())
    return 0


def _present(pod: Pod) -> Obj | None:
    """The pod itself, while the cluster has it."""
    cluster = runtime.current_or_none()
    if cluster is None or pod.deleted_at is not None:
        return None
    try:
        found = cluster.get(POD, pod.name, pod.namespace)
    except NotFound:
        return None
    return found if found["metadata"]["uid"] == pod.uid else None


def _times(pod: Pod) -> Callable[[], tuple[float | None, float | None, int | None]]:
    def times() -> tuple[float | None, float | None, int | None]:
        if (present := _present(pod)) is not None and (found := podlogs.times(present))[0] is not None:
            return found
        is_settled = pod.finished_at is not None or pod.deleted_at is not None
        row = pod if is_settled else Pod.objects.filter(pk=pod.pk).first() or pod
        ended_at = row.finished_at or row.deleted_at
        return (
            row.started_at.timestamp() if row.started_at else None,
            ended_at.timestamp() if ended_at else None,
            row.exit_code,
        )

    return times


def _has_ended(pod: Pod) -> Callable[[], bool]:
    def has_ended() -> bool:
        present = _present(pod)
        return present is None or (present.get("status") or {}).get("phase") in ("Succeeded", "Failed")

    return has_ended
