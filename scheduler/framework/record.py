"""What a cycle did, as data: the record that the portal, metrics and replays read."""

from __future__ import annotations

from dataclasses import dataclass, field

from scheduler.framework.explain import Verdict

Units = dict[str, int]


@dataclass(frozen=True, slots=True)
class QueueShare:
    """A queue's standing at the end of a cycle; amounts in smallest units by resource name.

    `limit` is what it may have at most (its real capability), where there is a limit at all.
    """

    share: float = 0.0
    allocated: Units = field(default_factory=dict)
    deserved: Units = field(default_factory=dict)
    request: Units = field(default_factory=dict)
    inqueue: Units = field(default_factory=dict)
    limit: Units = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class EvictionRecord:
    """One pod that had to give way. Pods and jobs (PodGroups) are `namespace/name`; `freed` in smallest units.

    `rule` names the plugins that allowed it, or that asked for it; `preemptor` and what belongs to it is empty when nobody
    in particular needed the room. `proved`: no smaller set of victims would have done; else none of them could be spared.
    """

    victim: str
    victim_uid: str
    victim_job: str
    victim_queue: str
    node: str
    action: str
    rule: str
    reason: str
    preemptor: str = ""
    preemptor_pod: str = ""
    preemptor_queue: str = ""
    freed: Units = field(default_factory=dict)
    proved: bool = False


@dataclass(frozen=True, slots=True)
class Served:
    """A job (PodGroup) that pods of were given nodes in a cycle: its queue, and when it was created (epoch seconds); how many
    pods, and what they took together."""

    queue: str
    created: float
    pods: int = 0
    taken: Units = field(default_factory=dict)


@dataclass(slots=True)
class CycleRecord:
    """One cycle. `verdicts` holds only PodGroups (`namespace/name`) whose verdict changed; None: no longer waiting.

    `pipelined`: pods for which room is kept that others are still releasing, and the nodes where. `opening` are milliseconds
    until the session stood, `plugins` those of each plugin at its opening and closing, `checking` and `scoring` those spent on
    what nodes pass and are worth; `hooks` are those of each plugin's functions by action. `placed` are the pods (by uid) that
    were given a node, with when they were created; `served` their jobs. `waited`: wall seconds from the first news that the
    cycle took in to its start, None when there were none.
    """

    number: int
    at: float
    milliseconds: float = 0.0
    actions: dict[str, float] = field(default_factory=dict)
    considered: int = 0
    bound: int = 0
    evicted: int = 0
    verdicts: dict[str, Verdict | None] = field(default_factory=dict)
    queues: dict[str, QueueShare] = field(default_factory=dict)
    evictions: list[EvictionRecord] = field(default_factory=list)
    pipelined: dict[str, str] = field(default_factory=dict)
    opening: float = 0.0
    plugins: dict[str, tuple[float, float]] = field(default_factory=dict)
    checking: float = 0.0
    scoring: float = 0.0
    hooks: dict[str, dict[str, float]] = field(default_factory=dict)
    placed: dict[str, float] = field(default_factory=dict)
    served: dict[str, Served] = field(default_factory=dict)
    capacity: Units = field(default_factory=dict)
    inner: frozenset[str] = frozenset()
    waited: float | None = None
