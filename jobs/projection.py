"""Jobs, PodGroups and pods as rows; and what rows say of each other: tasks' counts, phases, the steps of a job's life.

A Volcano Job is a Job row; a gang of bare pods is a PodGroup row alone. Figures that come from other objects (the gang's
phase, counts of pods, the model of GPUs) are renewed in the transaction that moved one of them.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterator
from math import ceil
from typing import Any

from django.db.models import Count

from cluster import objects
from cluster.kinds import JOB, POD, POD_GROUP
from cluster.models import Node
from cluster.pod_state import PodState
from cluster.port import Obj
from cluster.projection import Batch, Change, Projection, apply, common, differs, indices, instant, notify, write_columns, writing
from cluster.runtime import now
from jobs import elsewhere, held, history, holds, keys, troubles
from jobs.choices import GroupPhase, JobPhase, PodPhase
from jobs.disclosure import as_read
from jobs.models import Job, JobLabel, Pod, PodGroup, Task
from queues.projection import count_groups
from scheduler.model.devices import uses_of

OTHERS = ("group_phase", "verdict", "verdict_stage", "gpu_model", "trouble", "defaulted")
"""Columns of a job's row that do not come from the Job object alone."""


def job(obj: Obj, deleted: bool = False) -> Job:
    """A Volcano Job as its row."""
    shared = common(obj, deleted)
    spec, status = obj["spec"], obj.get("status") or {}
    state = status.get("state") or {}
    phase = JobPhase(state.get("phase") or JobPhase.PENDING)
    since = instant(state.get("lastTransitionTime")) or shared["created_at"]
    asked = _asked(spec)
    ended = phase.is_final or phase == JobPhase.ABORTED
    counters = ("pending", "running", "succeeded", "failed", "unknown", "terminating")
    return Job(
        **shared,
        namespace=objects.namespace(obj),
        queue=spec.get("queue") or "default",
        owner=objects.annotations(obj).get(keys.OWNER, ""),
        phase=phase,
        phase_since=since,
        started_at=history.first_start(obj),
        finished_at=since if ended else None,
        priority_class=spec.get("priorityClassName") or "",
        min_available=int(spec.get("minAvailable") or 0),
        replicas=sum(int(task.get("replicas") or 0) for task in spec["tasks"]),
        **{name: max(0, int(status.get(name) or 0)) for name in counters},
        version=int(status.get("version") or 0),
        retry_count=int(status.get("retryCount") or 0),
        max_retry=int(spec.get("maxRetry") or 3),
        cpu_milli=asked["cpu"],
        memory_bytes=asked["memory"],
        gpus=ceil(objects.gpu_count(asked)),
        gpu_model=_model(spec),
        labels=dict(objects.labels(obj)),
        manifest=as_read(obj),
        made_by=(objects.owner(obj) or {}).get("uid", ""),
        cloned_from=objects.annotations(obj).get(keys.CLONED_FROM, "")[:36],
    )


def _asked(spec: Obj) -> Counter[str]:
    """What all replicas ask together, in smallest units."""
    total: Counter[str] = Counter()
    for task in spec["tasks"]:
        for resource, units in objects.pod_requests(task["template"]["spec"]).items():
            total[resource] += units * int(task.get("replicas") or 0)
    return total


def _model(spec: Obj) -> str:
    """The GPU model that the manifest selects, where it names one."""
    for task in spec["tasks"]:
        if model := (task["template"]["spec"].get("nodeSelector") or {}).get(objects.GPU_PRODUCT_LABEL):
            return str(model)[:80]
    return ""


def tasks(row: Job) -> list[Task]:
    """The roles of a job, without counts."""
    return [
        Task(
            job=row,
            name=task["name"],
            position=position,
            replicas=int(task.get("replicas") or 0),
            min_available=int(task["minAvailable"] if task.get("minAvailable") is not None else task.get("replicas") or 0),
            requests=objects.pod_requests(task["template"]["spec"]),
        )
        for position, task in enumerate(row.manifest["spec"]["tasks"])
    ]


def pod_group(obj: Obj, deleted: bool = False) -> PodGroup:
    """A PodGroup as its row; `job_uid` is empty when no Volcano Job owns it."""
    spec, status = obj.get("spec") or {}, obj.get("status") or {}
    return PodGroup(
        **common(obj, deleted),
        namespace=objects.namespace(obj),
        job_uid=_job_uid(obj),
        queue=spec.get("queue") or "default",
        phase=GroupPhase(status.get("phase") or GroupPhase.PENDING),
        min_member=max(0, int(spec.get("minMember") or 0)),
        min_resources=objects.resource_units(spec.get("minResources")),
        conditions=status.get("conditions") or [],
    )


def pod(obj: Obj, deleted: bool = False) -> Pod:
    """A pod as its row: where it is, which GPUs it holds, and how it went."""
    notes, spec, status = objects.annotations(obj), obj.get("spec") or {}, obj.get("status") or {}
    container = _telling_container(status)
    ended = (container.get("state") or {}).get("terminated") or {}
    running = (container.get("state") or {}).get("running") or {}
    scheduled = objects.condition(obj, "PodScheduled") or {}
    placed = scheduled.get("status") == "True"
    waiting = _trouble(status) or (container.get("state") or {}).get("waiting") or {}
    state = PodState.of(obj)
    telling = (status, _when("True", objects.condition(obj, "DisruptionTarget")), ended, waiting, _when("False", scheduled))
    return Pod(
        **common(obj, deleted),
        namespace=objects.namespace(obj),
        job_uid=_job_uid(obj),
        group=notes.get(keys.GROUP_NAME, ""),
        queue=notes.get(keys.QUEUE_NAME) or notes.get(keys.BARE_QUEUE_NAME) or "",
        task=notes.get(keys.TASK_SPEC, ""),
        index=int(notes.get(keys.TASK_INDEX) or 0),
        job_version=int(notes.get(keys.JOB_VERSION) or 0),
        phase=_pod_phase(obj),
        node=spec.get("nodeName") or "",
        gpus=indices(notes.get(objects.GPU_INDICES) or notes.get(objects.GPU_SHARE_INDEX)),
        cards=_cards(obj),
        nominated="" if spec.get("nodeName") else status.get("nominatedNodeName") or "",
        requests=objects.pod_requests(spec),
        scheduled_at=instant(scheduled.get("lastTransitionTime")) if placed else None,
        started_at=instant(ended.get("startedAt") or running.get("startedAt") or status.get("startTime")),
        finished_at=instant(ended.get("finishedAt")),
        exit_code=ended.get("exitCode"),
        reason=next((str(said["reason"]) for said in telling if said.get("reason")), "")[:128],
        message=next((str(said["message"]) for said in telling if said.get("message")), ""),
        restarts=state.restarts,
        restarted_at=instant(state.restarted_at),
        containers=state.containers,
        ready=state.ready,
        word=state.word[:80],
    )


def _cards(obj: Obj) -> list[list[Any]]:
    """Parts of cards that a pod was given; whole cards are in `gpus`. Amounts that are no numbers are of no pod that runs."""
    try:
        return [[use.card, use.memory, use.cores] for use in uses_of(obj) if use.memory or use.cores]
    except ValueError:
        return []


def _when(status: str, condition: Obj | None) -> Obj:
    """A condition that has this status, else nothing."""
    return condition if condition and condition.get("status") == status else {}


def _trouble(status: Obj) -> Obj:
    return troubles.in_trouble([*(status.get("initContainerStatuses") or ()), *(status.get("containerStatuses") or ())])


def _telling_container(status: Obj) -> Obj:
    """The container that says most of how a pod went: the first that failed, else the first."""
    containers: list[Obj] = status.get("containerStatuses") or []
    failed = (c for c in containers if ((c.get("state") or {}).get("terminated") or {}).get("exitCode"))
    return next(failed, containers[0] if containers else {})


def _pod_phase(obj: Obj) -> PodPhase:
    phase = (obj.get("status") or {}).get("phase") or PodPhase.PENDING
    if objects.is_deleting(obj) and phase not in (PodPhase.SUCCEEDED, PodPhase.FAILED):
        return PodPhase.TERMINATING
    return PodPhase(phase) if phase in PodPhase else PodPhase.UNKNOWN


def _job_uid(obj: Obj) -> str:
    job = keys.owning_job(obj)
    return job["uid"] if job else ""


MAY_WAIT = (JobPhase.PENDING, JobPhase.RUNNING, JobPhase.RESTARTING)
"""Phases in which the scheduler may be holding pods of a job."""


def project_jobs(batch: Batch) -> None:
    """Jobs and their tasks."""
    with writing(Job):
        changes = apply(Job, job, batch, keep=OTHERS)
        Task.objects.bulk_create(
            [task for change in changes if _has_new_tasks(change) for task in tasks(change.after)],
            batch_size=500,
            update_conflicts=True,
            unique_fields=["job", "name"],
            update_fields=["position", "replicas", "min_available", "requests"],
        )
        _label(changes)
        _keep_first_start(changes)
        new = {change.after.uid for change in changes if change.before is None}
        _count_pods(new)
        troubles.renew(new)
        renew({change.after.uid for change in changes})
        notify("jobs", (change.after.uid for change in changes))


def _has_new_tasks(change: Change[Job]) -> bool:
    """Whether a job is new, or its roles are not as they were."""
    if change.after.deleted_at is not None:
        return False
    return change.before is None or change.before.manifest["spec"]["tasks"] != change.after.manifest["spec"]["tasks"]


def _label(changes: Collection[Change[Job]]) -> None:
    """The labels of jobs that are new or whose labels changed, as rows of their own."""
    moved = [change for change in changes if (change.before.labels if change.before else {}) != change.after.labels]
    JobLabel.objects.filter(job__in=[change.after.uid for change in moved if change.before]).delete()
    JobLabel.objects.bulk_create(
        [JobLabel(job=change.after, key=key, value=value) for change in moved for key, value in change.after.labels.items()],
        batch_size=500,
        ignore_conflicts=True,
    )


def _keep_first_start(changes: Collection[Change[Job]]) -> None:
    """A restarted job's conditions name its last start only; its row keeps the first."""
    kept = []
    for change in changes:
        first = change.before.started_at if change.before else None
        if first and (change.after.started_at is None or change.after.started_at > first):
            change.after.started_at = first
            kept.append(change.after)
    Job.objects.bulk_update(kept, ["started_at"], batch_size=500)


def project_pod_groups(batch: Batch) -> None:
    """PodGroups, and the counts of them that queues show."""
    with writing(Job):
        changes = apply(PodGroup, pod_group, batch)
        moved = [change for change in changes if differs(change, ("phase", "queue", "deleted_at"))]
        told = [change for change in changes if differs(change, ("phase", "queue", "deleted_at", "conditions"))]
        notify("jobs", renew({change.after.job_uid for change in told} - {""}))
        _count_groups(moved)


def _count_groups(moved: Collection[Change[PodGroup]]) -> None:
    queues = {change.after.queue for change in moved} | {change.before.queue for change in moved if change.before}
    counts: dict[str, dict[str, int]] = {queue: {} for queue in queues}
    rows = PodGroup.objects.filter(queue__in=queues, deleted_at=None).order_by()
    for row in rows.values("queue", "phase").annotate(count=Count("pk")):
        counts[row["queue"]][row["phase"]] = row["count"]
    if counts:
        count_groups(counts)


def project_pods(batch: Batch) -> None:
    """Pods, and the counts of them that tasks show."""
    with writing(Job):
        changes = apply(Pod, pod, batch)
        job_uids = {change.after.job_uid for change in changes} - {""}
        _count_pods(job_uids)
        notify("jobs", _name_models(job_uids) | troubles.renew(job_uids))
        for job_uid in job_uids:
            notify(f"job:{job_uid}", (change.after.uid for change in changes if change.after.job_uid == job_uid))
        notify("topology", _touched(changes))


def _touched(changes: Collection[Change[Pod]]) -> Iterator[str]:
    """Nodes on which pods with GPUs, or with parts of some, came, went, or are to come."""
    for change in changes:
        pod = change.after
        if pod.node and (pod.gpus or pod.cards):
            yield pod.node
        if pod.nominated:
            yield pod.nominated
        if change.before is not None and change.before.nominated not in ("", pod.nominated):
            yield change.before.nominated


def _count_pods(job_uids: Collection[str]) -> None:
    counts: defaultdict[tuple[str, str], dict[str, int]] = defaultdict(dict)
    alive = Pod.objects.filter(job_uid__in=job_uids, deleted_at=None).order_by()
    for row in alive.values("job_uid", "task", "phase").annotate(count=Count("pk")):
        counts[row["job_uid"], row["task"]][row["phase"]] = row["count"]
    changed = []
    for task in Task.objects.filter(job__in=job_uids):
        new = counts.get((task.job_id, task.name), {})
        if task.counts != new:
            task.counts = new
            changed.append(task)
    write_columns(changed, [Task._meta.get_field("counts")])


def _name_models(job_uids: Collection[str]) -> set[str]:
    """Name the GPU model of jobs whose manifest does not, where all nodes that they run on have the same; the uids of those."""
    unnamed = list(Job.objects.filter(pk__in=job_uids, gpus__gt=0, gpu_model="").only("uid", "gpu_model"))
    if not unnamed:
        return set()
    placed = Pod.objects.filter(job_uid__in=[row.uid for row in unnamed]).exclude(node="")
    nodes = set(placed.order_by().values_list("job_uid", "node").distinct())
    known = Node.objects.filter(name__in={node for _, node in nodes}).exclude(gpu_model="")
    models = dict(known.values_list("name", "gpu_model"))
    found: dict[str, set[str]] = {}
    for uid, node in nodes:
        if node in models:  # a pod without GPUs may be on a node without
            found.setdefault(uid, set()).add(models[node])
    named = [row for row in unnamed if len(found.get(row.uid, ())) == 1]
    for row in named:
        (row.gpu_model,) = found[row.uid]
    Job.objects.bulk_update(named, ["gpu_model"], batch_size=500)
    return {row.uid for row in named}


def renew(job_uids: Collection[str]) -> set[str]:
    """Bring the gang's phase of jobs up to date, record new steps of their lives, drop verdicts that are over.

    Call it inside `writing(Job)`. The uids of jobs whose row changed.
    """
    groups: dict[str, PodGroup] = {}
    for group in PodGroup.objects.filter(job_uid__in=job_uids).order_by("deleted_at", "resource_version"):
        if group.deleted_at is None:
            groups[group.job_uid] = group
    changed, moved, rows = [], [], list(Job.objects.filter(pk__in=job_uids))
    for row in rows:
        found = groups.get(row.uid)
        new: dict[str, Any] = {"group_phase": found.phase if found else ""}
        waits = row.deleted_at is None and row.phase in MAY_WAIT
        if waits and (why := held.verdict(row.manifest)):
            new |= {"verdict": why, "verdict_stage": why["stage"]}
        elif waits and not elsewhere.is_ours(row.manifest):
            why = elsewhere.verdict(found)
            new |= {"verdict": why, "verdict_stage": why["stage"] if why else ""}
        elif row.verdict is not None and (not waits or held.is_held(row.verdict)):
            new |= {"verdict": None, "verdict_stage": ""}
        if any(getattr(row, name) != value for name, value in new.items()):
            if "verdict" in new and row.verdict != new["verdict"]:
                moved.append(row)
            for name, value in new.items():
                setattr(row, name, value)
            changed.append(row)
    Job.objects.bulk_update(changed, ["group_phase", "verdict", "verdict_stage"], batch_size=500)
    holds.record(moved, now())
    history.record(rows)
    return {row.uid for row in changed}


PROJECTIONS = {
    JOB: Projection(Job, project_jobs),
    POD_GROUP: Projection(PodGroup, project_pod_groups),
    POD: Projection(Pod, project_pods),
}
