"""deviceshare: pods that share cards, by vGPU (memory, cores, MIG instances of single cards) or by gpushare."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from cluster import objects
from cluster.said import said
from scheduler.framework.plugin import Event
from scheduler.framework.registry import plugin
from scheduler.model import devices, nodelocks
from scheduler.model.devices import VGPU_CORES, VGPU_MEMORY, Card, Share, Use
from scheduler.model.nodes import Block, NodeTable
from scheduler.model.resources import Floats, Mask
from scheduler.model.tasks import ALLOCATED_SET, TaskClass, TaskInfo, TaskStatus
from scheduler.plugins.deviceshare import mig
from scheduler.plugins.deviceshare.cards import (
    BINPACK,
    SPREAD,
    Choice,
    State,
    card_by_memory,
    cards_by_number,
    share_cards,
    states,
)  # fmt: skip

if TYPE_CHECKING:
    from scheduler.conf import Arguments
    from scheduler.framework.session import Session

logger = logging.getLogger(__name__)

CAUSE = "gpu_cards"
_SWITCHES = ("GPUSharingEnable", "GPUNumberEnable", "VGPUEnable")
_PLACED = (TaskStatus.ALLOCATED, TaskStatus.PIPELINED)
_LATER = ("AscendMindClusterVNPUEnable", "AscendHAMiVNPUEnable")


@plugin
class DeviceShare:
    """Checks that a node has cards for a pod, chooses them, and tells the device plugin by annotations of the bind.

    Arguments, each after `deviceshare.`: one of `VGPUEnable`, `GPUSharingEnable` (by memory), `GPUNumberEnable` (whole
    cards), all false; `NodeLockEnable` (false): a node gives cards to one pod after the other; `SchedulePolicy` ("", binpack
    or spread), `ScheduleWeight` (0); `GPUExclusiveRules`, a list of label maps: pods that match one rule never share a card;
    `KnownGeometriesCMName`, `KnownGeometriesCMNamespace`: the ConfigMap that says how MIG divides cards.
    """

    name: ClassVar[str] = "deviceshare"
    _ssn: Session
    _nodes: NodeTable
    _cards: dict[int, tuple[str, tuple[Card, ...]]]
    _geometries: list[mig.Geometry]

    def __init__(self, arguments: Arguments) -> None:
        on = [switch for switch in _SWITCHES if arguments.boolean(f"deviceshare.{switch}", False)]
        if len(on) > 1:
            raise arguments.error(
                f"deviceshare.{on[1]}", said("it cannot be on together with %(on)s: cards are shared in one way", on=on[0])
            )
        for later in _LATER:
            if arguments.boolean(f"deviceshare.{later}", False):
                raise arguments.error(f"deviceshare.{later}", said("Basalt does not have it yet: leave it out"))
        self._way = on[0] if on else ""
        self._policy = arguments.text("deviceshare.SchedulePolicy", "")
        if self._policy not in ("", BINPACK, SPREAD):
            raise arguments.error(
                "deviceshare.SchedulePolicy", said("%(policy)r must be binpack or spread, or left out", policy=self._policy)
            )
        self._weight = arguments.integer("deviceshare.ScheduleWeight", 0)
        space = arguments.text("deviceshare.KnownGeometriesCMNamespace", "kube-system")
        self._config = f"{space}/{arguments.text('deviceshare.KnownGeometriesCMName', 'volcano-vgpu-device-config')}"
        self._rules = _rules(arguments)
        self._locks = arguments.boolean("deviceshare.NodeLockEnable", False)
        self._in_flight: dict[int, str] = {}

    def on_session_open(self, ssn: Session) -> None:
        if not self._way:
            return
        self._ssn, self._nodes = ssn, ssn.nodes
        held = ssn.memo.setdefault(self.name, {})
        key = (self._way, ssn.nodes.static_version)
        if key not in held:
            held.clear()
            held[key] = {}
        self._cards = held[key]
        self._geometries = self._read_geometries()
        ssn.add_room(self.name, CAUSE, self._now, self._later, applies=self._concerns)
        if self._weight > 0 and self._policy:
            ssn.add_node_score(self.name, self._score, applies=self._concerns)
        apart, concerned = partial(self._apart, later=True), lambda task: bool(self._keeps_apart(task))
        ssn.add_task_predicate(self.name, CAUSE, apart, concerned, now=partial(self._apart, later=False))
        ssn.add_handlers(allocate=self._allocate)
        if self._locks and self._lock_key:
            ssn.add_task_predicate(
                self.name, "node_lock", self._unlocked, lambda task: self._concerns(task.cls), resolvable=False
            )
            ssn.add_handlers(allocate=self._lock, deallocate=self._unlock)

    def on_session_close(self, ssn: Session) -> None:
        """Say by how much queues hold more of cards than their pods ask: whole cards and percentages are asked in other words."""
        if self._way != "VGPUEnable" or not any(self._concerns(cls) for cls in ssn.classes):
            return
        for job in ssn.jobs.values():
            more: Counter[str] = Counter()
            for task in (task for status in ALLOCATED_SET for task in job.by_status[status].values() if task.cards):
                for name, given in ((VGPU_MEMORY, "memory"), (VGPU_CORES, "cores")):
                    asked = int(task.request[ssn.dims.index[name]]) if name in ssn.dims.index else 0
                    more[name] += 1000 * sum(getattr(use, given) for use in task.cards) - asked
            if more:
                ssn.beyond_request.setdefault(job.queue, Counter()).update(more)

    def _read_geometries(self) -> list[mig.Geometry]:
        try:
            return mig.read(self._ssn.device_configs.get(self._config))
        except ValueError as error:
            logger.warning("ConfigMap %s: %s; MIG cards are shared by software", self._config, error)
            return []

    # -- what fits where -----------------------------------------------------------------------------------------------

    def _concerns(self, cls: TaskClass) -> bool:
        share = cls.share
        if share is None:
            return False
        return bool({"VGPUEnable": share.asks, "GPUSharingEnable": share.memory, "GPUNumberEnable": share.number}[self._way])

    def _now(self, cls: TaskClass, at: Block) -> Mask:
        return self._fits(cls, at, later=False)

    def _later(self, cls: TaskClass, at: Block) -> Mask:
        return self._fits(cls, at, later=True)

    def _fits(self, cls: TaskClass, at: Block, *, later: bool) -> Mask:
        return np.array([found is None or found[0] for found in self._tried(cls, at, later=later)], np.bool_)

    def _score(self, cls: TaskClass, at: Block) -> Floats:
        return np.array([found[1] if found else 0.0 for found in self._tried(cls, at, later=True)]) * self._weight

    def _tried(self, cls: TaskClass, at: Block, *, later: bool) -> Iterator[tuple[bool, float] | None]:
        """For each row whether one more copy finds its cards, and the rounded score; None on nodes without cards.

        Such nodes are refused by what they lack of the resources themselves.
        """
        assert cls.share is not None
        copies = [0] * len(at.rows) if at.copies is None else at.copies.tolist()
        last, done, cards = -1, 0, list[State]()
        for row, more in zip(at.rows.tolist(), copies, strict=True):
            if not self._of_row(row)[1]:
                yield None
                continue
            if row != last or more < done:
                last, done, cards = row, 0, self._states(row, self._held(row, later=later))
            while done < more and self._choose(row, cards, cls.share) is not None:
                done += 1
            choice = self._choose(row, cards, cls.share) if done == more else None
            done += 1
            yield (False, 0.0) if choice is None else (True, float(np.floor(choice.score + 0.5)))

    def _choose(self, row: int, cards: list[State], share: Share, closed: Iterable[str] = ()) -> Choice | None:
        """Cards for one pod, counted in `cards` (also in part, when it does not fit)."""
        if self._way == "GPUSharingEnable":
            return card_by_memory(cards, share)
        if self._way == "GPUNumberEnable":
            return cards_by_number(cards, share)
        if share.mode and share.mode != self._of_row(row)[0]:
            return None
        return share_cards(cards, share, self._policy, frozenset(closed))

    def _of_row(self, row: int) -> tuple[str, tuple[Card, ...]]:
        """Mode and cards of a row."""
        found = self._cards.get(row)
        if found is None:
            found = self._cards[row] = self._read(self._nodes.objects[row]) if self._nodes.live[row] else ("", ())
        return found

    def _read(self, node: Mapping[str, Any]) -> tuple[str, tuple[Card, ...]]:
        try:
            return devices.registered(node) if self._way == "VGPUEnable" else ("", devices.equal_cards(node))
        except ValueError as error:
            logger.warning("node %s: %s; its cards are not used", objects.name(dict(node)), error)
            return "", ()

    def _states(self, row: int, uses: Iterable[Use]) -> list[State]:
        mode, cards = self._of_row(row)
        return states(cards, uses, self._geometries if mode == devices.MIG else None)

    def _held(self, row: int, *, later: bool, without: TaskInfo | None = None) -> Iterator[Use]:
        """What tasks on a row hold; `later`: those that are being released do not count."""
        for task in self._nodes.tasks[row].values():
            if task.cards and task is not without and not (later and task.status is TaskStatus.RELEASING):
                yield from task.cards

    # -- pods that may not share with certain others -------------------------------------------------------------------

    def _keeps_apart(self, task: TaskInfo) -> list[Callable[[TaskInfo], bool]]:
        """By which other tasks' cards are closed to this one: those of its group, those under the same rule."""
        if not self._concerns(task.cls) or self._way != "VGPUEnable":
            return []
        found: list[Callable[[TaskInfo], bool]] = []
        if task.job is not None and _marks(task).get(devices.GROUP_POLICY) == devices.SPREAD:
            found.append(lambda other: other.job is task.job)
        found += [_matcher(rule) for rule in self._rules if _matcher(rule)(task)]
        return found

    def _closed(self, task: TaskInfo, row: int, *, later: bool) -> set[str]:
        """Cards of a row that the task may not share; `later`: those that are being released are open."""
        apart = self._keeps_apart(task)
        return {
            use.card.partition("[")[0]
            for other in (self._nodes.tasks[row].values() if apart else ())
            if other is not task and not (later and other.status is TaskStatus.RELEASING)
            if any(matches(other) for matches in apart)
            for use in other.cards
        }

    def _apart(self, task: TaskInfo, at: Block, *, later: bool) -> Mask:
        share = task.cls.share
        assert share is not None
        return np.array([
            not (closed := self._closed(task, row, later=later))
            or self._choose(row, self._states(row, self._held(row, later=later)), share, closed) is not None
            for row in at.rows.tolist()
        ], np.bool_)  # fmt: skip

    # -- what is given -------------------------------------------------------------------------------------------------

    def _allocate(self, event: Event) -> None:
        share = event.cls.share
        if share is None or not self._concerns(event.cls):
            return
        for task in event.tasks:
            if task.status not in _PLACED or not self._of_row(task.node)[1]:
                continue
            later = task.status is TaskStatus.PIPELINED
            cards = self._states(task.node, self._held(task.node, later=later, without=task))
            if self._way == "GPUNumberEnable" and task.gpus:  # chosen by their links already
                choice: Choice | None = Choice([[Use(str(gpu), cards[gpu].card.memory) for gpu in task.gpus]])
            else:
                choice = self._choose(task.node, cards, share, self._closed(task, task.node, later=later))
            if choice is None:
                logger.error("%s was placed on %s, where no card has room", task.key, self._nodes.names[task.node])
                continue
            task.cards, task.marks = choice.uses(), {**task.marks, **self._annotations(task, choice)}

    # -- locks ---------------------------------------------------------------------------------------------------------

    @property
    def _lock_key(self) -> str:
        """The annotation of nodes that locks them; none where whole cards are given."""
        return {"VGPUEnable": nodelocks.VGPU, "GPUSharingEnable": nodelocks.GPU_SHARE}.get(self._way, "")

    def _unlocked(self, task: TaskInfo, at: Block) -> Mask:
        """Rows where no other pod is on its way to its cards."""
        return np.array([not self._is_locked(row) for row in at.rows.tolist()], np.bool_)

    def _is_locked(self, row: int) -> bool:
        on_their_way = (task.status is TaskStatus.BINDING and bool(task.cards) for task in self._nodes.tasks[row].values())
        marks = objects.annotations(dict(self._nodes.objects[row]))
        return row in self._in_flight or any(on_their_way) or nodelocks.is_locked(marks, self._lock_key, self._ssn.now)

    def _lock(self, event: Event) -> None:
        for task in event.tasks:
            if task.cards and task.status is TaskStatus.ALLOCATED:
                self._in_flight[task.node] = task.uid
                self._ssn.locks[task.uid] = nodelocks.NodeLock(self._nodes.names[task.node], self._lock_key, self._ssn.now)

    def _unlock(self, event: Event) -> None:
        for task in event.tasks:
            lock = self._ssn.locks.pop(task.uid, None)
            if lock is not None:
                del self._in_flight[self._nodes.index[lock.node]]

    def _annotations(self, task: TaskInfo, choice: Choice) -> dict[str, str]:
        now = self._ssn.now
        if self._way != "VGPUEnable":
            indices = ",".join(use.card for use in choice.uses())
            return {devices.GPU_INDEX: indices, "volcano.sh/predicate-time": str(int(now * 1e9))}
        text = devices.vgpu_text(choice.containers)
        return {
            "volcano.sh/vgpu-node": self._nodes.names[task.node],
            "volcano.sh/vgpu-time": str(int(now)),
            devices.VGPU_IDS: text,
            devices.VGPU_IDS_TO_ALLOCATE: text,
            "volcano.sh/bind-phase": "allocating",
            "volcano.sh/bind-time": str(int(now)),
        }


def _marks(task: TaskInfo) -> Mapping[str, str]:
    return objects.annotations(dict(task.pod))


def _matcher(rule: Mapping[str, str]) -> Callable[[TaskInfo], bool]:
    def matches(task: TaskInfo) -> bool:
        labels = objects.labels(dict(task.pod))
        return all(labels.get(key) == value for key, value in rule.items())

    return matches


def _rules(arguments: Arguments) -> list[dict[str, str]]:
    key = "deviceshare.GPUExclusiveRules"
    found = arguments.value(key, [])
    if not isinstance(found, list) or not all(
        isinstance(rule, dict) and rule and all(isinstance(part, str) for pair in rule.items() for part in pair) for rule in found
    ):
        raise arguments.error(key, said("it must be a list of label maps, values in quotes where they look like numbers"))
    return found
