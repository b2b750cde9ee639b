"""What becomes of a job when some of its pods are evicted: read off its policies and its gang, as its controller would. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field

from cluster import objects
from cluster.port import Obj
from jobs import keys
from jobs.lifecycle import Action, Counts, Facts, Phase, Role, advance
from jobs.policies import Choice, Event, Happening, choose
from jobs.roles import minimum_of, phase_of, role_of, tasks_of, told_phase, version_of

SIGTERM_CODE = 143
"""How a program ends that does nothing of its own when it is told to stop."""
_WHOLE = frozenset({Action.RESTART, Action.ABORT, Action.TERMINATE, Action.COMPLETE})
_ORDER = (
    Action.TERMINATE, Action.ABORT, Action.COMPLETE, Action.RESTART,
    Action.RESTART_TASK, Action.RESTART_PARTITION, Action.RESTART_POD, Action.SYNC,
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Disruption:
    """What an eviction leads to.

    `choice` is the heaviest of what the policies answer to the pods' going, `leaving` the uids of all pods that leave because
    of it, in all, and `again` whether they are made again. `standing` are the pods that run or have succeeded now, `left`
    those of them that stay by the eviction alone; `short` are the roles that fall below their own minimum. `fails`: it has no
    retry left for what it is told to do. `if_fails` is what is done should a program end with an error when it is told to
    stop, `if_broken` should the gang not come together again; None: the same, or nothing.
    """

    choice: Choice
    leaving: frozenset[str]
    again: bool
    standing: int
    left: int
    minimum: int
    short: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    fails: bool = False
    if_fails: Choice | None = None
    if_broken: Choice | None = None

    @property
    def is_below(self) -> bool:
        """Whether the gang has fewer pods than it needs afterwards, and had enough before."""
        return self.left < self.minimum <= self.standing or bool(self.short)


def of(job: Obj, pods: Iterable[Obj], evicted: Collection[str]) -> Disruption:
    """What happens to a job whose pods of these uids are evicted; `pods` are all that it has."""
    alive = [pod for pod in pods if not objects.is_deleting(pod)]
    going = [pod for pod in alive if objects.uid(pod) in evicted]
    choices = {objects.uid(pod): choose(job, _happening(job, pod, Event.POD_EVICTED)) for pod in going}
    if told_phase(job) not in (Phase.PENDING, Phase.RUNNING):
        choices = dict.fromkeys(choices, Choice(Action.SYNC))  # it is on its way to somewhere else: policies are not asked
    choice = min(choices.values(), key=lambda each: _ORDER.index(each.action), default=Choice(Action.SYNC))
    leaving = _leaving(alive, going, {uid: each.action for uid, each in choices.items()})
    standing = [pod for pod in alive if phase_of(pod) in ("Running", "Succeeded")]
    stays = [pod for pod in standing if objects.uid(pod) not in evicted]
    return Disruption(
        choice=choice,
        leaving=leaving,
        again=choice.action not in (Action.ABORT, Action.TERMINATE, Action.COMPLETE),
        standing=len(standing),
        left=len(stays),
        minimum=int(job["spec"].get("minAvailable") or 0),
        short=_short(job, standing, stays),
        fails=_has_no_try_left(job, choice.action),
        if_fails=_other(job, going, Event.POD_FAILED, choice),
        if_broken=_broken(job, choice),
    )


def _happening(job: Obj, pod: Obj, event: Event) -> Happening:
    return Happening(
        event=event,
        role=role_of(pod),
        pod=objects.name(pod),
        partition=objects.labels(pod).get(keys.PARTITION_ID, ""),
        exit_code=SIGTERM_CODE if event is Event.POD_FAILED else 0,
        job_uid=objects.uid(job),
        version=version_of(pod),
    )


def _leaving(alive: Collection[Obj], going: Collection[Obj], actions: Mapping[str, Action]) -> frozenset[str]:
    """Pods that go: those evicted, and those that an action takes with them. Pods that have ended stay as they are."""
    found = set(actions)
    if any(action in _WHOLE for action in actions.values()):
        return frozenset(found | {objects.uid(pod) for pod in alive if phase_of(pod) not in ("Succeeded", "Failed")})
    for pod in going:
        action = actions[objects.uid(pod)]
        if action in (Action.RESTART_TASK, Action.RESTART_PARTITION):
            found |= {objects.uid(other) for other in alive if _goes_with(pod, other, action)}
    return frozenset(found)


def _goes_with(pod: Obj, other: Obj, action: Action) -> bool:
    if role_of(other) != role_of(pod):
        return False
    part = objects.labels(pod).get(keys.PARTITION_ID)
    return action is Action.RESTART_TASK or (part is not None and objects.labels(other).get(keys.PARTITION_ID) == part)


def _short(job: Obj, standing: Collection[Obj], stays: Collection[Obj]) -> dict[str, tuple[int, int]]:
    """Roles that come below a minimum of their own: how many they have left, and how many they need.

    As for the scheduler, roles' minima count only where the job's own is not below their sum.
    """
    found = {}
    if int(job["spec"].get("minAvailable") or 0) < sum(map(minimum_of, tasks_of(job))):
        return {}
    for task in tasks_of(job):
        had, left = (sum(role_of(pod) == task["name"] for pod in pods) for pods in (standing, stays))
        if left < minimum_of(task) <= had:
            found[str(task["name"])] = (left, minimum_of(task))
    return found


def _has_no_try_left(job: Obj, action: Action) -> bool:
    """Whether the job fails instead of doing once more what it is told to."""
    spec, status = job["spec"], job.get("status") or {}
    roles = {str(task["name"]): Role(int(task.get("replicas") or 0)) for task in tasks_of(job)}
    facts = Facts(
        counts=Counts(), roles=roles, retry_count=int(status.get("retryCount") or 0), max_retry=int(spec.get("maxRetry") or 3)
    )
    step = advance(Phase.RUNNING, action, facts)
    if step.phase is not Phase.RESTARTING:
        return False
    again = Facts(counts=Counts(), roles=roles, retry_count=step.retry_count, max_retry=facts.max_retry)
    return advance(Phase.RESTARTING, Action.SYNC, again).phase is Phase.FAILED


def _other(job: Obj, going: Iterable[Obj], event: Event, choice: Choice) -> Choice | None:
    """What is done for another event of the same pods, where that is heavier than what is done anyway."""
    found = min(
        (choose(job, _happening(job, pod, event)) for pod in going),
        key=lambda each: _ORDER.index(each.action), default=Choice(Action.SYNC),
    )  # fmt: skip
    return found if _ORDER.index(found.action) < _ORDER.index(choice.action) else None


def _broken(job: Obj, choice: Choice) -> Choice | None:
    version = int((job.get("status") or {}).get("version") or 0)
    found = choose(job, Happening(Event.UNKNOWN, version=version))
    return found if _ORDER.index(found.action) < _ORDER.index(choice.action) else None
