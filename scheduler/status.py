"""What a cycle writes back: PodGroup statuses, pods' PodScheduled conditions, queues' allocated, and events.

Everything is compared with what the cluster has and with what was said before, and only a difference is written: an idle
gang costs nothing, however long it waits.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from cluster import objects
from cluster.events import Level, event_about
from cluster.kinds import POD, POD_GROUP, QUEUE, Kind
from cluster.port import Obj
from cluster.rests import Rests
from cluster.said import said, sayable
from scheduler.framework.explain import QUIET, Verdict
from scheduler.framework.session import Session
from scheduler.model.jobs import JobInfo
from scheduler.model.roster import Roster
from scheduler.model.tasks import TaskInfo, TaskStatus
from scheduler.topology.places import ANNOTATION as PLACE
from scheduler.wording import describe

COMPONENT = "basalt-scheduler"
UNSCHEDULABLE, SCHEDULED = "Unschedulable", "Scheduled"
_READY = sayable("tasks in gang are ready to be scheduled")
_WAITING = (TaskStatus.PENDING, TaskStatus.PIPELINED, TaskStatus.ALLOCATED)
_SCHEDULED = (TaskStatus.RUNNING, TaskStatus.BOUND, TaskStatus.SUCCEEDED, TaskStatus.FAILED)


@dataclass(frozen=True, slots=True)
class StatusWrite:
    """Merge `status` into the status of one object; set its `annotations`, or remove those that are None."""

    kind: Kind
    namespace: str
    name: str
    uid: str
    status: Obj
    annotations: dict[str, str | None] = field(default_factory=dict)


@dataclass(slots=True)
class Writes:
    """Everything that one cycle has to say to the cluster beside binds and evictions."""

    statuses: list[StatusWrite] = field(default_factory=list)
    events: list[Obj] = field(default_factory=list)
    verdicts: dict[str, Verdict | None] = field(default_factory=dict)


@dataclass(slots=True)
class _Told:
    """What was last said of a job; `uid` is its PodGroup's, since another one may come under the same name."""

    uid: str = ""
    version: int = -1
    verdict: Verdict | None = None
    at: float = 0.0
    pods: dict[str, tuple[str, str]] = field(default_factory=dict)


class StatusKeeper:
    """Remembers what was said, so that only changes are said again; mere counts `rest` seconds later, or with what matters."""

    def __init__(self, rest: float = 0.0) -> None:
        self._groups_rest, self._queues_rest = Rests(rest), Rests(rest)
        self._told: dict[str, _Told] = {}
        self._roster: Roster | None = None
        self._open: dict[str, None] = {}
        self._queues: dict[str, dict[str, int]] = {}
        self._events = 0

    def close(self, ssn: Session) -> Writes:
        """What has to be written after a session's actions, its reservations still in place."""
        writes = Writes()
        for uid in self._due(ssn):
            job = ssn.jobs.get(uid)
            if job is not None:
                self._job(ssn, job, writes)
            elif uid in self._told:
                self._stray(ssn, uid, writes)
        for uid, verdict in ssn.verdicts.items():
            if uid not in ssn.jobs and uid not in self._told:
                self._told[uid] = _Told(verdict=verdict)
                self._open[uid] = None
                writes.verdicts[uid] = verdict
        self._evicted(ssn, writes)
        self._queues_allocated(ssn, writes)
        ssn.roster.heard()
        return writes

    def _due(self, ssn: Session) -> list[str]:
        """The jobs of which something may have to be said: those that changed, and those that somebody waits for."""
        if self._roster is not ssn.roster:
            self._roster = ssn.roster
            return [*ssn.jobs, *(uid for uid in self._told if uid not in ssn.jobs)]
        changed = [job.uid for job in ssn.roster.unsaid()]
        return list(dict.fromkeys([*changed, *self._open, *ssn.verdicts, *ssn.admitted, *self._groups_rest.due(ssn.now)]))

    def due_at(self) -> float:
        """When counts that were held back are to be written (the cluster's time); infinity when there are none."""
        return min(self._groups_rest.earliest(), self._queues_rest.earliest())

    def _evicted(self, ssn: Session, writes: Writes) -> None:
        """An event on every pod that has to give way, and on the pods that get its place the node where they are to have it.

        A gang may also be given places that others leave already: these are written as well, or a new scheduler would not know.
        """
        kept = (task for statement in ssn.statements.values() for task in statement.pipelined())
        takers = {task.job.uid: task.job for task in kept if task.nominated and task.job is not None}
        for task, cause in ssn.evictions:
            self._event(ssn, task.pod, POD, "Evict", "Warning", cause.reason, writes)
            if cause.preemptor is not None and cause.preemptor.job is not None:
                takers[cause.preemptor.job.uid] = cause.preemptor.job
        for job in takers.values():
            for task in job.by_status[TaskStatus.PIPELINED].values():
                if task.nominated and (task.pod.get("status") or {}).get("nominatedNodeName") != task.nominated:
                    status = {"nominatedNodeName": task.nominated}
                    writes.statuses.append(StatusWrite(POD, task.namespace, task.name, task.uid, status))

    def forget(self, uid: str) -> None:
        """A write about a job failed: say it again."""
        told = self._told.get(uid)
        if told is not None:
            told.version = -1
            self._groups_rest.written(uid)
            self._open[uid] = None

    # -- jobs ----------------------------------------------------------------------------------------------------------

    def _stray(self, ssn: Session, uid: str, writes: Writes) -> None:
        """A job that takes no part in sessions (any more): gone, or its queue is unknown."""
        told, verdict = self._told[uid], ssn.verdicts.get(uid)
        if verdict != told.verdict:
            writes.verdicts[uid] = told.verdict = verdict
        if verdict is None:
            del self._told[uid]
            self._open.pop(uid, None)
            self._groups_rest.written(uid)

    def _job(self, ssn: Session, job: JobInfo, writes: Writes) -> None:
        told = self._told.setdefault(job.uid, _Told())
        if told.uid != objects.uid(job.obj):
            told = self._told[job.uid] = _Told(objects.uid(job.obj), verdict=told.verdict)
        verdict = ssn.verdicts.get(job.uid)
        changed = _kind_of(verdict) != _kind_of(told.verdict)
        if not changed and ssn.now < told.at + QUIET:
            verdict = told.verdict
        marks = _place_marks(ssn, job)
        if told.version == job.version and verdict == told.verdict and job.uid not in ssn.admitted and not marks:
            return
        if verdict != told.verdict:
            writes.verdicts[job.uid], told.verdict, told.at = verdict, verdict, ssn.now
        if verdict is None:
            self._open.pop(job.uid, None)
        else:
            self._open[job.uid] = None
        told.version = job.version
        before: Any = job.sent if job.sent is not None else job.obj.get("status") or {}
        status = _group_status(ssn, job, verdict, before)
        if job.phase != status["phase"]:
            job.phase = status["phase"]
            job.touch()
        moved = job.phase != before.get("phase")
        new, known = _said(status), _said({**before, "conditions": before.get("conditions") or []})
        can_wait = not marks and not moved and _is_told_by_phase(new["conditions"], known["conditions"])
        if new == known and not marks and not moved:
            self._groups_rest.written(job.uid)
        elif can_wait and self._groups_rest.left(job.uid, ssn.now):
            told.version = -1
        else:
            job.sent = status
            self._groups_rest.written(job.uid)
            writes.statuses.append(StatusWrite(POD_GROUP, job.namespace, job.name, objects.uid(job.obj), status, marks))
        if changed or job.phase != (before.get("phase") or "Pending"):
            self._job_event(ssn, job, verdict, before.get("phase") or "", writes)
        self._pods(ssn, job, verdict, told, writes)

    def _job_event(self, ssn: Session, job: JobInfo, verdict: Verdict | None, was: str, writes: Writes) -> None:
        if verdict is None:
            count = job.ready_count()
            if job.phase == "Running" and was != "Running" and count:
                message = said("1 task has a node") if count == 1 else said("%(count)s tasks have a node", count=count)
                self._event(ssn, job.obj, POD_GROUP, SCHEDULED, "Normal", message, writes)
            return
        if job.phase not in ("Pending", "Inqueue", "Unknown"):
            return
        if len(job.tasks) == 1:
            task = next(iter(job.tasks.values()))
            self._event(ssn, task.pod, POD, "FailedScheduling", "Warning", describe(verdict), writes)
        else:
            self._event(ssn, job.obj, POD_GROUP, UNSCHEDULABLE, "Warning", describe(verdict), writes)

    def _pods(self, ssn: Session, job: JobInfo, verdict: Verdict | None, told: _Told, writes: Writes) -> None:
        """PodScheduled=False on pods that still wait, once a reason."""
        waiting = [task for status in _WAITING for task in job.by_status[status].values()]
        if not waiting:
            told.pods.clear()
            return
        if verdict is None:
            verdict = ssn.leftovers.get(job.uid)
            if verdict is None and job.is_fresh(ssn.now):
                return
        code = verdict.code.value if verdict is not None else ""
        told.pods = {task.uid: told.pods[task.uid] for task in waiting if task.uid in told.pods}
        for task in waiting:
            if task.gated:
                continue
            room = task.status is TaskStatus.ALLOCATED or task.uid in ssn.schedulable
            now = ("Schedulable" if room else UNSCHEDULABLE, code)
            if told.pods.get(task.uid) != now:
                told.pods[task.uid] = now
                self._pod(ssn, task, now[0], verdict, writes)

    def _pod(self, ssn: Session, task: TaskInfo, reason: str, verdict: Verdict | None, writes: Writes) -> None:
        message = str(describe(verdict)) if verdict is not None else "not tried in this cycle"
        if reason == "Schedulable":
            message = "there is room, but not for the whole gang: " + message
        status: Obj = task.pod.get("status") or {}
        old: Obj = next((c for c in status.get("conditions") or () if c.get("type") == "PodScheduled"), {})
        if (old.get("status"), old.get("reason"), old.get("message")) == ("False", reason, message):
            return
        stamp = ssn.stamp
        new = {"type": "PodScheduled", "status": "False", "reason": reason, "message": message, "lastTransitionTime": stamp}
        conditions = objects.with_condition(status.get("conditions"), new)
        writes.statuses.append(StatusWrite(POD, task.namespace, task.name, task.uid, {"conditions": conditions}))

    def _event(self, ssn: Session, of: Any, kind: Kind, reason: str, level: Level, message: str, writes: Writes) -> None:
        self._events += 1
        name = f"{objects.name(of)}.{int(ssn.now * 1e6):x}{self._events:x}"
        about = {"apiVersion": kind.api_version, "kind": kind.kind, **of}
        writes.events.append(event_about(about, level, reason, message, stamp=ssn.stamp, component=COMPONENT, name=name))

    # -- queues --------------------------------------------------------------------------------------------------------

    def _queues_allocated(self, ssn: Session, writes: Writes) -> None:
        held = _held(ssn)
        for name, queue in ssn.queues.items():
            allocated = {resource: amount for resource, amount in held[name].items() if amount}
            status: Obj = queue.obj.get("status") or {}
            known = self._queues.get(name)
            if known is None:
                known = {r: n for r, n in objects.resource_units(status.get("allocated")).items() if n}
            if known == allocated:
                self._queues_rest.written(name)
            elif self._queues_rest.left(name, ssn.now):
                continue
            else:
                self._queues_rest.written(name)
                # A merge keeps what it does not name: a resource that is not held any more must be written as zero.
                gone = dict.fromkeys(known.keys() - allocated.keys(), 0)
                texts = {r: objects.format_units(r, n) for r, n in {**gone, **allocated}.items()}
                writes.statuses.append(StatusWrite(QUEUE, "", name, objects.uid(queue.obj), {"allocated": texts}))
            self._queues[name] = allocated
        for name in self._queues.keys() - ssn.queues.keys():
            del self._queues[name]
            self._queues_rest.written(name)

    def forget_queue(self, name: str) -> None:
        """A write about a queue failed: compare with the cluster again."""
        self._queues.pop(name, None)
        self._queues_rest.written(name)


def _held(ssn: Session) -> dict[str, Counter[str]]:
    """What each queue's jobs hold, an inner queue's with all that is below it."""
    inner = {queue.parent for queue in ssn.queues.values()}
    held: dict[str, Counter[str]] = {name: Counter() for name in ssn.queues}
    for name, queue in ssn.queues.items():
        share, own = ssn.queue_shares.get(name), dict[str, int]()
        if share is not None and name not in inner:
            own = share.allocated
        elif queue.jobs:
            own = ssn.dims.units(ssn.roster.holdings(name).allocated)
        if name in ssn.beyond_request:
            own = {**own, **{resource: own.get(resource, 0) + more for resource, more in ssn.beyond_request[name].items()}}
        seen: set[str] = set()
        while name in held and name not in seen:
            held[name].update(own)
            seen.add(name)
            name = ssn.queues[name].parent
    return held


def _kind_of(verdict: Verdict | None) -> tuple[str, ...]:
    """What of a verdict makes it another one to a reader: not its numbers."""
    return () if verdict is None else (verdict.stage, verdict.code, verdict.resource, verdict.queue)


def _said(status: Obj) -> Obj:
    """A status without what says only when it was written."""
    out = {key: status.get(key) or 0 for key in ("phase", "running", "succeeded", "failed")}
    out["conditions"] = {
        c.get("type"): (c.get("status"), c.get("reason"), c.get("message") or "") for c in status.get("conditions") or ()
    }
    return out


def _is_told_by_phase(now: Obj, known: Obj) -> bool:
    """Whether conditions are as known, or news only that the gang is ready: its phase says so once its pods are bound."""
    news = [(kind, told[0]) for kind, told in now.items() if known.get(kind) != told]
    return all(each in ((SCHEDULED, "True"), (UNSCHEDULABLE, "False")) for each in news) and known.keys() <= now.keys()


def _group_status(ssn: Session, job: JobInfo, verdict: Verdict | None, before: Obj) -> Obj:
    ready = ssn.job_ready(job)
    unready = _is_unready(ssn, job, verdict)
    conditions = list(before.get("conditions") or ())
    if unready and not _only_leaving(job):
        condition = {"type": UNSCHEDULABLE, "status": "True", "reason": "NotEnoughResources"}
        conditions = _with(ssn, conditions, {**condition, "message": _gang_message(job, verdict)})
    elif job.tasks and ready:
        if any(c.get("type") == UNSCHEDULABLE and c.get("status") == "True" for c in conditions):
            conditions = _with(ssn, conditions, {"type": UNSCHEDULABLE, "status": "False", "reason": _READY})
        conditions = _with(ssn, conditions, {"type": SCHEDULED, "status": "True", "reason": _READY})
    return {
        "phase": phase(job, unschedulable=unready and not _only_leaving(job)),
        "running": job.count(TaskStatus.RUNNING),
        "succeeded": job.count(TaskStatus.SUCCEEDED),
        "failed": job.count(TaskStatus.FAILED),
        "conditions": conditions,
    }


def standing_of(ssn: Session, job: JobInfo) -> str:
    """The phase that a session leaves a job in."""
    unready = _is_unready(ssn, job, ssn.verdicts.get(job.uid))
    return phase(job, unschedulable=unready and not _only_leaving(job))


def _is_unready(ssn: Session, job: JobInfo, verdict: Verdict | None) -> bool:
    return bool(job.tasks) and not ssn.job_ready(job) and not (verdict is None and job.is_fresh(ssn.now))


def _only_leaving(job: JobInfo) -> bool:
    """The gang is unready only because its scheduled pods are being ended: no reason to call it unschedulable."""
    return not job.count(TaskStatus.PENDING) and not job.waiting_count() and _scheduled(job) >= job.min_available


def phase(job: JobInfo, *, unschedulable: bool) -> str:
    """A PodGroup's phase at the end of a session; `unschedulable`: this session found the gang unready."""
    if job.count(TaskStatus.RUNNING) and unschedulable:
        return "Unknown"
    scheduled = _scheduled(job)
    if scheduled >= job.min_available:
        ended = job.count(TaskStatus.SUCCEEDED) + job.count(TaskStatus.FAILED)
        return "Completed" if scheduled == ended else "Running"
    return "Inqueue" if job.phase == "Inqueue" else "Pending"


def _scheduled(job: JobInfo) -> int:
    """Tasks that have, or had, a node in the cluster's eyes; those being ended count while they hold it."""
    leaving = [task for task in job.by_status[TaskStatus.RELEASING].values() if task.pod["spec"].get("nodeName")]
    return sum([len(job.by_status[status]) for status in _SCHEDULED], len(leaving))


def _place_marks(ssn: Session, job: JobInfo) -> dict[str, str | None]:
    """How the PodGroup's note of where a gang with a topology is must change; empty when it is right."""
    if job.parts is None or job.sent is not None:  # what is on its way may bring the note
        return {}
    place = ssn.places.of_job.get(job.uid)
    name = place.name if place is not None else None
    return {} if job.annotations.get(PLACE) == name else {PLACE: name}


def _with(ssn: Session, conditions: list[Obj], new: Obj) -> list[Obj]:
    """Replace the condition of a type unless it says the same already; its place in the list stays."""
    for place, old in enumerate(conditions):
        if old.get("type") == new["type"]:
            if all(old.get(key) == value for key, value in new.items()):
                return conditions
            since = old.get("lastTransitionTime") if old.get("status") == new["status"] else None
            return [*conditions[:place], _stamped(ssn, new, since), *conditions[place + 1 :]]
    return [*conditions, _stamped(ssn, new, None)]


def _stamped(ssn: Session, condition: Obj, since: str | None) -> Obj:
    return {**condition, "transitionID": ssn.uid, "lastTransitionTime": since or ssn.stamp}


def _gang_message(job: JobInfo, verdict: Verdict | None) -> str:
    placeable = verdict.placeable if verdict is not None else job.ready_count()
    missing = max(job.min_available - placeable, 0)
    return f"{missing}/{len(job.tasks)} tasks in gang unschedulable: {describe(verdict) if verdict else 'not tried'}"
