"""What the manager asks of a controller, and what controllers share."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Protocol

from cluster.clock import Clock
from cluster.informer import Change, Informer
from cluster.port import Cluster

FIELD_MANAGER = "basalt-controller"
A_PASS = 500
"""Pods made or deleted in one pass: what happens meanwhile, a Command, a deletion, a pod that ends, is seen by the next."""
SOON = 0.05
"""Seconds before deleting goes on: by then the local copy shows which pods are going already."""


@dataclass(frozen=True, slots=True)
class Context:
    """What every controller works with: the cluster to write to, the local copy to read from, and the time."""

    cluster: Cluster
    informer: Informer
    clock: Clock


class Controller(Protocol):
    """One reconciler. Keys are `namespace/name` of its own kind."""

    name: str

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
