"""Objects of a cluster that stands already, as a workload: its jobs are those with a PodGroup, running and waiting ones."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from cluster import objects
from cluster.durations import parse_duration
from cluster.kinds import NODE, POD, POD_GROUP
from cluster.port import Obj
from jobs.keys import OWNER
from scheduler.model.build import GROUP
from scheduler.simulation.runtimes import prefix_of
from scheduler.simulation.workload import Job, Role, Workload

RunTime = Callable[[Obj, float], float]
"""(a job's PodGroup, seconds for which it has run) → its whole run time, in seconds."""
ENDED = ("Succeeded", "Failed")


def workload(name: str, objs: Iterable[Obj], now: float, run_time: RunTime, names: Iterable[str]) -> Workload:
    """Everything as it is at `now` (epoch seconds). Times of the workload are epoch seconds; pods without a group stay."""
    statics: list[Obj] = []
    groups: dict[str, Obj] = {}
    pods: defaultdict[str, list[Obj]] = defaultdict(list)
    for obj in objs:
        if obj["kind"] == POD_GROUP.kind:
            groups[objects.key(obj)] = obj
        elif obj["kind"] == POD.kind:
            _sort(obj, pods, statics)
        elif obj["kind"] != NODE.kind or obj.get("status"):
            statics.append(obj)
    jobs = []
    for key, group in groups.items():
        members = pods.pop(key, [])
        if members:
            jobs.append(_job(group, members, now, run_time))
    statics += [pod for left in pods.values() for pod in left if pod["spec"].get("nodeName")]
    begin = now
    return Workload(name, statics, jobs, base=0.0, begin=begin, scheduler_names=tuple(names))


def _sort(pod: Obj, pods: defaultdict[str, list[Obj]], statics: list[Obj]) -> None:
    if (pod.get("status") or {}).get("phase") in ENDED or objects.is_deleting(pod):
        return
    group = objects.annotations(pod).get(GROUP)
    if group:
        pods[f"{objects.namespace(pod)}/{group}"].append(pod)
    elif pod["spec"].get("nodeName"):
        statics.append(pod)


def _job(group: Obj, pods: list[Obj], now: float, run_time: RunTime) -> Job:
    spec = group.get("spec") or {}
    least = min(max(int(spec.get("minMember") or 1), 1), len(pods))
    started = [at for pod in pods if pod["spec"].get("nodeName") and (at := started_at(pod, now)) is not None]
    ran = max(0.0, now - sorted(started)[least - 1]) if len(started) >= least else 0.0
    created = group["metadata"].get("creationTimestamp")
    owner = objects.owner(group) or {}
    return Job(
        name=objects.name(group),
        arrival=min(objects.parse_time(created), now) if created else now,
        duration=max(run_time(group, ran), ran + 1.0),
        roles=_roles(pods),
        least=least,
        queue=str(spec.get("queue") or "default"),
        namespace=objects.namespace(group),
        owner=objects.annotations(group).get(OWNER, ""),
        kind=prefix_of(str(owner.get("name") or objects.name(group))),
        priority_class=str(spec.get("priorityClassName") or ""),
        ran=ran,
        group=group,
        made=tuple(pods),
    )


def started_at(pod: Obj, now: float) -> float | None:
    """When a pod with a node began to run, epoch seconds: at `now` for one that is about to."""
    text = (pod.get("status") or {}).get("startTime")
    if (pod.get("status") or {}).get("phase") != "Running":
        return now
    return objects.parse_time(text) if text else now


def _roles(pods: list[Obj]) -> tuple[Role, ...]:
    """One role a kind of pods, only to tell how much the job asks."""
    counts: dict[tuple[tuple[str, str], ...], int] = {}
    for pod in pods:
        units = objects.pod_requests(pod["spec"])
        shape = tuple(sorted((name, objects.format_units(name, amount)) for name, amount in units.items() if name != "pods"))
        counts[shape] = counts.get(shape, 0) + 1
    return tuple(Role(f"r{i}", count, dict(shape)) for i, (shape, count) in enumerate(counts.items()))


def stated(pods: Iterable[Mapping[str, Any]]) -> float | None:
    """The run time that simulated pods state for themselves, the longest of them; None where none does."""
    found = []
    for pod in pods:
        text = objects.annotations(pod).get(objects.SIM_DURATION)
        if text:
            try:
                found.append(parse_duration(text))
            except ValueError:
                continue
    return max(found, default=None)
