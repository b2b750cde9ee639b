"""One pass over one job: what was read, and the writes that both syncing and killing need."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass, field
from typing import Any

from cluster import objects
from cluster.errors import AlreadyExists, NotFound
from cluster.kinds import JOB, POD, POD_GROUP, PRIORITY_CLASS
from cluster.port import Obj, Outcome, Victim
from cluster.said import said
from jobs import keys
from jobs.controller.base import Context
from jobs.controller.events import EventRecorder
from jobs.controller.memory import Memory
from jobs.controller.restraint import is_ending, quota_of
from jobs.controller.status import COUNTS, difference
from jobs.held import HELD
from jobs.keys import FIELD_MANAGER
from jobs.lifecycle import Action
from jobs.policies import Event, Happening
from jobs.roles import is_marked

TAKEN_SECONDS = 5.0
"""How often a name is tried that somebody else's pod has."""


@dataclass(slots=True)
class Pass:
    """A job and its pods as they were read, the action that this pass carries out, and the Command that asked for it."""

    context: Context
    events: EventRecorder
    job: Obj
    pods: list[Obj]
    action: Action = Action.SYNC
    command_uid: str = ""
    memory: Memory = field(init=False)
    still_missing: list[tuple[str, int]] = field(default_factory=list)
    """Role and index of pods that are gone, which a later pass answers."""
    notes: dict[str, str | None] = field(default_factory=dict)
    """What is to be written into `controlledResources` with the status; None takes an entry away."""
    rest: float | None = None
    """In how many seconds to come back to what could not be done now."""

    def __post_init__(self) -> None:
        self.memory = Memory.of(self.job)

    @property
    def group(self) -> Obj | None:
        """The job's PodGroup, None when there is none."""
        return self.context.informer.get(POD_GROUP, f"{objects.namespace(self.job)}/{keys.group_name(self.job)}")

    def priority(self, name: str) -> int:
        """The value of a priority class, 0 when there is none of the name."""
        found = self.context.informer.get(PRIORITY_CLASS, f"/{name}") if name else None
        return int(found["value"]) if found else 0

    def write(self, status: dict[str, Any], unfinished: str = "") -> None:
        """Write the status, if it differs, and with it that the Command was carried out: one write, both or neither.

        Counts alone rest first. `unfinished` is what the next pass takes up again. Raises Conflict when the job changed since
        it was read.
        """
        resources = dict(status.pop("controlledResources", None) or {})
        resources.pop(keys.PENDING_ACTION, None)
        resources.pop(keys.MEMORY, None)
        if remembered := self.memory.text():
            resources[keys.MEMORY] = remembered
        if unfinished:
            resources[keys.PENDING_ACTION] = unfinished
        if self.command_uid:
            resources[keys.LAST_COMMAND] = self.command_uid
        resources |= {key: note for key, note in self.notes.items() if note is not None}
        for key in [key for key, note in self.notes.items() if note is None]:
            resources.pop(key, None)
        self._patch_status({**status, "controlledResources": resources} if resources or self._resources else status)

    def begin(self, target: Happening | None) -> None:
        """Write down what a policy led to before any of it is done, since the pods that led to it may be the first to go."""
        status = self.job.get("status") or {}
        self._patch_status({**status, "controlledResources": {**self._resources, keys.PENDING_ACTION: self.unfinished(target)}})

    def unfinished(self, target: Happening | None) -> str:
        """The action of this pass with its target, as it is written down for the next one."""
        return "/".join([str(self.action), *((target.role, target.pod, target.partition) if target else ())])

    def resume(self) -> Happening | None:
        """Take up an action that was begun and not finished, if there is one; its target."""
        begun = self._resources.get(keys.PENDING_ACTION)
        if not begun:
            return None
        action, role, pod, partition = [*begun.split("/"), "", "", ""][:4]
        self.action = Action(action)
        return Happening(Event.OUT_OF_SYNC, role=role, pod=pod, partition=partition)

    @property
    def held(self) -> str | None:
        """What the status says keeps the job from going on."""
        return self._resources.get(HELD)

    @property
    def _resources(self) -> dict[str, str]:
        return (self.job.get("status") or {}).get("controlledResources") or {}

    def _patch_status(self, status: dict[str, Any]) -> None:
        patch, rests, key = difference(self.job.get("status") or {}, status), self.context.rests, objects.key(self.job)
        if patch.keys() <= COUNTS and patch and (rest := rests.left(key, self.context.clock.now())):
            self.look_again(rest)
            return
        rests.written(key)
        if not patch:
            return
        meta = self.job["metadata"]
        written = self.context.cluster.patch_status(
            JOB,
            meta["name"],
            meta["namespace"],
            patch,
            resource_version=meta.get("resourceVersion", ""),
            uid=meta["uid"],
        )
        self.context.informer.observe(JOB, written)
        self.job = written

    def look_again(self, seconds: float) -> None:
        """Have the job looked at in so many seconds, or earlier."""
        self.rest = seconds if self.rest is None else min(self.rest, seconds)

    def is_there(self, pod: str) -> bool:
        """Ask the cluster itself whether the job has a pod of this name."""
        try:
            found = self.context.cluster.get(POD, pod, objects.namespace(self.job))
        except NotFound:
            return False
        self.context.informer.observe(POD, found)
        owner = keys.owning_job(found)
        return owner is not None and owner["uid"] == objects.uid(self.job)

    def remember(self, memory: Memory) -> None:
        """Keep what is to be remembered now, before what is done next could be taken for somebody else's doing."""
        self.memory = memory
        text, resources = memory.text(), dict(self._resources)
        if text == resources.pop(keys.MEMORY, ""):
            return
        if text:
            resources[keys.MEMORY] = text
        self._patch_status({**(self.job.get("status") or {}), "controlledResources": resources})

    def create_pods(self, pods: list[Obj]) -> tuple[list[Obj], list[tuple[Obj, Exception]]]:
        """Create pods; those that were made, and those that were refused and why. A name that is taken is passed over: its
        holder's going brings the job here again. After a quota has refused some, the rest is not tried."""
        made: list[Obj] = []
        refused: list[tuple[Obj, Exception]] = []
        size = 1 if self.context.restraint.holds(objects.key(self.job)) else len(pods)
        while pods and not any(quota_of(error) for _, error in refused):
            now, pods, size = pods[:size], pods[size:], size * 2
            for pod, outcome in zip(now, self.context.cluster.create_many(POD, now, field_manager=FIELD_MANAGER), strict=True):
                if outcome.object is not None:
                    self.context.informer.observe(POD, outcome.object)
                    made.append(outcome.object)
                elif isinstance(outcome.error, AlreadyExists):
                    self._tell_taken(pod)
                elif outcome.error is not None:
                    refused.append((pod, outcome.error))
        return made, refused

    def _tell_taken(self, pod: Obj) -> None:
        """Say it when somebody else's pod has the name of one of the job's, and look again later: its going tells nobody."""
        found = self.context.informer.get(POD, objects.key(pod))
        if found is not None and (keys.owning_job(found) or {}).get("uid") != objects.uid(self.job):
            self.events.warning(
                self.job, "FailedCreate", said("pod %(pod)s is there already, and is somebody else's", pod=objects.name(pod))
            )
            self.look_again(TAKEN_SECONDS)

    def delete_pods(self, pods: list[Obj]) -> list[tuple[Obj, Exception]]:
        """Delete pods, marked first, so that their going is not taken for an eviction; those that were refused and why.

        One that cannot be marked is not deleted; one that is gone already is fine.
        """
        cluster = self.context.cluster
        mark = {"metadata": {"annotations": {keys.OUT_OF_SYNC: "true"}}}
        unmarked = [pod for pod in pods if not is_marked(pod)]
        outcomes = cluster.patch_many(POD, [(_victim(pod), mark) for pod in unmarked], field_manager=FIELD_MANAGER)
        refused = self._settle(unmarked, outcomes)
        kept = {objects.uid(pod) for pod, _ in refused}
        going = [pod for pod in pods if objects.uid(pod) not in kept]
        return refused + self._settle(going, cluster.delete_many(POD, [_victim(pod) for pod in going]))

    def _settle(self, pods: list[Obj], outcomes: list[Outcome]) -> list[tuple[Obj, Exception]]:
        """Take in what became of pods; what was refused. A pod that is gone is what was wanted."""
        refused = []
        for pod, outcome in zip(pods, outcomes, strict=True):
            if outcome.object is not None:
                self.context.informer.observe(POD, outcome.object)
            elif isinstance(outcome.error, NotFound):
                self.context.informer.forget(POD, pod)
            elif outcome.error is not None:
                refused.append((pod, outcome.error))
        return refused

    def tell(self, reason: str, refused: list[tuple[Obj, Exception]]) -> None:
        """An event about what was refused, if anything was; and then the first refusal is raised, so that it is tried again."""
        if refused:
            if not is_ending(refused[0][1]):
                self.say(reason, refused)
            raise refused[0][1]

    def say(self, reason: str, refused: list[tuple[Obj, Exception]]) -> None:
        """An event about what was refused."""
        pod, error = refused[0]
        facts: dict[str, Any] = {"pod": objects.name(pod), "count": len(refused) - 1, "error": error}
        if len(refused) > 1:
            message = said("pod %(pod)s, and %(count)s more: %(error)s", **facts)
        else:
            message = said("pod %(pod)s: %(error)s", pod=facts["pod"], error=error)
        self.events.warning(self.job, reason, message)

    def delete_group(self) -> None:
        """Delete the PodGroup, so that the gang must be admitted again."""
        group = self.group
        if group is None:
            return
        with contextlib.suppress(NotFound):
            self.context.cluster.delete(POD_GROUP, objects.name(group), objects.namespace(group), uid=objects.uid(group))
        self.context.informer.forget(POD_GROUP, group)


def _victim(pod: Obj) -> Victim:
    meta = pod["metadata"]
    return Victim(meta["namespace"], meta["name"], meta["uid"])
