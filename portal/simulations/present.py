"""The cluster as it is now, as a workload: from the copy that questions are asked of, so that nothing is read twice."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from random import Random
from typing import Any

from django.conf import settings

from cluster import objects
from cluster.kinds import NODE, POD, POD_GROUP, PRIORITY_CLASS, QUEUE, Kind
from cluster.port import Obj
from jobs import keys
from portal.simulations import standing
from portal.simulations.history import like
from portal.unblock.changes import Change
from portal.unblock.copy import View
from scheduler.model.build import GROUP
from scheduler.simulation.runtimes import Likeness, RunTimes
from scheduler.simulation.workload import Workload


def objects_now(view: View, left_out: Collection[str] = ()) -> list[Obj]:
    """Nodes, queues, priority classes, PodGroups and pods, with the pods that controllers will make once jobs are let in.

    A PodGroup is marked with the owner of its job. Jobs (by PodGroup) that are left out are not there at all.
    """
    cache = view.cache
    found = [_of(NODE, cache.nodes.objects[row]) for row in sorted(cache.nodes.index.values())]
    found += [_of(QUEUE, queue.obj) for queue in cache.queues.values() if queue.obj]
    for name, value in view.made.known_classes():
        found.append(_of(PRIORITY_CLASS, {"metadata": {"name": name}, "value": value}))
    for uid, job in cache.jobs.items():
        if uid in left_out:
            continue
        there = [_of(POD, task.pod) for task in job.tasks.values()]
        found += there
        manifest = view.job_of(uid) if job.obj else None
        if job.obj:
            found.append(owned(job.obj, manifest))
        if manifest is not None:
            found += [_of(POD, pod) for pod in view.made.pods(manifest, there)]
    return found + [_of(POD, task.pod) for task in cache.tasks.values() if task.job is None]


def owned(group: Mapping[str, Any], manifest: Obj | None) -> Obj:
    """A PodGroup with the mark of its job's owner."""
    owner = objects.annotations(manifest).get(keys.OWNER, "") if manifest is not None else ""
    meta = {**group["metadata"], "annotations": {**objects.annotations(dict(group)), keys.OWNER: owner}}
    return _of(POD_GROUP, {**group, "metadata": meta})


def after(view: View, objs: Iterable[Obj], changes: Iterable[Change]) -> list[Obj]:
    """The same objects after some changes, with the pods that changed jobs will have."""
    found = {(obj["kind"], objects.key(obj)): obj for obj in objs}
    for change in changes:
        for event in change.events:
            assert event.kind is not None
            place = event.kind.kind, objects.key(event.object)
            if event.type == "DELETED":
                found.pop(place, None)
            elif event.kind == POD_GROUP:
                found[place] = owned(event.object, change.job)
            else:
                found[place] = _of(event.kind, event.object)
        if change.job is not None:
            _replace_pods(found, change.uid, [*change.stay, *view.made.pods(change.job, change.stay)])
    return list(found.values())


def _replace_pods(found: dict[tuple[str, str], Obj], group: str, pods: Iterable[Obj]) -> None:
    """Give a PodGroup these pods and no others."""
    for place, obj in list(found.items()):
        if place[0] == POD.kind and f"{objects.namespace(obj)}/{objects.annotations(obj).get(GROUP)}" == group:
            del found[place]
    for pod in pods:
        found[POD.kind, objects.key(pod)] = _of(POD, pod)


def _of(kind: Kind, obj: Iterable[tuple[str, object]] | dict[str, object] | object) -> Obj:
    """A copy that says what it is: a cluster's lists leave that out."""
    return {**dict(obj), "apiVersion": kind.api_version, "kind": kind.kind}  # type: ignore[call-overload]


def workload(objs: list[Obj], now: float, times: RunTimes, seed: int = 0) -> Workload:
    """Objects as a workload: a job runs as long as its pods state, else as long as the past says, drawn by `seed`."""
    by_group: dict[str, list[Obj]] = {}
    for obj in objs:
        if obj["kind"] == POD.kind:
            by_group.setdefault(f"{objects.namespace(obj)}/{objects.annotations(obj).get(GROUP)}", []).append(obj)

    def run_time(group: Obj, ran: float) -> float:
        pods = by_group.get(objects.key(group), [])
        chance = Random(f"{seed}/{objects.key(group)}")  # noqa: S311 - run times, nothing secret
        return times.draw(likeness_of(group, pods), ran, chance)[0]

    return standing.workload("now", objs, now, run_time, settings.BASALT_SCHEDULER_NAMES)


def likeness_of(group: Obj, pods: list[Obj]) -> Likeness:
    """What the job of a PodGroup has in common with others, as its row would have it."""
    owner = objects.owner(group) or {}
    gpus = sum(objects.gpu_count(objects.pod_requests(pod["spec"])) for pod in pods)
    queue = str((group.get("spec") or {}).get("queue") or "default")
    name = str(owner.get("name") or objects.name(group))
    return like(objects.annotations(group).get(keys.OWNER, ""), queue, name, gpus)
