"""The Job controller: brings one job nearer to what its spec, its Commands and its policies ask for.

A pass reads everything from the local copy and writes little. Nothing that matters lives only in this process: a Command is
there until it was carried out and the job's status says so, events are read off the pods, timers are derived from stamps.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterable, Iterator

from cluster import objects
from cluster.errors import Conflict, Forbidden, NotFound, TooManyRequests, Unavailable
from cluster.informer import Change, IndexFunction
from cluster.kinds import COMMAND, JOB, POD, POD_GROUP, PRIORITY_CLASS, QUEUE, Kind
from cluster.port import Obj
from cluster.said import said
from jobs import keys
from jobs.controller.base import SOON, Context
from jobs.controller.deciding import decide
from jobs.controller.events import EventRecorder
from jobs.controller.kill import kill
from jobs.controller.passes import Pass
from jobs.controller.restraint import is_ending
from jobs.controller.status import job_phase, last_transition
from jobs.controller.sync import sync
from jobs.lifecycle import STOPPED, Action, Effect, effect
from jobs.policies import Happening
from jobs.roles import belongs, is_marked, phase_of

MANY_CONFLICTS = 5
"""Conflicts in a row after which they are told: somebody undoes what the controller does."""
MOST_VANISHED, MOST_OF_ONE = 1000, 200
"""Jobs of which ended pods are remembered until a pass takes them, and pods of one job, the newest of each: with workers that
pass may happen in another process."""
MAX_FAILURES = 15
"""Refusals in a row after which a job is terminated instead. A cluster that does not answer refuses nothing."""


def _owner_uid(obj: Obj) -> Iterator[str]:
    if owner := keys.owning_job(obj):
        yield owner["uid"]


def _target(command: Obj) -> Iterator[str]:
    target = command.get("target") or {}
    if target.get("kind") == JOB.kind:
        yield f"{objects.namespace(command)}/{target.get('name')}"


class JobController:
    """Reconciles Jobs of `batch.volcano.sh`; keys are `namespace/name`."""

    name = "job"
    kinds: tuple[Kind, ...] = (JOB, POD, POD_GROUP, COMMAND, QUEUE, PRIORITY_CLASS)
    indexes: dict[tuple[Kind, str], IndexFunction] = {(POD, "job"): _owner_uid, (COMMAND, "job"): _target}  # noqa: RUF012

    def __init__(self, context: Context, events: EventRecorder) -> None:
        self._context, self._events = context, events
        self._vanished: dict[str, list[Obj]] = {}
        self._lock = threading.Lock()

    def start(self) -> None:
        """Nothing is needed beforehand."""

    def keys(self, change: Change) -> Iterable[str]:
        """The job itself, or the one that a pod, a PodGroup or a Command belongs to."""
        obj, kind = change.object, change.kind
        if kind == JOB:
            return [objects.key(obj)]
        if kind == COMMAND:
            return _target(obj)
        if kind not in (POD, POD_GROUP):
            return ()
        owner = keys.owning_job(obj)
        if owner is None:
            return ()
        key = f"{objects.namespace(obj)}/{owner['name']}"
        self._notice(key, change)
        return [key]

    def reconcile(self, key: str) -> float | None:
        """One pass: a waiting Command first, then what policies say, else a plain sync; then the time to live."""
        informer = self._context.informer
        job = informer.get(JOB, key)
        if job is None:
            self._drop(key)
            return None
        if objects.is_deleting(job):
            return None
        ending, now = f"{key}/ending", self._context.clock.now()
        if left := self._context.restraint.left(ending, now):
            return left
        try:
            return self._pass(key, job)
        except Forbidden as error:
            if not is_ending(error):
                raise
            return self._context.restraint.refused(ending, now)  # with its namespace the job goes too

    def _pass(self, key: str, job: Obj) -> float | None:
        this = Pass(self._context, self._events, job, self._pods(job))
        if (begun := this.resume()) is not None:
            return SOON if kill(this, begun) else 0.0
        if (again := self._carry_out_command(key, this)) is not None:
            return again
        vanished = self._take(key, job)
        try:
            target, wait = self._decide(key, this, vanished)
            again = self._act(this, target)
        except Exception:
            self._put_back(key, vanished)
            raise
        self._context.refusals.clear(key)
        if this.action is not Action.SYNC:
            return again or 0.0
        return min((w for w in (again, wait, this.rest, self._live_on(this)) if w is not None), default=None)

    def failed(self, key: str, error: Exception, failures: int) -> None:
        """Tell it on the job; after many refusals in a row the job is terminated instead."""
        if isinstance(error, Conflict) and failures < MANY_CONFLICTS:
            return  # somebody else was quicker; the next pass sees what they wrote
        if not isinstance(error, Unavailable | TooManyRequests):
            self._context.refusals.add(key)
        job = self._context.informer.get(JOB, key)
        if job is not None:
            self._events.warning(job, "JobStatusError", said("the job could not be brought forward: %(error)s", error=error))

    def _notice(self, key: str, change: Change) -> None:
        """Remember how a pod ended that failed and is gone; that it is gone is known without it."""
        pod = change.object
        if change.kind == POD and change.new is None and phase_of(pod) == "Failed" and belongs(pod) and not is_marked(pod):
            with self._lock:
                found = self._vanished.setdefault(key, [])
                found.append(pod)
                del found[:-MOST_OF_ONE]
                if len(self._vanished) > MOST_VANISHED:
                    del self._vanished[next(iter(self._vanished))]

    def _drop(self, key: str) -> None:
        """A job that is gone: forget it, and clear away Commands that nobody will carry out."""
        with self._lock:
            self._vanished.pop(key, None)
        self._context.refusals.clear(key)
        self._context.rests.written(key)
        for held in (key, f"{key}/ending"):
            self._context.restraint.clear(held)
        namespace, _, name = key.partition("/")
        for command in self._context.informer.by(COMMAND, "job", key):
            try:
                self._context.cluster.get(JOB, name, namespace)
            except NotFound:
                self._delete_command(command)

    def _carry_out_command(self, key: str, this: Pass) -> float | None:
        """Carry out the oldest Command that waits, then delete it; when to look again, None: there was none."""
        waiting = sorted(self._context.informer.by(COMMAND, "job", key), key=objects.resource_version)
        if not waiting:
            return None
        again = None
        command, job = waiting[0], this.job
        done = ((job.get("status") or {}).get("controlledResources") or {}).get(keys.LAST_COMMAND)
        meant = command["target"].get("uid") in (None, "", objects.uid(job))
        if objects.uid(command) != done and meant and command.get("action") in [*Action]:
            this.action, this.command_uid = Action(command["action"]), objects.uid(command)
            self._events.normal(job, "CommandIssued", _command(command))
            again = self._act(this, None)
        self._delete_command(command)
        return again or 0.0

    def _delete_command(self, command: Obj) -> None:
        with contextlib.suppress(NotFound):
            self._context.cluster.delete(COMMAND, objects.name(command), objects.namespace(command), uid=objects.uid(command))
        self._context.informer.forget(COMMAND, command)

    def _take(self, key: str, job: Obj) -> list[Obj]:
        with self._lock:
            vanished = self._vanished.pop(key, [])
        return [pod for pod in vanished if (keys.owning_job(pod) or {}).get("uid") == objects.uid(job)]

    def _pods(self, job: Obj) -> list[Obj]:
        """The pods that say what they are to this job; others are let alone, whoever owns them."""
        return [pod for pod in self._context.informer.by(POD, "job", objects.uid(job)) if belongs(pod)]

    def _put_back(self, key: str, vanished: list[Obj]) -> None:
        if vanished:
            with self._lock:
                self._vanished[key] = [*vanished, *self._vanished.get(key, [])]

    def _decide(self, key: str, this: Pass, vanished: list[Obj]) -> tuple[Happening | None, float | None]:
        """Set the action of this pass; the event that led to it, and when the next delayed one falls due."""
        if self._context.refusals.of(key) >= MAX_FAILURES:
            this.action = Action.TERMINATE
            return None, None
        return decide(this, vanished)

    def _act(self, this: Pass, target: Happening | None) -> float | None:
        """Carry out the action of this pass in the phase that the job is in."""
        if this.action is not Action.SYNC:
            self._events.normal(this.job, "ExecuteAction", _deed(this.action, target, job_phase(this.job)))
        what = effect(job_phase(this.job), this.action)
        if what is Effect.SYNC:
            if this.action is not Action.SYNC:
                this.memory = this.memory.after(this.action, what, target, (), this.job)
            return sync(this)
        if this.action is not Action.SYNC and not this.command_uid:
            this.begin(target)
        return SOON if kill(this, target) else None

    def _live_on(self, this: Pass) -> float | None:
        """Delete a job whose time to live is over; else how long it still has."""
        ttl, since = this.job["spec"].get("ttlSecondsAfterFinished"), last_transition(this.job)
        if ttl is None or since is None or job_phase(this.job) not in STOPPED:
            return None
        rest = since + int(ttl) - self._context.clock.now()
        if rest > 0:
            return rest
        meta = this.job["metadata"]
        self._context.cluster.delete(
            JOB,
            meta["name"],
            meta["namespace"],
            uid=meta["uid"],
            resource_version=meta["resourceVersion"],
            propagation="Foreground",
        )
        return None


def _command(command: Obj) -> str:
    if message := command.get("message"):
        return said("%(action)s: %(message)s", action=command["action"], message=str(message))
    return said("%(action)s: a Command asks for it", action=command["action"])


def _deed(action: Action, target: Happening | None, phase: str) -> str:
    """What is done, and what led to it."""
    if target is None:
        return said("%(action)s in phase %(phase)s", action=str(action), phase=str(phase))
    whose = target.pod or target.role or said("the gang")
    return said(
        "%(action)s because of %(event)s (%(whose)s) in phase %(phase)s",
        action=str(action), event=str(target.event), whose=whose, phase=str(phase),
    )  # fmt: skip
