"""Two courses of the same cluster side by side: what a change does to everybody else."""

from __future__ import annotations

from dataclasses import dataclass, field

from scheduler.framework.record import EvictionRecord
from scheduler.whatif.sandbox import Played


@dataclass(slots=True)
class Comparison:
    """Jobs by `namespace/name`. `starts` start only with the change, `delayed` only without it; `evicted` go only with it."""

    starts: list[str] = field(default_factory=list)
    delayed: list[str] = field(default_factory=list)
    evicted: list[EvictionRecord] = field(default_factory=list)


def compare(before: Played, after: Played) -> Comparison:
    """What is different after a change."""
    known = {each.victim_uid for each in before.evictions}
    return Comparison(
        starts=[uid for uid in after.binds if uid in after.started and uid not in before.started],
        delayed=[uid for uid in before.binds if uid in before.started and uid not in after.started],
        evicted=[each for each in after.evictions if each.victim_uid not in known],
    )
