"""What is counted while a simulation runs: integrals over time, the course of the load, and what became of each job."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any

SAMPLES = 512


@dataclass(slots=True)
class Outcome:
    """What became of one job. Times in seconds of the workload's clock; `held` is GPU-seconds (CPU-seconds without GPUs).

    `first_pod`: when its first pod ran; `start`: when enough of them did for the first time. `worked` is what it held while it
    made progress, `lost` the part of that which had to be done again; `preempted` how many of its pods were evicted, `failed`
    how many a node took along, `gave_up` how many stopped waiting for their peers; `starts` counts its tries.
    """

    name: str
    queue: str
    size: float
    pods: int
    arrival: float
    duration: float
    first_pod: float | None = None
    start: float | None = None
    finish: float | None = None
    held: float = 0.0
    worked: float = 0.0
    lost: float = 0.0
    preempted: int = 0
    failed: int = 0
    gave_up: int = 0
    starts: int = 0

    def as_dict(self) -> dict[str, Any]:
        """JSON-ready."""
        return asdict(self)


@dataclass(slots=True)
class Sample:
    """The load at one moment: amounts of the main resource, and how many jobs wait and run."""

    at: float
    used: float
    capacity: float
    waiting: int
    running: int
    asked: float
    stranded: float


@dataclass(slots=True)
class Course:
    """Samples over time, at most SAMPLES: when they are too many every second one goes and the step doubles."""

    step: float = 1.0
    samples: list[Sample] = field(default_factory=list)

    def due(self, at: float) -> bool:
        """Whether the next sample should be taken now."""
        return not self.samples or at >= self.samples[-1].at + self.step

    def add(self, sample: Sample) -> None:
        """Take a sample in."""
        self.samples.append(sample)
        if len(self.samples) >= SAMPLES:
            del self.samples[1::2]
            self.step = max(2 * self.step, 2 * (self.samples[-1].at - self.samples[0].at) / SAMPLES)


@dataclass(slots=True)
class Totals:
    """Amounts of the main resource in smallest units, their integrals over time, and counters.

    `deadlocks`: how often nothing got on while pods held nodes and waited for peers, `locked` for how many seconds.
    """

    at: float = 0.0
    used: int = 0
    capacity: int = 0
    used_area: float = 0.0
    capacity_area: float = 0.0
    cycles: int = 0
    events: int = 0
    bound: int = 0
    evicted: int = 0
    deadlocks: int = 0
    locked: float = 0.0

    def pass_to(self, at: float) -> None:
        """Time goes on."""
        step = at - self.at
        if step > 0:
            self.used_area += self.used * step
            self.capacity_area += self.capacity * step
            self.at = at
