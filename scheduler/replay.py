"""A snapshot's cycle run again: the same objects, configuration and moment give the same decisions.

What a scheduler has decided and the cluster does not say yet (binds on their way) is in no snapshot, nor is what the plugins
tdm and rescheduling remember of when they evicted last. How many pods each rule spares is told by a running scheduler as it
counted a moment ago, so that this is not compared.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field, replace

from cluster import objects
from scheduler.cycle import Cycle
from scheduler.framework.explain import Verdict
from scheduler.snapshot import Offline, Snapshot


@dataclass(slots=True)
class Decisions:
    """What a cycle decided. Pods and jobs are `namespace/name`; `binds` with node and GPU indices, in their order."""

    binds: list[tuple[str, str, str]] = field(default_factory=list)
    evictions: list[tuple[str, str, str, str]] = field(default_factory=list)
    verdicts: dict[str, Verdict] = field(default_factory=dict)
    milliseconds: float = 0.0

    def same(self, other: Decisions) -> bool:
        """Whether both decided alike, however long it took."""
        return (self.binds, self.evictions, self.reasons()) == (other.binds, other.evictions, other.reasons())

    def reasons(self) -> dict[str, Verdict]:
        """The verdicts without how many pods could be evicted and which rules spare them."""
        return {uid: replace(verdict, candidates=0, spared={}) for uid, verdict in self.verdicts.items()}


def decisions(done: Cycle) -> Decisions:
    """A cycle's binds, evictions (victim, node, action, for whom) and verdicts of jobs that wait."""
    return Decisions(
        [(f"{b.namespace}/{b.name}", b.node, b.annotations.get(objects.GPU_INDICES, "")) for b in done.binds],
        [(each.victim, each.node, each.action, each.preemptor) for each in done.record.evictions],
        {uid: verdict for uid, verdict in done.record.verdicts.items() if verdict is not None},
        done.record.milliseconds,
    )


def replay(
    snapshot: Snapshot, conf: str = "", *, cycles: int = 1, scheduler_names: Collection[str] = ("volcano",)
) -> list[Decisions]:
    """Run cycles over a snapshot, the first as it was then; with `conf` by another configuration.

    Raises `scheduler.conf.ConfError`. A verdict is told by the cycle in which it changed.
    """
    if conf:
        snapshot.conf = conf
    offline = Offline(snapshot, now=snapshot.at, scheduler_names=scheduler_names)
    return [decisions(offline.cycle()) for _ in range(cycles)]
