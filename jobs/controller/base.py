"""What the manager asks of a controller, and what controllers share."""

from __future__ import annotations

import threading
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Protocol

from cluster.clock import Clock
from cluster.informer import Change, Informer
from cluster.kinds import Kind
from cluster.port import Cluster
from cluster.rests import Rests
from jobs.controller.restraint import Restraint

A_PASS = 500
"""Pods made or deleted in one pass: what happens meanwhile, a Command, a deletion, a pod that ends, is seen by the next."""
REST = 1.0
"""Seconds that mere counts rest over an API server: what a job costs it goes by this, not by its pods."""
SOON = 0.05
"""Seconds before deleting goes on: by then the local copy shows which pods are going already."""


class Refusals:
    """How often in a row the cluster refused what a key asks for, in this process."""

    def __init__(self) -> None:
        self._counts: dict[str, int] = {}
        self._lock = threading.Lock()

    def add(self, key: str) -> None:
        """One more."""
        with self._lock:
            self._counts[key] = self._counts.get(key, 0) + 1

    def of(self, key: str) -> int:
        """How many there were."""
        return self._counts.get(key, 0)

    def clear(self, key: str) -> None:
        """It went well, or is no more."""
        if key in self._counts:
            with self._lock:
                self._counts.pop(key, None)


@dataclass(frozen=True, slots=True)
class Context:
    """What every controller works with: the cluster to write to, the local copy to read from, and the time.

    `rests` are the pauses before a status is written of which only counts changed, `restraint` those after creations that
    were refused.
    """

    cluster: Cluster
    informer: Informer
    clock: Clock
    refusals: Refusals = field(default_factory=Refusals)
    rests: Rests = field(default_factory=Rests)
    restraint: Restraint = field(default_factory=Restraint)


class Controller(Protocol):
    """One reconciler. Keys are `namespace/name` of its own kind; `kinds` are those whose changes it is told of."""

    name: str
    kinds: tuple[Kind, ...]

    def start(self) -> None:
        """What must be there before anything else; called once, after the local copy is complete."""
        ...

    def keys(self, change: Change) -> Iterable[str]:
        """The keys that a change concerns. Called in the order of the changes; must not block."""
        ...

    def reconcile(self, key: str) -> float | None:
        """Bring one key nearer to what it should be; in how many seconds to look again, None: when something changes.

        Raises ApiError (the key is tried again later).
        """
        ...

    def failed(self, key: str, error: Exception, failures: int) -> None:
        """A reconcile raised, for the `failures`-th time in a row; the place to tell people."""
        ...
