"""Killing: a job's pods, all or some of them, and the PodGroup with them."""

from __future__ import annotations

from cluster import objects
from cluster.port import Obj
from jobs import keys
from jobs.controller import status as statuses
from jobs.controller.base import A_PASS
from jobs.controller.passes import Pass
from jobs.controller.plugins import clear_away
from jobs.lifecycle import FINAL, Action, Effect, Phase, Step, advance, effect, keeps_finished
from jobs.policies import Happening
from jobs.roles import FINISHED, phase_of, role_of


def kill(this: Pass, target: Happening | None = None) -> bool:
    """Delete what the action says, so many pods a pass, then write what follows from it. Whether there is more to delete.

    The pods go first, the status last: a controller that dies in between finds the same action still to be done, and does it
    again with fewer pods. A kill of a whole job begins a new generation and takes its PodGroup away.
    """
    phase = statuses.job_phase(this.job)
    what = effect(phase, this.action)
    if this.action is Action.RESTART_PARTITION and not any(_is_meant(pod, this.action, target) for pod in this.pods):
        this.memory = this.memory.after(this.action, what, target, (), this.job)
        this.write(dict(this.job.get("status") or {}))
        return False  # there is no such partition: nothing is restarted, nothing counted
    meant = _victims(this, what, target)
    victims, more = meant[:A_PASS], len(meant) > A_PASS
    this.tell("FailedDelete", this.delete_pods(victims))
    whole = what is not Effect.KILL_TARGET
    asked = this.action is not Action.SYNC
    fresh = asked or bool(victims) or this.group is not None
    if whole:
        this.delete_group()
    gone = {objects.uid(pod) for pod in meant}
    if not whole:
        left = [pod for pod in this.pods if objects.uid(pod) not in gone]
        this.memory = this.memory.seeing(this.job, left, this.still_missing)
    this.memory = this.memory.after(this.action, what, target, gone, this.job)
    counts = statuses.count(this.pods, victims)
    roles = statuses.count_roles(this.pods, victims)
    step = advance(phase, this.action, statuses.facts(this.job, counts, roles))
    unfinished = more and not _goes_on_by_itself(step.phase)
    if unfinished:
        step = Step(phase, int((this.job.get("status") or {}).get("retryCount") or 0))
    if step.phase in FINAL and not more:
        clear_away(this)
    now = this.context.clock.now()
    status = statuses.new_status(this.job, counts, roles, step, now)
    if whole and fresh and not more and (asked or phase not in FINAL):  # who came to its end by itself had its number then
        status["version"] += 1
    if fresh or step.phase != phase:
        status["runningDuration"] = statuses.lasted(this.job, status)
    elif "runningDuration" in (this.job.get("status") or {}):
        status["runningDuration"] = this.job["status"]["runningDuration"]
    this.write(status, this.unfinished(target) if unfinished else "")
    return more


def _goes_on_by_itself(phase: Phase) -> bool:
    """Whether the next pass deletes the rest for the phase alone; else the action stays written down until all is deleted."""
    return effect(phase, Action.SYNC) is Effect.KILL_SOFT


def _victims(this: Pass, what: Effect, target: Happening | None) -> list[Obj]:
    there = [pod for pod in this.pods if not objects.is_deleting(pod)]
    if what is Effect.KILL_TARGET:
        return [pod for pod in there if _is_meant(pod, this.action, target)]
    status, spec = this.job.get("status") or {}, this.job["spec"]
    spared = FINISHED if keeps_finished(what, int(status.get("retryCount") or 0), int(spec.get("maxRetry") or 3)) else ()
    return [pod for pod in there if phase_of(pod) not in spared]


def _is_meant(pod: Obj, action: Action, target: Happening | None) -> bool:
    """Whether a pod belongs to the role, partition or name that raised the event; no target means no pod."""
    if target is None or not target.role or role_of(pod) != target.role:
        return False
    if action is Action.RESTART_TASK:
        return True
    if action is Action.RESTART_PARTITION:
        return bool(target.partition) and objects.labels(pod).get(keys.PARTITION_ID) == target.partition
    return bool(target.pod) and objects.name(pod) == target.pod
