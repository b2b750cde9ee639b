"""One node in plain numbers: where a single row is asked about, Python's own are several times quicker than arrays."""

from __future__ import annotations

from dataclasses import dataclass

Units = list[int]


@dataclass(frozen=True, slots=True)
class PlainNode:
    """The amounts of one row of a `NodeTable` as they are now, by dimension; only to read."""

    allocatable: Units
    used: Units
    releasing: Units
    pipelined: Units
    listed: Units
    nonzero: Units
    pod_count: int
    gpu_free: int
    gpu_slots: bool

    @property
    def free_gpus(self) -> int:
        """Whole GPUs that are healthy and held by nobody."""
        return self.gpu_free.bit_count()
