"""What a plugin is, and what passes between plugins and a session.

A plugin is made new for every session: whatever it wants to keep must come out of the model again. It registers its
functions in `on_session_open` (`Session.add_…`); switches and tiers of the configuration decide which of them are
asked, and in which order.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import IntEnum, StrEnum
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, TypeVar

from scheduler.framework.explain import Verdict
from scheduler.model.jobs import JobInfo
from scheduler.model.nodes import Block
from scheduler.model.plain import PlainNode
from scheduler.model.queues import QueueInfo
from scheduler.model.resources import Floats, Ints, Mask
from scheduler.model.subjobs import SubJob
from scheduler.model.tasks import TaskClass, TaskInfo
from scheduler.topology.hypernodes import Domain

if TYPE_CHECKING:
    from scheduler.conf import Arguments
    from scheduler.framework.session import Session

T = TypeVar("T")

MAX_NODE_SCORE = 100
UNLIMITED = 1 << 62
"""What `Room` answers when a queue sets no limit."""


class Vote(IntEnum):
    """An answer where a plugin may also abstain."""

    REJECT = -1
    ABSTAIN = 0
    PERMIT = 1


@dataclass(slots=True)
class Event:
    """Tasks of one job and one class that were just given a node (allocated or pipelined), or lost it.

    `total` is the sum of their requests. Counters of job and nodes are already up to date when handlers hear of it. A
    handler may refuse what they were given (`refused`): then it is taken back.
    """

    job: JobInfo | None
    tasks: Sequence[TaskInfo]
    total: Ints
    refused: bool = False

    @property
    def cls(self) -> TaskClass:
        """The class of the tasks."""
        return self.tasks[0].cls


Key = Any
"""A sort key: anything with `<` against keys of the same function; smaller goes first."""

JobKey = Callable[[JobInfo], Key]
QueueKey = Callable[[QueueInfo], Key]
TaskKey = Callable[[TaskInfo], Key]

Check = Callable[[TaskClass, Block], Mask]
"""(class, block) → for each row of the block whether a task of the class may run there."""
TaskCheck = Callable[[TaskInfo, Block], Mask]
"""The same for one task, where the answer depends on more than its class and the node's own state."""
Score = Callable[[TaskClass, Block], Floats | Ints]
"""(class, block) → weighted score of each row; larger is better."""
LoneCheck = Callable[[PlainNode], bool]
"""What a `Check` answers for one node."""
LoneScore = Callable[[PlainNode], float]
"""What a `Score` gives to one node that has room, to the last bit."""
TaskScore = Callable[[TaskInfo, Block], Floats | Ints]
"""The same for one task; the block holds all its candidates, so that it can normalise over them."""
Scale = Callable[[Ints, int, int], Floats | Ints]
"""(raw values, their minimum, their maximum over the candidates) → weighted score."""

Answer = Vote | Verdict
"""PERMIT, ABSTAIN, or the reason of a refusal."""
Room = Callable[[QueueInfo, TaskClass], int]
"""How many further tasks of the class the queue takes now, counted exactly as if they came one by one."""
Explain = Callable[[QueueInfo, TaskClass], Verdict]
"""Why `Room` answered 0."""
Victims = Callable[[TaskInfo, Sequence[TaskInfo]], Sequence[TaskInfo] | None]
Spares = Callable[[JobInfo], bool]
"""(preemptor, candidates in a fixed order) → victims among them, or None to abstain."""


class EvictionKind(StrEnum):
    """Whether room is made within a queue or taken from others."""

    PREEMPT = "preempt"
    RECLAIM = "reclaim"


Unified = Callable[[EvictionKind, JobInfo, Sequence[TaskInfo]], Sequence[TaskInfo] | None]
"""(kind, the job that needs room, candidates) → those that may go, gangs apart; None to abstain."""
VictimTasks = Callable[[Sequence[TaskInfo]], Sequence[TaskInfo]]
"""Running tasks → those that should go though nobody in particular needs their room."""
VictimQueueKey = Callable[[QueueInfo, QueueInfo], Key]
"""(a victim's queue, the preemptor's queue) → key; victims of the smaller key go first."""
SubJobKey = Callable[[SubJob], Key]
DomainScore = Callable[[SubJob, Sequence[Domain]], Sequence[float]]
"""(part of a gang, network domains) → score of each; larger is better."""
Gradient = Callable[[T, Domain, bool], list[list[Domain]]]
"""(gang or part, the domain to stay in, whether room is to be made by evicting) → domains to try, row by row."""
Handler = Callable[[Event], None]


class Plugin(Protocol):
    """One scheduler plugin. The constructor reads its arguments and raises `ConfError` for what does not fit."""

    name: ClassVar[str]

    def __init__(self, arguments: Arguments) -> None: ...

    def on_session_open(self, ssn: Session) -> None:
        """Compute what the session needs and register functions."""
        ...

    def on_session_close(self, ssn: Session) -> None:
        """Write what must outlive the session into it (verdicts, queue shares)."""
        ...
