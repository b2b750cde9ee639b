"""The Job controller: brings one job nearer to what its spec, its Commands and its policies ask for.

A pass reads everything from the local copy and writes little. Nothing that matters lives only in this process: a Command is
there until it was carried out and the job's status says so, events are read off the pods, timers are derived from stamps.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterable, Iterator

from cluster import objects
from cluster.errors import Conflict, NotFound, TooManyRequests, Unavailable
from cluster.informer import Change, IndexFunction
from cluster.kinds import COMMAND, JOB, POD, POD_GROUP, PRIORITY_CLASS, QUEUE, Kind
from cluster.port import Obj
from jobs import keys
from jobs.controller.base import SOON, Context
from jobs.controller.events import EventRecorder
from jobs.controller.happenings import observed, of_pod
from jobs.controller.kill import kill
from jobs.controller.passes import Pass
from jobs.controller.status import job_phase, last_transition
from jobs.controller.sync import sync
from jobs.lifecycle import STOPPED, Action, Effect, Phase, effect
from jobs.policies import Event, Happening, choose, has_policies
from jobs.roles import is_marked, phase_of

MAX_FAILURES = 15
"""Refusals in a row after which a job is terminated instead. A cluster that does not answer refuses nothing."""

_POLICIES_APPLY = frozenset({Phase.PENDING, Phase.RUNNING, Phase.RESTARTING})


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
        self._noticed: dict[str, list[Happening]] = {}
        self._refusals: dict[str, int] = {}
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
        self._notice(key, owner["uid"], change)
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
        this = Pass(self._context, self._events, job, self._pods(job))
        if (begun := this.resume()) is not None:
            return SOON if kill(this, begun) else 0.0
        if (again := self._carry_out_command(key, this)) is not None:
            return again
        noticed = self._taken(key, job)
        try:
            target, wait = self._decide(key, this, noticed)
            again = self._act(this, target)
        except Exception:
            self._put_back(key, noticed)
            raise
        with self._lock:
            self._refusals.pop(key, None)
        if this.action is not Action.SYNC:
            return again or 0.0
        return min((w for w in (again, wait, self._live_on(this)) if w is not None), default=None)

    def failed(self, key: str, error: Exception, failures: int) -> None:
        """Tell it on the job; after many refusals in a row the job is terminated instead."""
        if isinstance(error, Conflict):
            return  # somebody else was quicker; the next pass sees what they wrote
        if not isinstance(error, Unavailable | TooManyRequests):
            with self._lock:
                self._refusals[key] = self._refusals.get(key, 0) + 1
        job = self._context.informer.get(JOB, key)
        if job is not None:
            self._events.warning(job, "JobStatusError", f"the job could not be brought forward: {error}")

    def _notice(self, key: str, job_uid: str, change: Change) -> None:
        """Remember what leaves no trace: a pod that went unasked, a gang that broke."""
        now, old, new = self._context.clock.now(), change.old, change.new
        happening = None
        if change.kind == POD and new is None and not is_marked(change.object):
            happening = of_pod(job_uid, change.object, Event.POD_EVICTED, now)
        elif change.kind == POD_GROUP and new is not None and _group_phase(new) == "Unknown" != _group_phase(old):
            happening = Happening(Event.UNKNOWN, at=now)
        if happening is not None:
            with self._lock:
                self._noticed.setdefault(key, []).append(happening)

    def _drop(self, key: str) -> None:
        """A job that is gone: forget it, and clear away Commands that nobody will carry out."""
        with self._lock:
            self._noticed.pop(key, None)
            self._refusals.pop(key, None)
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
            self._events.normal(job, "CommandIssued", f"{command['action']}: {command.get('message') or 'a Command asks for it'}")
            again = self._act(this, None)
        self._delete_command(command)
        return again or 0.0

    def _delete_command(self, command: Obj) -> None:
        with contextlib.suppress(NotFound):
            self._context.cluster.delete(COMMAND, objects.name(command), objects.namespace(command), uid=objects.uid(command))
        self._context.informer.forget(COMMAND, command)

    def _taken(self, key: str, job: Obj) -> list[Happening]:
        with self._lock:
            noticed = self._noticed.pop(key, [])
        running = {objects.name(pod) for pod in self._pods(job) if phase_of(pod) == "Running"}
        return [h for h in noticed if h.job_uid in ("", objects.uid(job)) and h.pod not in running]

    def _pods(self, job: Obj) -> list[Obj]:
        return self._context.informer.by(POD, "job", objects.uid(job))

    def _put_back(self, key: str, noticed: list[Happening]) -> None:
        if noticed:
            with self._lock:
                self._noticed[key] = list(dict.fromkeys([*noticed, *self._noticed.get(key, [])]))

    def _decide(self, key: str, this: Pass, noticed: list[Happening]) -> tuple[Happening | None, float | None]:
        """Set the action of this pass by the policies; the event that led to it, and when the next delayed one falls due.

        Delayed events that leave no trace are put back until their time has come.
        """
        with self._lock:
            if self._refusals.get(key, 0) >= MAX_FAILURES:
                this.action = Action.TERMINATE
                return None, None
        if job_phase(this.job) not in _POLICIES_APPLY or not has_policies(this.job):
            return None, None
        now, waits, due = self._context.clock.now(), [], None
        for happening in [*noticed, *observed(this.job, this.pods)]:
            choice = choose(this.job, happening)
            if choice.action is Action.SYNC:
                continue
            if happening.at + choice.delay > now:
                waits.append(happening.at + choice.delay - now)
                if happening in noticed:
                    self._put_back(key, [happening])
            elif this.action is Action.SYNC:
                this.action = choice.action
                due = happening
        if this.action is Action.SYNC:
            return None, min(waits, default=None)
        return due, None

    def _act(self, this: Pass, target: Happening | None) -> float | None:
        """Carry out the action of this pass in the phase that the job is in."""
        if this.action is not Action.SYNC:
            said = f" because of {target.event} ({target.pod or target.role or 'the gang'})" if target else ""
            self._events.normal(this.job, "ExecuteAction", f"{this.action}{said} in phase {job_phase(this.job)}")
        if effect(job_phase(this.job), this.action) is Effect.SYNC:
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


def _group_phase(group: Obj | None) -> str:
    return ((group or {}).get("status") or {}).get("phase") or ""
