"""The Queue controller: the built-in queues, opening and closing with all that hangs below, and the counts of PodGroups.

A queue below a closed one is closed, remembers that it was not closed for its own sake, and opens again with its parent.
"""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Iterable, Iterator
from typing import Any

from cluster import objects
from cluster.clock import Clock
from cluster.errors import AlreadyExists, Conflict, NotFound
from cluster.informer import Change, Informer
from cluster.informer import IndexFunction as Index
from cluster.kinds import COMMAND, POD_GROUP, QUEUE, Kind
from cluster.port import Cluster, Obj
from cluster.rests import Rests
from cluster.said import said
from queues.choices import QueueState
from queues.operations import state_of
from queues.tree import BUILT_IN, DEFAULT, ROOT, parent_of

CLOSED_BY_PARENT = "volcano.sh/closed-by-parent"
COUNTS_SECONDS = 1.0
"""Counts alone are written at most this often a queue, also where they do not rest first."""
MAX_FAILURES = 15

_PHASES = ("Pending", "Running", "Inqueue", "Unknown", "Completed")
_SHUT = (QueueState.CLOSING, QueueState.CLOSED)

log = logging.getLogger(__name__)


def _parent(queue: Obj) -> Iterator[str]:
    if above := parent_of(queue):
        yield above


def _queue_of(group: Obj) -> Iterator[str]:
    yield (group.get("spec") or {}).get("queue") or DEFAULT


def _target(command: Obj) -> Iterator[str]:
    target = command.get("target") or {}
    if target.get("kind") == QUEUE.kind:
        yield str(target.get("name"))


class QueueController:
    """Reconciles Queues; keys are names behind a slash, as cluster-wide objects have them."""

    name = "queue"
    kinds: tuple[Kind, ...] = (QUEUE, POD_GROUP, COMMAND)
    indexes: dict[tuple[Kind, str], Index] = {  # noqa: RUF012
        (QUEUE, "parent"): _parent,
        (POD_GROUP, "queue"): _queue_of,
        (COMMAND, "queue"): _target,
    }

    def __init__(self, cluster: Cluster, informer: Informer, clock: Clock, rests: Rests | None = None) -> None:
        self._cluster, self._informer, self._clock, self._rests = cluster, informer, clock, rests or Rests()
        self._counted_at: dict[str, float] = {}
        self._hopeless: set[str] = set()

    def start(self) -> None:
        """Make the queues that are always there."""
        for name in BUILT_IN:
            spec: dict[str, Any] = {"weight": 1, "reclaimable": name != ROOT}
            if name != ROOT:
                spec["parent"] = ROOT
            if self._informer.get(QUEUE, f"/{name}") is None:
                queue = {"apiVersion": QUEUE.api_version, "kind": QUEUE.kind, "metadata": {"name": name}, "spec": spec}
                try:
                    self._informer.observe(QUEUE, self._cluster.create(QUEUE, queue))
                except AlreadyExists:
                    continue

    def keys(self, change: Change) -> Iterable[str]:
        """The queue; those around it when its state changed; the one of a PodGroup or a Command."""
        if change.kind == COMMAND:
            return [f"/{name}" for name in _target(change.object)]
        if change.kind == POD_GROUP:
            return self._of_group(change)
        if change.kind != QUEUE:
            return ()
        around = []
        if change.old is None or change.new is None or state_of(change.old) != state_of(change.new):
            around = [objects.key(child) for child in self._informer.by(QUEUE, "parent", objects.name(change.object))]
        return [objects.key(change.object), *around]

    def reconcile(self, key: str) -> float | None:
        """One pass: the parent's name, a waiting Command, the parent's state, emptiness, the counts."""
        queue = self._informer.get(QUEUE, key)
        commands = sorted(self._informer.by(COMMAND, "queue", key[1:]), key=objects.resource_version)
        if queue is None or objects.is_deleting(queue):
            self._counted_at.pop(key, None)
            self._rests.written(key)
            return None
        can_be_edited = state_of(queue) in (QueueState.OPEN, QueueState.CLOSED)
        if objects.name(queue) != ROOT and not (queue.get("spec") or {}).get("parent") and can_be_edited:
            queue = self._patch(queue, {"spec": {"parent": ROOT}})
        if commands:
            self._carry_out(queue, commands[0])
            return 0.0
        queue = self._follow_parent(queue)
        return self._settle(queue)

    def failed(self, key: str, error: Exception, failures: int) -> None:
        """Log it; a Command that has failed often is given up."""
        if not isinstance(error, Conflict) or failures > 1:
            log.info("queue %s was not brought forward (failure %d in a row): %s", key[1:], failures, error)
        if failures >= MAX_FAILURES:
            self._hopeless.update(objects.uid(c) for c in self._informer.by(COMMAND, "queue", key[1:])[:1])

    def _of_group(self, change: Change) -> list[str]:
        phase = [((o or {}).get("status") or {}).get("phase") for o in (change.old, change.new)]
        if change.old is not None and change.new is not None and phase[0] == phase[1]:
            return []
        return [f"/{name}" for name in _queue_of(change.object)]

    def _carry_out(self, queue: Obj, command: Obj) -> None:
        """Open or close as asked, then delete the Command. Doing it twice is doing it once."""
        action, target = command.get("action"), command["target"].get("uid")
        if objects.uid(command) not in self._hopeless and target in (None, "", objects.uid(queue)):
            if action == "OpenQueue":
                self._open(queue, by_hand=True)
            elif action == "CloseQueue" and objects.name(queue) != ROOT:
                self._close(self._mark(queue, by_parent=False) if state_of(queue) == QueueState.OPEN else queue)
        with contextlib.suppress(NotFound):
            self._cluster.delete(COMMAND, objects.name(command), objects.namespace(command), uid=objects.uid(command))
        self._hopeless.discard(objects.uid(command))
        self._informer.forget(COMMAND, command)

    def _open(self, queue: Obj, *, by_hand: bool) -> Obj:
        """Raises Conflict while the parent is closed."""
        above = self._informer.get(QUEUE, f"/{parent_of(queue)}")
        if by_hand and above is not None and state_of(above) in _SHUT:
            raise Conflict(
                said(
                    "queue %(queue)s cannot open: its parent %(above)s is %(state)s",
                    queue=objects.name(queue),
                    above=objects.name(above),
                    state=state_of(above),
                )
            )
        queue = self._write(queue, {"state": str(QueueState.OPEN)})  # first: a queue that is closing cannot be edited
        return self._mark(queue, by_parent=False)

    def _mark(self, queue: Obj, *, by_parent: bool) -> Obj:
        """Keep on the queue whether it was closed because of its parent."""
        if (objects.annotations(queue).get(CLOSED_BY_PARENT) == "true") == by_parent:
            return queue
        return self._patch(queue, {"metadata": {"annotations": {CLOSED_BY_PARENT: str(by_parent).lower()}}})

    def _close(self, queue: Obj) -> Obj:
        empty = not self._informer.by(POD_GROUP, "queue", objects.name(queue))
        if state_of(queue) == QueueState.CLOSED:
            return queue
        return self._write(queue, {"state": str(QueueState.CLOSED if empty else QueueState.CLOSING)})

    def _follow_parent(self, queue: Obj) -> Obj:
        above = self._informer.get(QUEUE, f"/{parent_of(queue)}")
        if above is None:
            return queue
        shut, by_parent = state_of(above) in _SHUT, objects.annotations(queue).get(CLOSED_BY_PARENT) == "true"
        if shut and state_of(queue) not in _SHUT:
            if state_of(queue) == QueueState.UNKNOWN:  # a queue whose state is unknown cannot be edited
                queue = self._write(queue, {"state": str(QueueState.OPEN)})
            return self._close(self._mark(queue, by_parent=True))
        if not shut and by_parent:
            return self._open(queue, by_hand=False)
        return queue

    def _settle(self, queue: Obj) -> float | None:
        """Closing becomes Closed when the last PodGroup has gone; counts follow, not more often than they are read."""
        groups = self._informer.by(POD_GROUP, "queue", objects.name(queue))
        state = state_of(queue)
        if state == QueueState.CLOSING and not groups:
            state = QueueState.CLOSED
        counts = dict.fromkeys((phase.lower() for phase in _PHASES), 0)
        for group in groups:
            phase = (group.get("status") or {}).get("phase") or "Pending"
            counts[phase.lower() if phase in _PHASES else "unknown"] += 1
        status = queue.get("status") or {}
        now, key = self._clock.now(), objects.key(queue)
        if status.get("state") == state:
            if all((status.get(name) or 0) == count for name, count in counts.items()):
                self._rests.written(key)
                return None
            rest = max(self._counted_at.get(key, float("-inf")) + COUNTS_SECONDS - now, self._rests.left(key, now))
            if rest > 0:
                return rest
        self._rests.written(key)
        self._counted_at[key] = now
        self._write(queue, {"state": str(state), **counts})
        return None

    def _patch(self, queue: Obj, body: dict[str, Any]) -> Obj:
        patched = self._cluster.patch(QUEUE, objects.name(queue), "", body)
        self._informer.observe(QUEUE, patched)
        return patched

    def _write(self, queue: Obj, status: dict[str, Any]) -> Obj:
        if all((queue.get("status") or {}).get(name) == value for name, value in status.items()):
            return queue
        written = self._cluster.patch_status(QUEUE, objects.name(queue), "", status, uid=objects.uid(queue))
        self._informer.observe(QUEUE, written)
        return written
