"""Which action a pass carries out: every event that is there to be seen or remembered meets the job's policies."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from cluster import objects
from cluster.port import Obj
from jobs.controller.happenings import observed, of_failed
from jobs.controller.memory import evicted, identity
from jobs.controller.passes import Pass
from jobs.controller.status import job_phase
from jobs.lifecycle import Action, Phase
from jobs.policies import Event, Happening, choose, has_policies
from jobs.roles import phase_of

_POLICIES_APPLY = frozenset({Phase.PENDING, Phase.RUNNING, Phase.RESTARTING})


@dataclass(frozen=True, slots=True)
class _Sight:
    """An event as this pass sees it; `place` is the role and index of a pod that is gone. One that does not last has to be
    remembered, or the next pass would not know of it."""

    happening: Happening
    place: tuple[str, int] | None = None
    lasts: bool = True


def decide(this: Pass, vanished: Iterable[Obj]) -> tuple[Happening | None, float | None]:
    """Set the action of this pass; the event that led to it, and in how many seconds the next delayed one falls due.

    `vanished` are failed pods of which this process saw the end; they add how pods ended to what is known without them.
    What is learnt goes into the pass's memory, which is written together with what the pass does.
    """
    if job_phase(this.job) not in _POLICIES_APPLY or not has_policies(this.job):
        return None, None
    now, waits = this.context.clock.now(), []
    due: Happening | None = None
    for sight in _sights(this, now, vanished):
        happening, place = sight.happening, sight.place
        choice = choose(this.job, happening)
        if choice.action is Action.SYNC:
            continue
        if place is not None and this.is_there(happening.pod):
            this.still_missing.append(place)  # another process made it, and the local copy has not seen it yet
            continue
        rest = happening.at + choice.delay - now
        if rest <= 0 and due is None:
            this.action, due = choice.action, happening
            continue
        if rest > 0:
            waits.append(rest)
        if rest <= 0 and place is not None:
            this.still_missing.append(place)
        elif not sight.lasts:
            this.memory = this.memory.wait_for(happening, choice.action, this.job)
    return due, min(waits, default=None) if due is None else None


def _sights(this: Pass, now: float, vanished: Iterable[Obj]) -> list[_Sight]:
    """Every event that was not answered yet, oldest first."""
    running = {objects.name(pod) for pod in this.pods if phase_of(pod) == "Running"}
    seen = observed(this.job, this.pods)
    broken = _broken(this, now)
    there = {identity(happening) for happening in (*seen, *broken)}
    this.memory = replace(
        this.memory,
        waiting=tuple(h for h in this.memory.waiting if h.pod not in running),
        answered=this.memory.answered & there,
    )
    answered = this.memory.answered
    found = [
        *(_Sight(happening) for happening in this.memory.waiting),
        *(_Sight(happening) for happening in seen if identity(happening) not in answered),
        *(_Sight(happening, lasts=False) for happening in broken if identity(happening) not in answered),
        *(_Sight(of_failed(this.job, pod), lasts=False) for pod in vanished if objects.name(pod) not in running),
        *(_Sight(evicted(this.job, *place, now), place, lasts=False) for place in this.memory.missing(this.job, this.pods)),
    ]
    # A broken gang that is waited with is heard once, however long it stays broken.
    this.memory = replace(this.memory, answered=answered | {identity(happening) for happening in broken})
    return sorted(found, key=lambda sight: sight.happening.at)


def _broken(this: Pass, now: float) -> list[Happening]:
    """The gang broke and cannot be put together again, as the scheduler says of its PodGroup."""
    group = this.group
    if group is None or ((group.get("status") or {}).get("phase") or "") != "Unknown":
        return []
    version = int((this.job.get("status") or {}).get("version") or 0)
    return [Happening(Event.UNKNOWN, pod_uid=objects.uid(group), version=version, at=now)]
