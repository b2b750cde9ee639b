"""Controllers that may not yet make what must be there try again, ever later, and then work as if nothing had been."""

from __future__ import annotations

from typing import Any

import pytest

from cluster.clock import SystemClock
from cluster.embedded.store import EmbeddedCluster
from cluster.errors import Unavailable
from cluster.kinds import NODE, QUEUE
from cluster.patience import Patience
from jobs.controller import ControllerManager
from testbed.stack import at_work, eventually
from tests.jobs.world import SCHEDULERS, all_rules


class Guarded(EmbeddedCluster):
    """Nobody answers for queues until `open`; counts who tried to make one."""

    def __init__(self) -> None:
        super().__init__(clock=SystemClock(), admission=all_rules())
        self.tried, self.open = 0, False

    def create(self, kind: Any, obj: Any, **more: Any) -> Any:
        if kind == QUEUE and not self.open:
            self.tried += 1
            raise Unavailable("failed calling webhook: connection refused")
        return super().create(kind, obj, **more)


def add_nodes(cluster: EmbeddedCluster, manager: ControllerManager, *names: str) -> None:
    """Changes, one after the other, each of which wakes the controllers."""
    for name in names:
        cluster.create(NODE, {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}})
        eventually(lambda name=name: manager.informer.get(NODE, f"/{name}"))


def test_no_change_makes_them_try_before_their_pause_is_over(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Patience, "next", lambda self: 3600.0)
    cluster = Guarded()
    manager = ControllerManager(cluster, cluster.clock, schedulers=SCHEDULERS)
    with at_work(manager.run):
        eventually(lambda: cluster.tried)
        add_nodes(cluster, manager, "node-0", "node-1", "node-2")
    assert cluster.tried == 1


def test_they_begin_once_they_may(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Patience, "next", lambda self: 0.01)
    cluster = Guarded()
    manager = ControllerManager(cluster, cluster.clock, schedulers=SCHEDULERS)
    with at_work(manager.run):
        eventually(lambda: cluster.tried > 1)
        cluster.open = True
        eventually(lambda: len(cluster.list(QUEUE).items) == 2)
    assert {obj["metadata"]["name"] for obj in cluster.list(QUEUE).items} == {"root", "default"}
