"""Ways to a start: for each kind of change the smallest that lets a waiting job place, found by runs over a copy.

A kind is looked for with everybody else standing still, in few and cheap runs, its numbers by bisection. What was found is
then proved with everybody served: only a change after which the job still starts is a way.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from cluster import objects
from cluster.embedded.patches import merge
from cluster.port import Obj
from jobs.roles import minimum_of, tasks_of
from portal.unblock import changes
from portal.unblock.amounts import holder, steps, with_amount
from portal.unblock.changes import Change
from portal.unblock.copy import View
from scheduler.framework.explain import Stage, Verdict
from scheduler.framework.record import EvictionRecord
from scheduler.model.jobs import JobInfo
from scheduler.model.tasks import TaskStatus
from scheduler.whatif import Played, compare, largest

QUEUES, JOBS, PRIORITIES = 8, 8, 5
"""Most queues, running jobs and priority classes that are tried."""
SYSTEM = "system-"


@dataclass(slots=True)
class Way:
    """One change. `values` are for its words; `patch` makes it, `in_place` on the live job, else on a copy.

    `events` are how the copy of the cluster hears of it. What follows was decided in the run that proved it.
    """

    code: str
    values: dict[str, Any]
    patch: Obj | None
    in_place: bool
    change: Change
    played: Played = field(default_factory=Played)
    evicted: list[EvictionRecord] = field(default_factory=list)
    delayed: list[str] = field(default_factory=list)
    pods: int = 0

    @property
    def starts(self) -> int:
        """Pods that get a node."""
        return len(self.played.binds.get(self.change.uid, ()))


class Asked:
    """A waiting job on a view, with the cheap runs that search for ways."""

    def __init__(self, view: View, job: Obj, queues: tuple[str, ...], out_of_time: Callable[[], bool] = lambda: False) -> None:
        self.view, self.job, self.queues, self.out_of_time = view, job, queues, out_of_time
        self.uid = view.group_of(job)
        self.group: JobInfo = view.cache.jobs[self.uid]
        self.verdict: Verdict | None = view.baseline.verdicts.get(self.uid)

    def try_(self, change: Change, *, everybody: bool = False) -> Played | None:
        """The course after a change if the job starts in it. Nobody else is served, unless `everybody` is."""
        if self.out_of_time() and not everybody:
            return None
        only = None if everybody else {change.uid}
        view = self.view
        played = view.play(change.events, only=only, until=change.uid, extra=lambda uid: change.pods(view, uid))
        return played if change.uid in played.started else None

    def prove(self, way: Way) -> Way | None:
        """The way with what happens when everybody is served; None when the job does not start then."""
        played = self._at_once(way) or self.try_(way.change, everybody=True)
        if played is None:
            return None
        way.played = played
        way.pods = sum(int(task.get("replicas") or 0) for task in tasks_of(merge(self.job, way.patch or {})))
        told = compare(self.view.baseline, played)
        way.evicted, way.delayed = told.evicted, [uid for uid in told.delayed if uid not in (self.uid, way.change.uid)]
        return way

    def _at_once(self, way: Way) -> Played | None:
        """The course of an admitted job that starts in one cycle: in that one only those admitted before take nodes."""
        view, change = self.view, way.change
        if not way.in_place or self.group.phase == "Pending" or not view.baseline.is_quiet():
            return None
        played = view.play(change.events, cycles=1, only=view.admitted | {change.uid})
        return played if change.uid in played.started else None


def ways(asked: Asked, most: int = 3) -> Iterator[Way]:
    """Proved ways, the kinds in the order in which they suit what holds the job."""
    found = 0
    seen: set[str] = set()
    for code in order_of(asked.verdict):
        for way in KINDS[code](asked):
            if (code == "replicas" and "minimum" in seen) or (proved := asked.prove(way)) is None:
                continue
            seen.add(code)
            found += 1
            yield proved
            break
        if found == most or asked.out_of_time():
            return


def order_of(verdict: Verdict | None) -> list[str]:
    """Kinds of changes, the likeliest first."""
    order = ["minimum", "per_pod", "wait", "queue", "placement", "priority", "replicas"]
    first: list[str] = []
    if verdict is None:
        return order
    if verdict.stage in (Stage.QUEUE_LIMIT, Stage.ADMISSION):
        first = ["minimum", "queue", "wait"]
    elif verdict.stage is Stage.TOPOLOGY:
        first = ["placement", "minimum"]
    elif verdict.rejected and not any(cause.startswith("insufficient:") for cause in verdict.rejected):
        first = ["placement"]
    return [*first, *(code for code in order if code not in first)]


# -- changes of the live job -------------------------------------------------------------------------------------------


def _minimum(asked: Asked) -> Iterator[Way]:
    job = asked.job
    now = int(job["spec"].get("minAvailable") or 0)

    def made(number: int) -> Way:
        patch = {"spec": {"minAvailable": number}}
        return Way("minimum", {"from": now, "to": number}, patch, True, changes.in_place(asked.view, job, patch))

    found = largest(max(1, asked.group.ready_count()), now - 1, lambda number: _tried(asked, made(number)))
    if found is not None:
        yield found[1]


def _replicas(asked: Asked) -> Iterator[Way]:
    job, tasks = asked.job, tasks_of(asked.job)
    place = max(range(len(tasks)), key=lambda at: int(tasks[at].get("replicas") or 0), default=-1)
    if place < 0:
        return
    task, now = tasks[place], int(tasks[place].get("replicas") or 0)
    others = sum(int(each.get("replicas") or 0) for each in tasks) - now

    def made(number: int) -> Way:
        least = min(minimum_of(task), number)
        new = [*tasks[:place], {**task, "replicas": number, "minAvailable": least}, *tasks[place + 1 :]]
        total = min(int(job["spec"].get("minAvailable") or 0), others + number)
        patch = {"spec": {"tasks": new, "minAvailable": total}}
        values = {"from": now, "to": number, "task": task["name"]}
        return Way("replicas", values, patch, True, changes.in_place(asked.view, job, patch))

    found = largest(1, now - 1, lambda number: _tried(asked, made(number)))
    if found is not None:
        yield found[1]


def _priority(asked: Asked) -> Iterator[Way]:
    classes = asked.view.made.known_classes()
    higher = [each for each in classes if each[1] > asked.group.priority and not each[0].startswith(SYSTEM)][:PRIORITIES]
    for name, value in higher:
        patch = {"spec": {"priorityClassName": name}}
        values = {"from": asked.group.priority, "to": value, "class": name}
        way = Way("priority", values, patch, True, changes.in_place(asked.view, asked.job, patch))
        if _tried(asked, way):
            yield way


# -- a changed copy ----------------------------------------------------------------------------------------------------


def _copy(asked: Asked, code: str, values: dict[str, Any], patch: Obj) -> Way:
    return Way(code, values, patch, False, changes.instead(asked.view, asked.job, patch))


def _per_pod(asked: Asked) -> Iterator[Way]:
    tasks, verdict = tasks_of(asked.job), asked.verdict
    place = next((at for at, task in enumerate(tasks) if verdict and task["name"] == verdict.task), None)
    if place is None:
        place = max(range(len(tasks)), key=lambda at: max(_gpus(tasks[at]), default=0), default=-1)
    if place < 0:
        return
    task = tasks[place]
    pod = (task.get("template") or {}).get("spec") or {}
    resource = holder(pod, verdict.resource if verdict else "")
    if not resource:
        return
    now = objects.pod_requests(pod)[resource]
    amounts = steps(resource, now)

    def made(number: int) -> Way:
        template = {**task["template"], "spec": with_amount(pod, resource, amounts[number])}
        patch = {"spec": {"tasks": [*tasks[:place], {**task, "template": template}, *tasks[place + 1 :]]}}
        to = objects.pod_requests(template["spec"])[resource]
        return _copy(asked, "per_pod", {"from": now, "to": to, "resource": resource, "task": task["name"]}, patch)

    found = largest(0, len(amounts) - 1, lambda number: _tried(asked, made(number)))
    if found is not None:
        yield found[1]


def _gpus(task: Obj) -> list[int]:
    requests = objects.pod_requests((task.get("template") or {}).get("spec") or {})
    return [units for name, units in requests.items() if objects.is_gpu(name)]


def _queue(asked: Asked) -> Iterator[Way]:
    resource = asked.verdict.resource if asked.verdict else ""
    shares = asked.view.baseline.shares

    def room(name: str) -> tuple[int, float, str]:
        share = shares.get(name)
        left = share.limit.get(resource, 1 << 62) - share.allocated.get(resource, 0) if share else 0
        return (-left, share.share if share else 0.0, name)

    mine = str(asked.job["spec"].get("queue") or "")
    for name in sorted((name for name in asked.queues if name != mine), key=room)[:QUEUES]:
        way = _copy(asked, "queue", {"from": mine, "queue": name}, {"spec": {"queue": name}})
        if _tried(asked, way):
            yield way


def _placement(asked: Asked) -> Iterator[Way]:
    for place, task in enumerate(tasks_of(asked.job)):
        pod = (task.get("template") or {}).get("spec") or {}
        for values, new in [*_looser(pod), *_tolerant(asked, pod)]:
            tasks = tasks_of(asked.job)
            template = {**task["template"], "spec": new}
            patch = {"spec": {"tasks": [*tasks[:place], {**task, "template": template}, *tasks[place + 1 :]]}}
            way = _copy(asked, "placement", {**values, "task": task["name"]}, patch)
            if _tried(asked, way):
                yield way
    yield from _topology(asked)


def _looser(pod: Obj) -> Iterator[tuple[dict[str, Any], Obj]]:
    selector = pod.get("nodeSelector") or {}
    for key, value in selector.items():
        rest = {name: each for name, each in selector.items() if name != key}
        yield {"what": "selector", "key": key, "value": str(value)}, {**pod, "nodeSelector": rest}
    affinity = (pod.get("affinity") or {}).get("nodeAffinity") or {}
    if "requiredDuringSchedulingIgnoredDuringExecution" in affinity:
        kept = {name: each for name, each in affinity.items() if not name.startswith("required")}
        yield {"what": "affinity"}, {**pod, "affinity": {**pod["affinity"], "nodeAffinity": kept}}
    if len(selector) > 1:
        yield {"what": "selectors"}, {**pod, "nodeSelector": {}}


def _tolerant(asked: Asked, pod: Obj) -> Iterator[tuple[dict[str, Any], Obj]]:
    nodes = asked.view.cache.nodes
    taints = {
        (str(taint.get("key")), str(taint.get("value") or ""), str(taint.get("effect")))
        for row in range(nodes.rows)
        for taint in (nodes.taints[row] if nodes.live[row] else ())
        if taint.get("effect") in ("NoSchedule", "NoExecute") and objects.untolerated(pod.get("tolerations"), [taint])
    }
    for key, value, effect in sorted(taints):
        added = {"key": key, "operator": "Equal", "value": value, "effect": effect}
        said = {"what": "taint", "key": key, "value": f"{value}:{effect}" if value else effect}
        yield said, {**pod, "tolerations": [*(pod.get("tolerations") or ()), added]}


def _topology(asked: Asked) -> Iterator[Way]:
    topology = asked.job["spec"].get("networkTopology") or {}
    if not topology or topology.get("mode") == "soft":
        return
    limit = topology.get("highestTierAllowed")
    tree = asked.view.cache.hyper_nodes.tree()
    for tier in sorted({domain.tier for domain in tree.domains if limit is not None and domain.tier > int(limit)}):
        patch = {"spec": {"networkTopology": {"highestTierAllowed": tier}}}
        way = _copy(asked, "placement", {"what": "tier", "from": int(limit or 0), "to": tier}, patch)
        if _tried(asked, way):
            yield way
    way = _copy(asked, "placement", {"what": "soft"}, {"spec": {"networkTopology": {"mode": "soft", "highestTierAllowed": None}}})
    if _tried(asked, way):
        yield way


# -- nothing to change -------------------------------------------------------------------------------------------------


def _wait(asked: Asked) -> Iterator[Way]:
    verdict, dims = asked.verdict, asked.view.cache.dims
    resource = verdict.resource if verdict and verdict.resource in dims.index else ""
    dimension = dims.index[resource] if resource else 0
    lacking = _lacking(verdict) if verdict and resource else 0

    def suits(job: JobInfo) -> tuple[bool, int, float, str]:
        """The smallest that gives enough, then of those that do not the largest."""
        held = int(job.allocated[dimension])
        return (held < lacking, held if held >= lacking else -held, job.creation, job.uid)

    for job in sorted(_holders(asked, dimension), key=suits)[:JOBS]:
        values = {"job": job.uid, "queue": job.queue, "resource": resource, "amount": int(job.allocated[dimension])}
        way = Way("wait", values, None, True, Change(asked.uid, changes.ended(asked.view, [job.uid])))
        if _tried(asked, way):
            yield way


def _lacking(verdict: Verdict) -> int:
    """What of the resource is missing for all the pods that a start needs; a queue's limit is asked for one."""
    pods = 1 if verdict.stage is Stage.QUEUE_LIMIT else max(verdict.needed - verdict.placeable, 1)
    return verdict.short + (pods - 1) * verdict.asked


def _holders(asked: Asked, dimension: int) -> list[JobInfo]:
    """Running jobs that have something of a resource; those of the same queue alone where its limit is what holds."""
    queue = asked.group.queue if asked.verdict and asked.verdict.stage is Stage.QUEUE_LIMIT else ""
    return [
        job
        for job in asked.view.cache.jobs.values()
        if job.uid != asked.uid
        and job.obj
        and job.count(TaskStatus.RUNNING)
        and job.allocated[dimension] > 0
        and queue in ("", job.queue)
    ]


def _tried(asked: Asked, way: Way) -> Way | None:
    played = asked.try_(way.change)
    if played is None:
        return None
    way.played = played
    return way


KINDS: dict[str, Callable[[Asked], Iterator[Way]]] = {
    "minimum": _minimum,
    "per_pod": _per_pod,
    "replicas": _replicas,
    "queue": _queue,
    "wait": _wait,
    "priority": _priority,
    "placement": _placement,
}
