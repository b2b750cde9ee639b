"""A submission tried: where each pod would go, or why the job would wait, by the scheduler's own cycles over the copy."""

from __future__ import annotations

import time
from collections.abc import Iterable
from dataclasses import dataclass, field

from cluster import objects
from cluster.port import Binding, Obj
from portal.unblock import changes
from portal.unblock.copy import View
from scheduler.framework.explain import Verdict
from scheduler.framework.record import EvictionRecord
from scheduler.whatif import compare

Place = tuple[str, str, tuple[int, ...]]
"""A pod, its node, and the indices of its GPUs."""


@dataclass(slots=True)
class Trial:
    """What would become of a job that is submitted now. `pods` is how many it has; `cycles` after how many the last starts.

    `verdict` says why it waits; `line` is how many would wait with it.
    """

    starts: bool = False
    pods: int = 0
    places: list[Place] = field(default_factory=list)
    verdict: Verdict | None = None
    evicted: list[EvictionRecord] = field(default_factory=list)
    delayed: list[str] = field(default_factory=list)
    line: int = 0
    cycles: int = 0
    milliseconds: float = 0.0


def try_job(view: View, manifest: Obj) -> Trial:
    """Submit a complete manifest to the copy, and see."""
    began = time.perf_counter()
    change = changes.submitted(view, manifest)
    # Where nothing moves, one more job lets nobody in whom there was no room for before.
    only = {change.uid, *view.admitted} if view.baseline.is_quiet() else None
    played = view.play(change.events, only=only, until=change.uid, extra=lambda uid: change.pods(view, uid))
    assert change.job is not None
    told = compare(view.baseline, played)
    binds = played.binds.get(change.uid, [])
    found = Trial(
        starts=change.uid in played.started,
        pods=sum(int(task.get("replicas") or 0) for task in change.job["spec"].get("tasks") or ()),
        places=places(binds),
        verdict=played.verdicts.get(change.uid),
        evicted=told.evicted,
        delayed=told.delayed,
        cycles=played.cycles,
    )
    if not found.starts:
        found.line = len(view.baseline.line) - len(view.baseline.started) + 1
    found.milliseconds = (time.perf_counter() - began) * 1000
    return found


def places(binds: Iterable[Binding]) -> list[Place]:
    """Where pods go."""
    return [(bind.name, bind.node, _indices(bind.annotations.get(objects.GPU_INDICES, ""))) for bind in binds]


def _indices(text: str) -> tuple[int, ...]:
    return tuple(int(index) for index in text.split(",") if index)
