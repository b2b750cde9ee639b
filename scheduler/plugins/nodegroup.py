"""nodegroup: queues keep to the groups of nodes that they are tied to."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import orjson

from cluster import objects
from cluster.said import said
from scheduler.framework.explain import Code, Stage, Verdict
from scheduler.framework.plugin import MAX_NODE_SCORE, Event
from scheduler.framework.registry import plugin
from scheduler.model import build
from scheduler.model.nodes import Block
from scheduler.model.queues import QueueInfo
from scheduler.model.resources import Amounts, Dimensions, Floats, Ints, Mask, Rows
from scheduler.model.tasks import ALLOCATED_SET, NO_NODE, TaskInfo

if TYPE_CHECKING:
    from scheduler.conf import Arguments
    from scheduler.framework.session import Session

GROUP = "volcano.sh/nodegroup-name"
LIMITS = "volcano.sh/nodegroup-resource-limits"
_NO_GROUP = ""


@dataclass(slots=True)
class Affinity:
    """The groups that a queue names, as required, preferred (in order), avoided and rather avoided."""

    required: frozenset[str] = frozenset()
    preferred: tuple[str, ...] = ()
    refused: frozenset[str] = frozenset()
    disliked: frozenset[str] = frozenset()

    def __bool__(self) -> bool:
        return bool(self.required or self.preferred or self.refused or self.disliked)

    def allows(self, group: str) -> bool:
        """Whether nodes of a group take the queue's tasks."""
        if group in self.disliked:
            return True
        return group not in self.refused and (group in self.required or group in self.preferred)

    def score(self, group: str, ordered: bool) -> float:
        """How well a group suits; the groups preferred first are better when `ordered`."""
        if group in self.disliked:
            return -1.0
        score = float(MAX_NODE_SCORE) if group in self.required else 0.0
        if group in self.preferred:
            count = len(self.preferred)
            score += MAX_NODE_SCORE / 2 * ((count - self.preferred.index(group)) / count if ordered else 1)
        return score


@dataclass(slots=True)
class _Tie:
    """One queue in this session: its affinity (None: says nothing), and limits and holdings by group.

    `broken` names the part of the queue that does not make sense.
    """

    affinity: Affinity | None
    limits: dict[str, Amounts] = field(default_factory=dict)
    held: dict[str, Ints] = field(default_factory=dict)
    broken: str = ""


@plugin
class NodeGroup:
    """Nodes belong to groups by their label `volcano.sh/nodegroup-name`, queues to groups by `spec.affinity`.

    Arguments: `strict` (true): nodes without a group take nobody; else they take queues that name no group.
    `enablePreferredOrder` (false): the groups preferred first score more. With enableHierarchy a queue without an affinity
    has its nearest ancestor's.
    """

    name: ClassVar[str] = "nodegroup"
    _ssn: Session
    _ties: dict[str, _Tie]
    _groups: list[str]
    _of_row: Rows

    def __init__(self, arguments: Arguments) -> None:
        self._strict = arguments.boolean("strict", True)
        self._ordered = arguments.boolean("enablePreferredOrder", False)
        self._where: dict[str, str] = {}

    def on_session_open(self, ssn: Session) -> None:
        self._ssn = ssn
        self._groups, self._of_row = _groups_of(ssn)
        self._ties = {name: _tie(queue, ssn.dims) for name, queue in ssn.queues.items()}
        if ssn.is_hierarchical(self.name):
            self._inherit(ssn.queues)
        self._count()
        ssn.add_pre_predicate(self.name, self.sound)
        ssn.add_task_predicate(self.name, "node_group", self.fits, lambda task: task.job is not None, resolvable=False)
        ssn.add_task_score(self.name, self.score, lambda task: bool(self._affinity(task)))
        ssn.add_handlers(self._allocated, self._deallocated)

    def on_session_close(self, ssn: Session) -> None:
        """Nothing to write."""

    def _inherit(self, queues: Mapping[str, QueueInfo]) -> None:
        own = {name: tie.affinity for name, tie in self._ties.items()}
        for name, tie in self._ties.items():
            seen = {name}
            while own[name] is None and (name := queues[name].parent) in own and name not in seen:
                seen.add(name)
            tie.affinity = own.get(name)

    def _count(self) -> None:
        """What queues with limits hold in each group."""
        for name, tie in self._ties.items():
            if tie.limits:
                for job in self._ssn.queues[name].jobs.values():
                    for status in ALLOCATED_SET:
                        for task in job.by_status[status].values():
                            self._book(task, 1)

    # -- nodes -----------------------------------------------------------------------------------------------------------

    def sound(self, task: TaskInfo) -> Verdict | None:
        """A queue that cannot be read places nothing."""
        tie = self._tie_of(task)
        if tie is None or not tie.broken or task.job is None:
            return None
        return Verdict(Stage.QUEUE_LIMIT, Code.QUEUE_BROKEN, task.job.queue, resource=tie.broken)

    def fits(self, task: TaskInfo, at: Block) -> Mask:
        """The rows whose group takes the task's queue, and has room below the queue's limit there."""
        tie = self._tie_of(task)
        allowed = [self._takes(tie, task, group) for group in self._groups]
        mask: Mask = np.array(allowed, np.bool_)[self._of_row[at.rows]]
        return mask

    def _takes(self, tie: _Tie | None, task: TaskInfo, group: str) -> bool:
        affinity = tie.affinity if tie is not None else None
        if group == _NO_GROUP:
            return not self._strict and not affinity
        if tie is None or not affinity or not affinity.allows(group):
            return False
        limit = tie.limits.get(group)
        if limit is None:
            return True
        return not bool(((tie.held.get(group, 0) + task.request > limit.values) & limit.present).any())

    def score(self, task: TaskInfo, at: Block) -> Floats:
        """By group."""
        affinity = self._affinity(task)
        by_group = [affinity.score(group, self._ordered) if affinity and group != _NO_GROUP else 0.0 for group in self._groups]
        scores: Floats = np.array(by_group)[self._of_row[at.rows]]
        return scores

    def _affinity(self, task: TaskInfo) -> Affinity | None:
        tie = self._tie_of(task)
        return tie.affinity if tie is not None else None

    def _tie_of(self, task: TaskInfo) -> _Tie | None:
        return self._ties.get(task.job.queue) if task.job is not None else None

    # -- events ----------------------------------------------------------------------------------------------------------

    def _allocated(self, event: Event) -> None:
        for task in event.tasks:
            self._book(task, 1)

    def _deallocated(self, event: Event) -> None:
        for task in event.tasks:
            self._book(task, -1)

    def _book(self, task: TaskInfo, times: int) -> None:
        """Count a task in its group; one that was just taken off its node is counted off where it had been."""
        tie = self._tie_of(task)
        if tie is None or not tie.limits:
            return
        if task.node != NO_NODE:
            self._where[task.uid] = self._groups[int(self._of_row[task.node])]
        group = self._where[task.uid]
        tie.held[group] = tie.held.get(group, 0) + task.request * times


def _groups_of(ssn: Session) -> tuple[list[str], Rows]:
    """The groups by number, and each row's number; remembered while labels stay."""
    known = ssn.memo.get("nodegroup")
    if known is None or known[0] != ssn.nodes.static_version:
        names = [labels.get(GROUP, _NO_GROUP) for labels in ssn.nodes.labels]
        groups = [_NO_GROUP, *sorted(set(names) - {_NO_GROUP})]
        number = {group: i for i, group in enumerate(groups)}
        known = ssn.memo["nodegroup"] = (ssn.nodes.static_version, groups, np.array([number[name] for name in names], np.intp))
    return known[1], known[2]


def _tie(queue: QueueInfo, dims: Dimensions) -> _Tie:
    tie = _Tie(None)
    affinity = (queue.obj.get("spec") or {}).get("affinity")
    try:
        tie.affinity = None if affinity is None else _read(queue.obj["spec"])
    except ValueError:
        tie.broken = "spec.affinity"
    try:
        tie.limits = _limits(queue.annotations.get(LIMITS) or "{}", dims)
    except ValueError:
        tie.broken = LIMITS
    return tie


def _limits(text: str, dims: Dimensions) -> dict[str, Amounts]:
    """Group to resource list, as JSON. What nobody asks for limits nothing. Raises ValueError."""
    found = {}
    lists = orjson.loads(text)
    if not isinstance(lists, Mapping) or not all(isinstance(resources, Mapping) for resources in lists.values()):
        raise ValueError(said("limits must be a mapping of groups to resources"))
    for group, resources in lists.items():
        known = {name: amount for name, amount in objects.resource_units(resources).items() if name in dims.index}
        found[group] = dims.amounts(known)
    return found


def _read(spec: Mapping[str, Any]) -> Affinity:
    """`spec.affinity`. Raises ValueError."""
    affinity = build.section(spec, "affinity")
    near, far = build.section(affinity, "nodeGroupAffinity"), build.section(affinity, "nodeGroupAntiAffinity")
    required, preferred = "requiredDuringSchedulingIgnoredDuringExecution", "preferredDuringSchedulingIgnoredDuringExecution"
    return Affinity(
        frozenset(_names(near, required)), tuple(dict.fromkeys(_names(near, preferred))),
        frozenset(_names(far, required)), frozenset(_names(far, preferred)),
    )  # fmt: skip


def _names(groups: Mapping[str, Any], which: str) -> list[str]:
    found = groups.get(which) or []
    if not isinstance(found, list) or not all(isinstance(name, str) for name in found):
        raise ValueError(said("%(which)s must be a list of groups", which=which))
    return found
