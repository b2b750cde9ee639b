"""How to simulate."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf, isfinite

from cluster.said import said


@dataclass(frozen=True, slots=True)
class Options:
    """Times in seconds.

    `period` joins events; `grace` passes between an eviction and the end of a pod; `patience` is how long a pod of a job whose
    pods are scheduled apart waits for its peers before it gives up its node (0: for ever), `pause` how long it then stays away
    (drawn between 0 and that). `mtbf` and `repair`: a node fails after, and is away for, so long on average (0: never).
    `tick`: with plugins that decide by the clock, a cycle runs at least so often while jobs wait. `until` ends the simulation.
    """

    seed: int = 0
    period: float = 1.0
    grace: float = 0.0
    patience: float = 0.0
    pause: float = 0.0
    mtbf: float = 0.0
    repair: float = 3600.0
    tick: float = 60.0
    until: float = inf

    def __post_init__(self) -> None:
        for name in ("period", "grace", "patience", "pause", "mtbf", "repair", "tick"):
            value = getattr(self, name)
            if not (isfinite(value) and value >= 0):
                raise ValueError(said("%(name)s is a number of seconds from 0 on, not %(value)s", name=name, value=value))
        if not self.period > 0:
            raise ValueError(said("period is a number of seconds above 0"))
