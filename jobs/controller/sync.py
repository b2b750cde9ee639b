"""Syncing: the PodGroup, and once the gang is admitted, the pods that the job's spec asks for."""

from __future__ import annotations

from cluster import objects
from cluster.errors import AlreadyExists, ApiError, Conflict, NotFound, TooManyRequests, Unavailable
from cluster.kinds import CLAIM, JOB, POD_GROUP, QUEUE, RESOURCE_QUOTA
from cluster.port import Obj
from cluster.said import said
from jobs import keys
from jobs.controller import plugins as hooks
from jobs.controller import status as statuses
from jobs.controller.base import A_PASS, SOON
from jobs.controller.passes import Pass
from jobs.controller.restraint import is_ending, quota_of
from jobs.groups import KEPT_UP, build_group, kept_up
from jobs.held import HELD, QUOTA, VOLUMES, note_of
from jobs.keys import FIELD_MANAGER
from jobs.lifecycle import FINAL, Phase, advance
from jobs.plugins import Plugin, plugins_of
from jobs.pods import build_pod, claim_name, is_forwarded
from jobs.roles import PodTable, is_marked, released, tasks_of

CLAIM_SECONDS = 5.0
"""How often a claim that is missing is looked for."""


def sync(this: Pass) -> float | None:
    """Bring PodGroup and pods nearer to the spec, and the status to what is there; when to look again."""
    phase = statuses.job_phase(this.job)
    _mark_forwarded(this)
    plugins = plugins_of(this.job)
    if phase is not Phase.PENDING:
        hooks.keep_up(this, plugins)
    elif not _is_prepared(this, plugins):
        _conclude(this, [], this.pods)
        return CLAIM_SECONDS
    table = PodTable.of(this.pods)
    free = released(this.job, table)
    group = _keep_group(this, free)
    admitted = ((group.get("status") or {}).get("phase") or "Pending") != "Pending"
    if not admitted:
        _tell_why(this, group)
        _conclude(this, [], this.pods)
        return None
    made, going = _make_and_unmake(this, table, {task["name"] for task in free}, plugins)
    _conclude(this, going, [*this.pods, *made])
    return 0.0 if len(made) == A_PASS else SOON if len(going) == A_PASS else None


def _is_prepared(this: Pass, plugins: list[Plugin]) -> bool:
    """Plugins and claims, before the gang asks for room; False while one of them is missing what it needs."""
    try:
        complete = hooks.prepare(this, plugins)
    except Exception:
        if this.notes:  # what holds the job is kept, also when the next try is far
            _conclude(this, [], this.pods)
        raise
    for position, volume in enumerate(this.job["spec"].get("volumes") or ()):
        name = claim_name(this.job, position)
        this.notes[keys.MADE_CLAIM + name] = name
        try:
            this.context.cluster.get(CLAIM, name, objects.namespace(this.job))
        except NotFound:
            if "volumeClaim" in volume:
                _make_claim(this, name, volume["volumeClaim"])
            else:
                this.events.warning(this.job, "PVCError", said("there is no claim %(name)r: the job waits for it", name=name))
                this.notes[HELD] = note_of(VOLUMES, CLAIM.kind, name)
                this.notes[keys.MADE_CLAIM + name] = None
                complete = False
    return complete


def _make_claim(this: Pass, name: str, spec: Obj) -> None:
    claim = {
        "apiVersion": CLAIM.api_version,
        "kind": CLAIM.kind,
        "metadata": {
            "name": name,
            "namespace": objects.namespace(this.job),
            "ownerReferences": [objects.owner_reference(this.job)],
        },
        "spec": spec,
    }
    try:
        this.context.cluster.create(CLAIM, claim, field_manager=FIELD_MANAGER)
    except AlreadyExists:
        pass
    except ApiError as error:
        this.events.warning(this.job, "PVCError", said("claim %(name)r could not be made: %(error)s", name=name, error=error))
        raise


def _mark_forwarded(this: Pass) -> None:
    """Say on the job that its queue reaches into other clusters. Raises NotFound when there is no such queue any more."""
    name = this.job["spec"]["queue"]
    queue = this.context.informer.get(QUEUE, f"/{name}")
    if queue is None:
        raise NotFound(said("queue %(name)r does not exist any more", name=name))
    if (queue.get("spec") or {}).get("extendClusters") and not is_forwarded(this.job):
        meta = this.job["metadata"]
        mark = {"metadata": {"uid": meta["uid"], "annotations": {keys.FORWARDING: "true"}}}
        this.job = this.context.cluster.patch(JOB, meta["name"], meta["namespace"], mark, field_manager=FIELD_MANAGER)
        this.context.informer.observe(JOB, this.job)


def _keep_group(this: Pass, free: list[Obj]) -> Obj:
    """The job's PodGroup, made or brought up to date; a refusal is told on the job."""
    try:
        return _kept_group(this, free)
    except (Conflict, Unavailable, TooManyRequests):
        raise
    except ApiError as error:
        if is_ending(error):
            raise
        this.events.warning(this.job, "PodGroupError", said("the PodGroup could not be kept: %(error)s", error=error))
        raise


def _kept_group(this: Pass, free: list[Obj]) -> Obj:
    cluster, informer, group = this.context.cluster, this.context.informer, this.group
    if group is None:
        wanted = build_group(this.job, free, this.priority)
        try:
            group = cluster.create(POD_GROUP, wanted, field_manager=FIELD_MANAGER)
        except AlreadyExists:
            group = cluster.get(POD_GROUP, wanted["metadata"]["name"], wanted["metadata"]["namespace"])
        informer.observe(POD_GROUP, group)
        return group
    have, want = group.get("spec") or {}, kept_up(this.job, free, this.priority)
    operations = [
        {"op": "add", "path": f"/spec/{field}", "value": want[field]}
        if field in want
        else {"op": "remove", "path": f"/spec/{field}"}
        for field in KEPT_UP
        if have.get(field) != want.get(field)
    ]
    if operations:
        meta = group["metadata"]
        group = cluster.patch(
            POD_GROUP, meta["name"], meta["namespace"], operations, patch_type="json", field_manager=FIELD_MANAGER
        )
        informer.observe(POD_GROUP, group)
    return group


def _tell_why(this: Pass, group: Obj) -> None:
    """An event when the scheduler has said why the gang is not admitted."""
    conditions = [c for c in (group.get("status") or {}).get("conditions") or () if c.get("status") == "True"]
    if conditions and conditions[-1].get("type") != "Scheduled":
        this.events.warning(this.job, "PodGroupPending", conditions[-1].get("message") or said("the gang is not admitted yet"))


def _make_and_unmake(this: Pass, table: PodTable, free: set[str], plugins: list[Plugin]) -> tuple[list[Obj], list[Obj]]:
    """Create the pods that are missing, so many a pass, and delete those that are too many; both lists.

    What is refused of one role keeps no other role's pods from being made.
    """
    missing: list[tuple[Obj, int]] = []
    going: list[Obj] = []
    for task in tasks_of(this.job):
        there = dict(table.role(task["name"]))
        for index in range(int(task.get("replicas") or 0)):
            pod = there.pop(keys.pod_name(objects.name(this.job), task["name"], index), None)
            if pod is None:
                if task["name"] in free and len(missing) < A_PASS:
                    missing.append((task, index))
            elif is_marked(pod) and not objects.is_deleting(pod):
                going.append(pod)
        going.extend(pod for pod in there.values() if not objects.is_deleting(pod))
    going = going[:A_PASS]
    made, refused = this.create_pods([_built(this, task, index, plugins) for task, index in _allowed(this, missing)])
    _hold_back(this, made, refused)
    if going:
        this.remember(this.memory.without(going))
        this.tell("FailedDelete", this.delete_pods(going))
    return made, going


def _allowed(this: Pass, missing: list[tuple[Obj, int]]) -> list[tuple[Obj, int]]:
    """What may be tried now: nothing while it is waited for a quota."""
    key, now = objects.key(this.job), this.context.clock.now()
    if not missing:
        _let_go(this)
    elif left := this.context.restraint.left(key, now):
        this.notes[HELD] = this.held
        this.look_again(left)
        return []
    return missing


def _hold_back(this: Pass, made: list[Obj], refused: list[tuple[Obj, Exception]]) -> None:
    """Tell what was refused. A quota is waited for, ever longer; anything else is raised, so that it is tried again."""
    restraint, key = this.context.restraint, objects.key(this.job)
    quota = next((found for _, error in refused if (found := quota_of(error))), "")
    if made:  # the quota gives way: what it refuses from now on is a new refusal
        _let_go(this)
    if not quota:
        this.tell("FailedCreate", refused)
        return
    this.say("FailedCreate", refused)
    this.notes[HELD] = note_of(QUOTA, RESOURCE_QUOTA.kind, quota)
    this.look_again(restraint.refused(key, this.context.clock.now()))


def _let_go(this: Pass) -> None:
    """No quota holds the job any more."""
    this.context.restraint.clear(objects.key(this.job))
    if (this.held or "").startswith(f"{QUOTA}/"):
        this.notes[HELD] = None


def _built(this: Pass, task: Obj, index: int, plugins: list[Plugin]) -> Obj:
    pod = build_pod(this.job, task, index)
    hooks.adapt(this, plugins, pod)
    return pod


def _conclude(this: Pass, going: list[Obj], pods: list[Obj]) -> None:
    """Count, find the phase, and write the status when it differs."""
    gone = {objects.uid(pod) for pod in going}
    this.memory = this.memory.seeing(this.job, [p for p in pods if objects.uid(p) not in gone], this.still_missing)
    counts, roles = statuses.count(pods, going), statuses.count_roles(pods, going)
    step = advance(statuses.job_phase(this.job), this.action, statuses.facts(this.job, counts, roles))
    status = statuses.new_status(this.job, counts, roles, step, this.context.clock.now())
    status["minAvailable"] = int(this.job["spec"].get("minAvailable") or 0)
    if step.phase in FINAL:  # the generation is over: said with the end, since what is left of it goes in the next pass
        status["version"] += 1
        status["runningDuration"] = statuses.lasted(this.job, status)
    this.write(status)
