"""Who may be evicted: how the plugins' answers combine over tiers, and in which order victims are taken.

Volcano hands candidates to its plugins in no order at all, though some of them count as they go. Here the order is that
of eviction: who should go first is asked about first.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from scheduler.framework.plugin import EvictionKind, Spares
from scheduler.model.jobs import JobInfo
from scheduler.model.queues import QueueInfo
from scheduler.model.tasks import TaskInfo, TaskStatus

if TYPE_CHECKING:
    from scheduler.framework.session import Session

HELD = (TaskStatus.BOUND, TaskStatus.RUNNING)
"""The status of tasks that may be evicted."""
Ask = Callable[[Any], Sequence[TaskInfo] | None]


@dataclass(frozen=True, slots=True)
class Offer:
    """Tasks that may be evicted, in the order of the candidates, and the plugins of the tier that decided so."""

    victims: list[TaskInfo]
    rule: str = ""


class Backwards:
    """A sort key turned round."""

    __slots__ = ("key",)

    def __init__(self, key: Any) -> None:
        self.key = key

    def __lt__(self, other: Backwards) -> bool:
        return bool(other.key < self.key)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Backwards) and bool(self.key == other.key)

    __hash__ = None  # type: ignore[assignment]


class VictimRules:
    """The families of functions about eviction, as one session has them."""

    def __init__(self, ssn: Session) -> None:
        self._ssn = ssn
        families = ("preemptable", "reclaimable", "unified_evictable", "victim_tasks", "victim_limit")
        self._tiers = {family: list(ssn.named(family)) for family in families}
        self._queue_keys = ssn.functions("victim_queue_order")
        self._spares = {family: self._spares_of(family) for family in ("preemptable", "reclaimable")}
        self._hosts: dict[str, tuple[int, frozenset[int]]] = {}
        self._sure: dict[str, tuple[int, dict[str, str]]] = {}

    def tiers(self, family: str) -> int:
        """How many tiers have a say in a family."""
        return len(self._tiers[family])

    # -- of which jobs nobody goes, without looking at their tasks ---------------------------------------------------

    def _spares_of(self, family: str) -> list[dict[str, Spares]]:
        """By tier and plugin, what says that a job loses no task; plugins that cannot tell are absent."""
        told = {name: spares for tier in self._ssn.named(f"never_{family}") for name, spares in tier}
        return [{name: told[name] for name, _ in tier if name in told} for tier in self._tiers[family]]

    def hosts(self, family: str) -> frozenset[int] | None:
        """The only rows on which the family may offer anybody as things are; None: it may anywhere."""
        if not all(self._spares.get(family, ({},))):
            return None
        moves, found = self._hosts.get(family, (-1, frozenset[int]()))
        if moves != self._ssn.moves:
            jobs = (job for job in self._ssn.jobs.values() if any(job.by_status[status] for status in HELD))
            giving = (job for job in jobs if self.gives(family, job))
            found = frozenset(task.node for job in giving for status in HELD for task in job.by_status[status].values())
            self._hosts[family] = (self._ssn.moves, found)
        return found

    def gives(self, family: str, job: JobInfo) -> bool:
        """Whether the family may offer a task of the job as things are: in some tier no plugin is known to spare it."""
        return any(not any(spares(job) for spares in tier.values()) for tier in self._spares[family])

    def surely_spared_by(self, family: str, job: JobInfo) -> str:
        """The plugin that `spared_by` names for each task of a job that gives none; empty where that is not known."""
        moves, found = self._sure.get(family, (-1, {}))
        if moves != self._ssn.moves:
            moves, found = self._sure[family] = (self._ssn.moves, {})
        rule = found.get(job.uid)
        if rule is None:
            rule = found[job.uid] = self._first_rule(family, job)
        return rule

    def _first_rule(self, family: str, job: JobInfo) -> str:
        tiers = self._spares.get(family)
        if not tiers:
            return ""
        first, _ = self._tiers[family][0][0]
        return first if first in tiers[0] and tiers[0][first](job) and not self.gives(family, job) else ""

    # -- who -----------------------------------------------------------------------------------------------------------

    def preemptable(self, preemptor: TaskInfo, candidates: Sequence[TaskInfo]) -> Offer:
        """Victims in the preemptor's own queue."""
        return self._combined("preemptable", candidates, lambda victims: victims(preemptor, candidates))

    def reclaimable(self, reclaimer: TaskInfo, candidates: Sequence[TaskInfo]) -> Offer:
        """Victims in other queues."""
        return self._combined("reclaimable", candidates, lambda victims: victims(reclaimer, candidates))

    def unified(self, kind: EvictionKind, job: JobInfo, candidates: Sequence[TaskInfo]) -> Offer:
        """Victims for a whole gang, whatever becomes of their own."""
        return self._combined("unified_evictable", candidates, lambda victims: victims(kind, job, candidates))

    def _combined(self, family: str, candidates: Sequence[TaskInfo], ask: Ask) -> Offer:
        """The intersection of what a tier's plugins offer, abstentions apart; the first tier with any victim decides.

        An empty answer or an empty intersection is no decision of its tier. (Volcano lets a third plugin's answer
        stand after two disjoint ones; no victims are no victims here.)
        """
        for tier in self._tiers[family]:
            chosen: set[str] | None = None
            names = []
            for name, victims in tier:
                answer = ask(victims)
                if answer is None:
                    continue
                offered = {task.uid for task in answer}
                chosen = offered if chosen is None else chosen & offered
                if not chosen:
                    break
                names.append(name)
            if chosen:
                return Offer([task for task in candidates if task.uid in chosen], "+".join(names))
        return Offer([])

    def spared_by(self, family: str, candidates: Sequence[TaskInfo], ask: Ask) -> dict[str, str]:
        """By the uid of a candidate that some plugin does not offer, the first such plugin in the order of tiers."""
        found: dict[str, str] = {}
        for tier in self._tiers[family]:
            for name, victims in tier:
                answer = ask(victims)
                if answer is not None:
                    offered = {task.uid for task in answer}
                    found |= {task.uid: found.get(task.uid, name) for task in candidates if task.uid not in offered}
        return found

    def victim_tasks(self, running: Sequence[TaskInfo]) -> dict[str, tuple[TaskInfo, str]]:
        """Tasks that should go though nobody needs their room, and who named them: the first tier that names any.

        Limits then narrow them. (In Volcano a disruption budget names every task that it would spare nobody for.)
        """
        found: dict[str, tuple[TaskInfo, str]] = {}
        for tier in self._tiers["victim_tasks"]:
            for name, victims in tier:
                for task in victims(running):
                    found.setdefault(task.uid, (task, name))
            if found:
                break
        for tier in self._tiers["victim_limit"]:
            for _, limit in tier:
                found = {task.uid: found[task.uid] for task in limit([task for task, _ in found.values()])}
        return found

    # -- in which order ------------------------------------------------------------------------------------------------

    def in_order(self, tasks: Sequence[TaskInfo], queue: QueueInfo | None) -> list[TaskInfo]:
        """Tasks in the order in which they should go, when room is needed in `queue` (None: victims of one queue only).

        Pods of no job first; then by queue, then the last job first, and of a job its last task first.
        """
        jobs: dict[str, Any] = {}
        return sorted(tasks, key=lambda task: self._key(task, queue, jobs))

    def _key(self, task: TaskInfo, queue: QueueInfo | None, jobs: dict[str, Any]) -> tuple[Any, ...]:
        job = task.job
        if job is None:
            return (False, task.uid)
        found = jobs.get(job.uid)
        if found is None:
            theirs = self._ssn.queues[job.queue] if queue is not None else None
            place = self.queue_key(theirs, queue) if theirs is not None and queue is not None else ()
            found = jobs[job.uid] = (*place, Backwards(self._ssn.job_key(job)))
        return (True, *found, Backwards(self._ssn.task_key(task)))

    def queue_key(self, theirs: QueueInfo, preemptor: QueueInfo) -> tuple[Any, ...]:
        """Where a queue stands among those that may lose tasks to `preemptor`: else the last in queue order first."""
        return (*(key(theirs, preemptor) for key in self._queue_keys), Backwards(self._ssn.queue_key(theirs)))
