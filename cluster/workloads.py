"""What runs on the nodes, as the rooms above know it. This room knows no jobs, so the answers are handed in.

The jobs app registers its own at start (`use`); without one every GPU is free and every node empty.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Protocol


@dataclass(frozen=True, slots=True)
class Share:
    """A part of a card that a pod holds: the card by its UUID or its index, MiB, percent of its cores, the MIG instance."""

    card: str
    memory: int
    cores: int = 0
    instance: str = ""


@dataclass(frozen=True, slots=True)
class Holder:
    """One pod's hold on GPUs of a node: `gpus` whole, `shares` in part, or `reserved`: how many it will get when others end.

    Who it is (job, queue, owner, task, since when) is empty where the viewer may not know.
    """

    node: str
    gpus: tuple[int, ...]
    job_uid: str
    job: str
    queue: str
    owner: str
    releasing: bool
    task: str = ""
    index: int = 0
    since: datetime | None = None
    shares: tuple[Share, ...] = ()
    reserved: int = 0


@dataclass(frozen=True, slots=True)
class Usage:
    """What the pods of one node ask together, in smallest units, and how many they are."""

    pods: int = 0
    gpus: int = 0
    requests: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class PodOnNode:
    """A pod as a node's page lists it."""

    namespace: str
    name: str
    job_uid: str
    job: str
    queue: str
    phase: str
    mark: str
    gpus: tuple[int, ...]
    requests: Mapping[str, int]
    started_at: datetime | None


class Workloads(Protocol):
    """Pods that occupy nodes now, seen by one user. Each answer takes a constant number of queries."""

    def holders(self, user: Any, nodes: Collection[str] | None = None) -> list[Holder]:
        """Who holds which GPUs; `nodes` None means everywhere."""
        ...

    def usage(self, nodes: Collection[str] | None = None) -> dict[str, Usage]:
        """Sums by node name; an empty node is absent."""
        ...

    def pods(self, user: Any, node: str) -> list[PodOnNode]:
        """The pods on one node, by name."""
        ...

    def held(self, resource: str) -> dict[tuple[str, str], int]:
        """What the pods of each queue hold of a resource on each node, by (queue, node), in smallest units."""
        ...


class _Nothing:
    def holders(self, user: Any, nodes: Collection[str] | None = None) -> list[Holder]:
        return []

    def usage(self, nodes: Collection[str] | None = None) -> dict[str, Usage]:
        return {}

    def pods(self, user: Any, node: str) -> list[PodOnNode]:
        return []

    def held(self, resource: str) -> dict[tuple[str, str], int]:
        return {}


_current: Workloads = _Nothing()


def use(workloads: Workloads) -> None:
    """Register who answers."""
    global _current
    _current = workloads


def current() -> Workloads:
    """Who answers."""
    return _current
