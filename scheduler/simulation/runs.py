"""A job on its way: which of its pods run, how far its work is, and what it loses."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from scheduler.simulation.accounts import Outcome
from scheduler.simulation.workload import Job


@dataclass(slots=True)
class Run:
    """The present state of a job that has arrived. Times are seconds of the workload's clock.

    `pods` are by uid; `up` those that run, with what each holds of the main resource in smallest
    units (`scale` in one); `done` the seconds of work
    up to `since`, to which `rate` a second is added. `version` tells an outdated event of its end from the one in force.
    """

    index: int
    job: Job
    outcome: Outcome
    duration: float
    scale: int
    pods: dict[str, str] = field(default_factory=dict)
    up: dict[str, int] = field(default_factory=dict)
    done: float = 0.0
    since: float = 0.0
    rate: float = 0.0
    version: int = 0
    admitted: bool = False

    def settle(self, at: float) -> None:
        """Count the work and the holding up to a moment."""
        step = at - self.since
        if step > 0:
            self.done = min(self.duration, self.done + self.rate * step)
            self.outcome.worked += self.rate * step * self.outcome.size
            self.outcome.held += sum(self.up.values()) * step / self.scale
        self.since = max(self.since, at)

    def pace(self) -> float:
        """Progress a second: none below the minimum, else the share of the pods that run."""
        return len(self.up) / self.job.pods if len(self.up) >= self.job.least else 0.0

    @property
    def remaining(self) -> float:
        """Seconds until it ends at its present rate, which is above 0."""
        return max(0.0, self.duration - self.done) / self.rate

    def fall_back(self) -> float:
        """Lose the work since its last checkpoint; the seconds of it."""
        saves = self.job.saves
        kept = self.done // saves * saves if saves > 0 else 0.0
        lost, self.done = self.done - kept, kept
        return lost

    def state(self) -> dict[str, Any]:
        """JSON-ready."""
        return {
            "index": self.index, "outcome": self.outcome.as_dict(), "duration": self.duration, "scale": self.scale,
            "pods": dict(self.pods), "up": dict(self.up), "done": self.done, "since": self.since, "rate": self.rate,
            "version": self.version, "admitted": self.admitted,
        }  # fmt: skip

    @classmethod
    def of(cls, job: Job, state: dict[str, Any]) -> Run:
        """From a state that was kept."""
        return cls(**{**state, "job": job, "outcome": Outcome(**state["outcome"])})
