"""Carrying drains out: cordon, evict, look again, until nobody is left who has to go.

Every look begins with what is there, so a process that takes a drain over after another died goes on where that stood. One
process at a time holds a drain, by a lease; it alone writes to the drain's nodes, also when the drain is cancelled.
"""

from __future__ import annotations

import os
import socket
import threading
from datetime import timedelta
from typing import Any

import structlog
from django.db import DatabaseError
from django.db.models import Q
from django.utils import timezone

from cluster import machines, objects, runtime
from cluster.away import Away
from cluster.errors import ApiError, NotFound
from cluster.kinds import NODE
from cluster.leaving import DRAIN, drain_of
from cluster.port import Cluster, Obj
from cluster.projection import Batch, project_nodes
from cluster.said import said
from portal.maintenance.emptying import Look, empty, tell_jobs
from portal.maintenance.models import ACTIVE, UNENDED, Drain, DrainedNode, DrainState, Mode, NodeState

log = structlog.get_logger(__name__)

LEASE = timedelta(seconds=30)
PAUSE = 1.0
"""Seconds between two looks: so often a budget that keeps a pod is asked again."""
MANAGER = "basalt"
SHOWN = 50
"""Pods that something keeps, as they are written down for pages."""

bell = threading.Event()
"""Rung when a drain is begun or cancelled in this process."""


class Worker:
    """Works on drains that nobody else works on."""

    def __init__(self, name: str = "") -> None:
        self.name = name or f"{socket.gethostname()[:40]}-{os.getpid()}-{threading.get_ident()}"[:64]
        self._away, self._held_up = Away("drains pause, for the database does not answer"), Away("drains pause")

    def run(self, stop: threading.Event) -> None:
        """Until told to stop."""
        while not stop.is_set():
            self.look(stop)
            bell.wait(PAUSE)
            bell.clear()

    def look(self, stop: threading.Event | None = None) -> None:
        """One step of every drain that is free; what fails in one keeps none of the others."""
        failed: ApiError | None = None
        try:
            for drain in self.take():
                if stop is not None and stop.is_set():
                    return
                try:
                    self.step(drain)
                except ApiError as error:
                    failed = error
            self._away.answered()
        except DatabaseError as error:
            self._away.failed(error)
        if failed is not None:
            self._held_up.failed(failed)
        else:
            self._held_up.answered()

    def take(self) -> list[Drain]:
        """The drains that have not ended and that nobody else holds, oldest first, now held by this worker."""
        free = Drain.objects.filter(state__in=UNENDED).filter(
            Q(lease_until=None) | Q(lease_until__lt=timezone.now()) | Q(worker=self.name)
        )
        found = []
        for drain in free.order_by("created_at", "pk"):
            held = free.filter(pk=drain.pk, worker=drain.worker)
            if held.update(worker=self.name, lease_until=timezone.now() + LEASE):
                found.append(drain)
        return found

    def step(self, drain: Drain) -> None:
        """One look at each node whose turn it is."""
        if drain.state == DrainState.CANCELLING:
            self._end(drain, DrainState.CANCELLED)
            return
        late = drain.deadline is not None and runtime.now() >= drain.deadline
        if late and drain.mode != Mode.WAIT_THEN_EVICT:
            self._end(drain, DrainState.OVERDUE)
            return
        evicts = drain.mode == Mode.EVICT or late
        rows = drain.nodes.filter(state__in=ACTIVE)
        for row in list(rows[:1] if drain.in_turn else rows):
            if not self._holds(drain):
                return
            try:
                _advance(runtime.current(), drain, row, evicts)
            except NotFound:
                _leave(row, NodeState.GONE)
            except ApiError as error:
                row.trouble, row.looked_at = error.message, runtime.now()
                row.save(update_fields=["trouble", "looked_at"])
        if not rows.all().exists() and self._holds(drain):
            self._hold(drain).update(state=DrainState.DONE, finished_at=runtime.now(), lease_until=None)

    def _hold(self, drain: Drain) -> Any:
        """The drain, as long as it is this worker's and goes on."""
        return Drain.objects.filter(pk=drain.pk, worker=self.name, state=DrainState.RUNNING)

    def _holds(self, drain: Drain) -> bool:
        return bool(self._hold(drain).update(lease_until=timezone.now() + LEASE))

    def _end(self, drain: Drain, state: DrainState) -> None:
        """Give up the nodes that are not empty. Those that a cancelled drain cordoned may take pods again, empty ones too."""
        cluster, reopens = runtime.current(), state == DrainState.CANCELLED and drain.uncordons
        for row in drain.nodes.all():
            if row.state in ACTIVE or (reopens and row.state == NodeState.DRAINED):
                try:
                    _let_go(cluster, drain, row, reopens and not row.was_cordoned)
                except NotFound:
                    log.info("a node that is let go is not there any more", node=row.node)
                if row.state in ACTIVE:
                    _leave(row, NodeState.LEFT)
        mine = Drain.objects.filter(pk=drain.pk, worker=self.name, state__in=UNENDED)
        mine.update(state=state, finished_at=runtime.now(), lease_until=None)


def _advance(cluster: Cluster, drain: Drain, row: DrainedNode, evicts: bool) -> None:
    """One look at one node. Raises NotFound for one that is gone."""
    node = cluster.get(NODE, row.node)
    if objects.uid(node) != row.uid:
        raise NotFound(said("node %(node)s is another one now", node=row.node))
    if row.cordoned_at is None:
        node = _cordon(cluster, drain, row, node)
    elif not (node.get("spec") or {}).get("unschedulable"):
        _written(cluster, row.node, {"metadata": {"annotations": {DRAIN: None}}})
        _leave(row, NodeState.REOPENED)
        return
    look = empty(cluster, drain, row.node, evicts)
    if told := tell_jobs(cluster, drain, row, look.jobs):
        row.told = [*row.told, *told]
    _write(row, look)
    if look.is_empty and row.left == 0:  # twice: a pod may have been on its way when the node was cordoned
        _written(cluster, row.node, {"metadata": {"annotations": {DRAIN: None}}})
        machines.tell(cluster, node, machines.DRAINED, drain.user, drain.reason)
        _leave(row, NodeState.DRAINED)
        return
    row.left = look.left
    row.save(update_fields=["left"])


def _cordon(cluster: Cluster, drain: Drain, row: DrainedNode, node: Obj) -> Obj:
    """Write down how the node was before it is touched, so that who goes on after a crash knows."""
    if row.started_at is None:
        row.was_cordoned = bool((node.get("spec") or {}).get("unschedulable"))
        row.started_at, row.state = runtime.now(), NodeState.DRAINING
        row.save(update_fields=["was_cordoned", "started_at", "state"])
    change = {"metadata": {"annotations": {DRAIN: str(drain.pk)}}, "spec": {"unschedulable": True}}
    is_news = drain_of(node) != str(drain.pk)
    node = _written(cluster, row.node, change)
    row.cordoned_at = runtime.now()
    row.save(update_fields=["cordoned_at"])
    if is_news:
        machines.tell(cluster, node, machines.DRAINING, drain.user, drain.reason)
    return node


def _let_go(cluster: Cluster, drain: Drain, row: DrainedNode, reopens: bool) -> None:
    """Take a drain's mark off a node, and let it take pods again."""
    if row.started_at is None:
        return
    node = cluster.get(NODE, row.node)
    if objects.uid(node) != row.uid or (row.state in ACTIVE and drain_of(node) not in ("", str(drain.pk))):
        return  # another node of its name, or another drain's
    if row.state not in ACTIVE and drain_of(node):
        return  # somebody drains it again
    node = _written(cluster, row.node, machines.TAKES_PODS if reopens else {"metadata": {"annotations": {DRAIN: None}}})
    if row.state in ACTIVE:
        machines.tell(cluster, node, machines.DRAIN_ENDED, drain.ended_by or drain.user, drain.reason)
    if reopens:
        machines.tell(cluster, node, machines.REASONS_OF["uncordon"], drain.ended_by)


def _written(cluster: Cluster, name: str, change: Obj) -> Obj:
    """Patch a node, and show it at once."""
    node = cluster.patch(NODE, name, "", change, field_manager=MANAGER)
    project_nodes(Batch(upserts=[node]))
    return node


def _write(row: DrainedNode, look: Look) -> None:
    row.pods = look.left if row.pods is None else row.pods
    row.held, row.held_count = [each.as_dict() for each in look.held[:SHOWN]], len(look.held)
    row.looked_at, row.trouble = runtime.now(), ""
    row.save(update_fields=["pods", "held", "held_count", "looked_at", "trouble", "told"])


def _leave(row: DrainedNode, state: NodeState) -> None:
    row.state, row.finished_at, row.held, row.held_count = state, runtime.now(), [], 0
    row.left = 0 if state == NodeState.DRAINED else row.left
    row.trouble = ""
    row.save(update_fields=["state", "finished_at", "held", "held_count", "left", "trouble"])
