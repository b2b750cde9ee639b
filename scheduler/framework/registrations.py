"""What plugins may register with a session, and the switch of the configuration that governs each family."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from scheduler.framework import plugin as api
from scheduler.framework.explain import Verdict
from scheduler.framework.plugin import Answer, Handler, Vote
from scheduler.framework.stopwatches import Stopwatches
from scheduler.model.jobs import JobInfo
from scheduler.model.queues import QueueInfo
from scheduler.model.subjobs import SubJob
from scheduler.model.tasks import TaskClass, TaskInfo


@dataclass(frozen=True, slots=True)
class Predicate:
    """One check of nodes by class. `cause` counts refused nodes in verdicts. `static`: depends on static columns only.

    `resolvable`: evicting pods may help, so preemption keeps the node. `alone`: the check of single nodes by a class, if
    it can be asked in plain numbers.
    """

    cause: str
    check: api.Check
    static: bool
    resolvable: bool
    applies: Callable[[TaskClass], bool] | None
    alone: Callable[[TaskClass], api.LoneCheck | None] | None = None


@dataclass(frozen=True, slots=True)
class Room:
    """One check of what nodes have left, beside the amounts: now, and once what is being released is free."""

    cause: str
    now: api.Check
    later: api.Check
    applies: Callable[[TaskClass], bool] | None


@dataclass(frozen=True, slots=True)
class TaskPredicate:
    """One check of nodes by task; asked only of tasks to which it `applies`.

    `now`: the same check before what is being released is gone; None where that makes no difference. `explain` says it
    with numbers when no node is left.
    """

    cause: str
    check: api.TaskCheck
    applies: Callable[[TaskInfo], bool]
    resolvable: bool
    now: api.TaskCheck | None = None
    explain: Callable[[TaskInfo], Verdict | None] | None = None


@dataclass(frozen=True, slots=True)
class NodeScore:
    """A separable score; `static`: depends on static columns only. `alone`: as for a predicate."""

    score: api.Score
    static: bool
    applies: Callable[[TaskClass], bool] | None
    alone: Callable[[TaskClass], api.LoneScore | None] | None = None


@dataclass(frozen=True, slots=True)
class NormalisedScore:
    """A separable raw value that is scaled by its extremes over the candidates."""

    raw: api.Score
    scale: api.Scale
    applies: Callable[[TaskClass], bool] | None


@dataclass(frozen=True, slots=True)
class TaskNodeScore:
    """A score that depends on more than class and node."""

    score: api.TaskScore
    applies: Callable[[TaskInfo], bool]


@dataclass(frozen=True, slots=True)
class Allocatable:
    """A limit on what a queue may take. `gate`: whether it lets one task through its gate, for which it keeps room then."""

    room: api.Room
    explain: api.Explain
    gate: Callable[[QueueInfo, TaskInfo], bool] | None = None


SWITCH_OF: dict[str, str | None] = {
    "job_order": "enableJobOrder", "queue_order": "enableQueueOrder", "task_order": "enableTaskOrder",
    "predicate": "enablePredicate", "task_predicate": "enablePredicate", "pre_predicate": "enablePredicate",
    "node_score": "enableNodeOrder", "normalised_score": "enableNodeOrder", "task_score": "enableNodeOrder",
    "room": "enablePredicate",
    "overused": "enabledOverused", "allocatable": "enabledAllocatable", "preemptive": "enablePreemptive",
    "enqueueable": "enableJobEnqueued", "enqueued": "enableJobEnqueued", "job_valid": None,
    "job_ready": "enableJobReady", "job_pipelined": "enableJobPipelined", "job_starving": "enableJobStarving",
    "preemptable": "enablePreemptable", "reclaimable": "enableReclaimable", "unified_evictable": None,
    "never_preemptable": "enablePreemptable", "never_reclaimable": "enableReclaimable",
    "victim_tasks": "enabledVictim", "victim_limit": "enabledVictim", "victim_queue_order": None,
    "sub_job_order": "enabledSubJobOrder", "namespace_order": "enableNamespaceOrder", "sub_job_ready": "enabledSubJobReady",
    "sub_job_pipelined": "enabledSubJobPipelined", "hyper_node_order": "enabledHyperNodeOrder",
    "hyper_node_gradient_job": "enabledHyperNodeGradient", "hyper_node_gradient_sub_job": "enabledHyperNodeGradient",
}  # fmt: skip
"""Families of functions and the switch that governs each; None: a configured plugin always takes part."""


@dataclass(frozen=True, slots=True)
class Readiness:
    """When a job may be bound, and the least number of tasks that it lacks until then."""

    check: Callable[[JobInfo], bool]
    lacking: Callable[[JobInfo], int] | None


@dataclass(frozen=True, slots=True)
class PartReadiness:
    """The same for a part of a job."""

    check: Callable[[SubJob], bool]
    lacking: Callable[[SubJob], int] | None


class Registrations:
    """What plugins may register. Every function is asked only while the plugin's switch for its family is on.

    `watches` tell what the functions cost; `opening` is the plugin that registers now.
    """

    def __init__(self) -> None:
        self.watches = Stopwatches()
        self.opening = ""
        self._by_family: dict[str, dict[str, list[Any]]] = {family: {} for family in SWITCH_OF}
        self._on_allocate: list[Handler] = []
        self._on_deallocate: list[Handler] = []

    def _add(self, family: str, plugin: str, item: Any) -> None:
        watched = self.watches.watched(plugin, item) if family != "task_order" else item  # asked often, and nothing to speak of
        self._by_family[family].setdefault(plugin, []).append(watched)

    # -- orders: smaller keys first; tiers join them into one tuple ----------------------------------------------------

    def add_job_order(self, plugin: str, key: api.JobKey) -> None:
        """Order of jobs in a queue. The key may change only with the job's own tasks and their status."""
        self._add("job_order", plugin, key)

    def add_queue_order(self, plugin: str, key: api.QueueKey) -> None:
        """Order of queues. The key may change only with the jobs of that queue, unless it is a `turns.Hierarchy`."""
        self._add("queue_order", plugin, key)

    def add_namespace_order(self, plugin: str, key: Callable[[str], api.Key]) -> None:
        """Order of namespaces among those with jobs in one queue, before the order of jobs. The key may change at any time."""
        self._add("namespace_order", plugin, key)

    def add_task_order(self, plugin: str, key: api.TaskKey) -> None:
        """Order of tasks in a job. The key must not change within a session."""
        self._add("task_order", plugin, key)

    # -- nodes: which may, which should --------------------------------------------------------------------------------

    def add_predicate(
        self,
        plugin: str,
        cause: str,
        check: api.Check,
        *,
        static: bool = False,
        resolvable: bool = False,
        applies: Callable[[TaskClass], bool] | None = None,
        alone: Callable[[TaskClass], api.LoneCheck | None] | None = None,
    ) -> None:
        """A check of nodes that depends only on the class and the node's own row (`static`: its static columns only).

        Checks run in the order of registration; a node counts for the first `cause` that refuses it. `alone` gives the
        same check of single nodes, or None where it cannot.
        """
        self._add("predicate", plugin, Predicate(cause, check, static, resolvable, applies, alone))

    def add_room(
        self,
        plugin: str,
        cause: str,
        now: api.Check,
        later: api.Check,
        *,
        applies: Callable[[TaskClass], bool] | None = None,
    ) -> None:
        """What is asked together with the amounts: whether one more fits now, and once releasing tasks are gone.

        Both may depend on the class and on the node's own tasks alone; eviction may help.
        """
        self._add("room", plugin, Room(cause, now, later, applies))

    def add_task_predicate(
        self,
        plugin: str,
        cause: str,
        check: api.TaskCheck,
        applies: Callable[[TaskInfo], bool],
        *,
        resolvable: bool = True,
        now: api.TaskCheck | None = None,
        explain: Callable[[TaskInfo], Verdict | None] | None = None,
    ) -> None:
        """A check that depends on other pods or other nodes too; it is asked for every task by itself, after the others.

        Where pods that leave make a difference, `check` takes them as gone and `now` as there.
        """
        self._add("task_predicate", plugin, TaskPredicate(cause, check, applies, resolvable, now, explain))

    def add_pre_predicate(self, plugin: str, check: Callable[[TaskInfo], Verdict | None]) -> None:
        """A check before any node is looked at; a verdict means that no node can take the task."""
        self._add("pre_predicate", plugin, check)

    def add_node_score(
        self,
        plugin: str,
        score: api.Score,
        *,
        static: bool = False,
        applies: Callable[[TaskClass], bool] | None = None,
        alone: Callable[[TaskClass], api.LoneScore | None] | None = None,
    ) -> None:
        """A separable score (weights applied), summed over plugins. `alone` gives the same for single nodes, if it can."""
        self._add("node_score", plugin, NodeScore(score, static, applies, alone))

    def add_normalised_score(
        self, plugin: str, raw: api.Score, scale: api.Scale, *, applies: Callable[[TaskClass], bool] | None = None
    ) -> None:
        """A raw value by static columns, scaled by its minimum and maximum over the candidates of the moment."""
        self._add("normalised_score", plugin, NormalisedScore(raw, scale, applies))

    def add_task_score(self, plugin: str, score: api.TaskScore, applies: Callable[[TaskInfo], bool]) -> None:
        """A score that depends on other pods or other nodes too."""
        self._add("task_score", plugin, TaskNodeScore(score, applies))

    # -- queues and admission ------------------------------------------------------------------------------------------

    def add_overused(self, plugin: str, check: Callable[[QueueInfo], Verdict | None]) -> None:
        """A verdict drops the queue for this cycle."""
        self._add("overused", plugin, check)

    def add_allocatable(
        self,
        plugin: str,
        room: api.Room,
        explain: api.Explain,
        *,
        gate: Callable[[QueueInfo, TaskInfo], bool] | None = None,
    ) -> None:
        """How many tasks of a class the queue still takes, and why none.

        `gate` is asked of a task that waits for its queue to have room, before anybody looks at nodes for it.
        """
        self._add("allocatable", plugin, Allocatable(room, explain, gate))

    def add_preemptive(self, plugin: str, check: Callable[[QueueInfo, Sequence[TaskInfo]], bool]) -> None:
        """Whether the queue may take by reclaiming, for all of some tasks together."""
        self._add("preemptive", plugin, check)

    def add_enqueueable(self, plugin: str, check: Callable[[JobInfo], Answer]) -> None:
        """Whether a job may be admitted: PERMIT, ABSTAIN, or a Verdict that refuses. It must not change counters."""
        self._add("enqueueable", plugin, check)

    def add_enqueued(self, plugin: str, note: Callable[[JobInfo], None]) -> None:
        """Called when all agreed to a job: charge it now."""
        self._add("enqueued", plugin, note)

    # -- gangs ---------------------------------------------------------------------------------------------------------

    def add_job_valid(self, plugin: str, check: Callable[[JobInfo], Verdict | None]) -> None:
        """A verdict keeps the job out of this cycle."""
        self._add("job_valid", plugin, check)

    def add_job_ready(
        self, plugin: str, check: Callable[[JobInfo], bool], lacking: Callable[[JobInfo], int] | None = None
    ) -> None:
        """Whether what is allocated may be bound. It may depend only on the job's own counts.

        `lacking`: at least so many more tasks must be allocated before `check` can hold; they are placed in one go.
        """
        self._add("job_ready", plugin, Readiness(check, lacking))

    def add_job_pipelined(self, plugin: str, check: Callable[[JobInfo], Vote]) -> None:
        """Whether what is pipelined may keep its reservation for the rest of the cycle."""
        self._add("job_pipelined", plugin, check)

    def add_job_starving(self, plugin: str, check: Callable[[JobInfo], bool]) -> None:
        """Whether the job may make others give way."""
        self._add("job_starving", plugin, check)

    # -- parts of gangs, and the domains where these may run -----------------------------------------------------------

    def add_sub_job_order(self, plugin: str, key: api.SubJobKey) -> None:
        """Order of the parts of a gang."""
        self._add("sub_job_order", plugin, key)

    def add_sub_job_ready(
        self, plugin: str, check: Callable[[SubJob], bool], lacking: Callable[[SubJob], int] | None = None
    ) -> None:
        """As `add_job_ready`, for a part of a gang that has sub-group policies."""
        self._add("sub_job_ready", plugin, PartReadiness(check, lacking))

    def add_sub_job_pipelined(self, plugin: str, check: Callable[[SubJob], Vote]) -> None:
        """As `add_job_pipelined`, for a part of a gang that has sub-group policies."""
        self._add("sub_job_pipelined", plugin, check)

    def add_hyper_node_order(self, plugin: str, score: api.DomainScore) -> None:
        """How good each of some network domains is for a part of a gang, by what is there before it is placed."""
        self._add("hyper_node_order", plugin, score)

    def add_hyper_node_gradients(self, plugin: str, job: api.Gradient[JobInfo], sub_job: api.Gradient[SubJob]) -> None:
        """The domains to try for a gang, and for a part of one, row by row. The first plugin to register is asked."""
        self._add("hyper_node_gradient_job", plugin, job)
        self._add("hyper_node_gradient_sub_job", plugin, sub_job)

    # -- eviction ------------------------------------------------------------------------------------------------------

    def add_preemptable(self, plugin: str, victims: api.Victims, *, spares: api.Spares | None = None) -> None:
        """Which candidates may be evicted for a task of the same queue.

        `spares` says of a job that `victims` offers none of its tasks now, whoever asks: it saves looking at each of them.
        """
        self._add("preemptable", plugin, victims)
        if spares is not None:
            self._add("never_preemptable", plugin, spares)

    def add_reclaimable(self, plugin: str, victims: api.Victims, *, spares: api.Spares | None = None) -> None:
        """Which candidates may be evicted for a task of another queue; `spares` as above."""
        self._add("reclaimable", plugin, victims)
        if spares is not None:
            self._add("never_reclaimable", plugin, spares)

    def add_unified_evictable(self, plugin: str, victims: api.Unified) -> None:
        """Which candidates may be evicted for a whole gang, their own gangs apart."""
        self._add("unified_evictable", plugin, victims)

    def add_victim_tasks(self, plugin: str, victims: api.VictimTasks) -> None:
        """Which running tasks should go by themselves (action shuffle)."""
        self._add("victim_tasks", plugin, victims)

    def add_victim_limit(self, plugin: str, limit: api.VictimTasks) -> None:
        """Which of the tasks that others named may go."""
        self._add("victim_limit", plugin, limit)

    def add_victim_queue_order(self, plugin: str, key: api.VictimQueueKey) -> None:
        """Whose queue loses tasks first."""
        self._add("victim_queue_order", plugin, key)

    # -- events --------------------------------------------------------------------------------------------------------

    def add_handlers(self, allocate: Handler | None = None, deallocate: Handler | None = None) -> None:
        """Hear of tasks that got a node (allocated or pipelined) and of tasks that lost it again. No switch governs it."""
        if allocate is not None:
            self._on_allocate.append(self.watches.watched(self.opening, allocate))
        if deallocate is not None:
            self._on_deallocate.append(self.watches.watched(self.opening, deallocate))
