"""What is measured of a simulated cluster: its main resource, how large jobs are in it, what is free and what is stranded."""

from __future__ import annotations

from collections import Counter

import numpy as np

from cluster import objects
from scheduler.model.resources import PODS, Ints
from scheduler.simulation.workload import GPU_SHARE, Job, Workload
from scheduler.simulation.world import World

MOST_SHAPES = 64
"""Kinds of pods by which fragmentation is measured: the commonest."""


class Gauges:
    """`main` is the resource that is measured: GPUs where there are any, else CPUs; `scale` its smallest units in one."""

    def __init__(self, workload: Workload, world: World) -> None:
        self._world = world
        total = world.cache.dims.units(world.cache.nodes.total().values)
        gpus = [name for name in sorted(total) if name == GPU_SHARE or objects.is_gpu(name)]
        self.main = max(gpus, key=lambda name: total[name]) if gpus else "cpu"
        self.scale = 1_000_000 if self.main == GPU_SHARE else 1000
        self._place = world.cache.dims.place(self.main)
        self._count_shapes(workload)

    def _count_shapes(self, workload: Workload) -> None:
        counts: Counter[tuple[tuple[str, int], ...]] = Counter()
        units: dict[int, tuple[tuple[str, int], ...]] = {}
        for job in workload.jobs:
            for role in job.roles:
                found = units.setdefault(id(role.requests), tuple(sorted(objects.resource_units(role.requests).items())))
                if dict(found).get(self.main):
                    counts[found] += role.count
        common = sorted(counts.items(), key=lambda item: (-item[1], item[0]))[:MOST_SHAPES]
        total = sum(count for _, count in common)
        self._weights = np.array([count / total for _, count in common], np.float64)
        self._shapes = [dict(shape) for shape, _ in common]

    @property
    def unit(self) -> str:
        """What one of the main resource is called."""
        return "CPU" if self.main == "cpu" else "GPU"

    def size(self, job: Job) -> float:
        """How much of the main resource all pods of a job ask."""
        return job.units.get(self.main, 0) / self.scale

    def held(self, uid: str) -> int:
        """How much of it one pod asks, in smallest units."""
        return int(self._world.cache.tasks[uid].cls.request[self._place])

    def capacity(self) -> int:
        """How much of it the ready nodes have, in smallest units."""
        nodes = self._world.cache.nodes
        rows = nodes.live & nodes.ready
        return int(nodes.allocatable[rows][:, self._place].sum())

    def stranded(self) -> float:
        """How much of what is free a pod drawn at random cannot use, on average, because it does not fit where that is.

        It is the measure of Weng et al., "Beware of Fragmentation" (USENIX ATC 2023): the free amount of each node that the
        pod does not fit on, averaged over the kinds of pods by how often they come.
        """
        nodes, dims = self._world.cache.nodes, self._world.cache.dims
        rows = np.flatnonzero(nodes.live & nodes.ready & ~nodes.cordoned)
        if not len(rows) or not len(self._weights):
            return 0.0
        idle: Ints = nodes.allocatable[rows] - nodes.used[rows]
        free = np.maximum(idle[:, self._place], 0).astype(np.float64)
        asks: Ints = np.stack([dims.amounts(shape).values for shape in self._shapes])[:, : nodes.width]
        asks[:, PODS] = 1
        fits = np.ones((len(asks), len(rows)), np.bool_)
        for column in np.flatnonzero(asks.any(axis=0)):
            fits &= asks[:, column, None] <= idle[None, :, column]
        return float(self._weights @ (~fits * free[None, :]).sum(axis=1)) / self.scale
