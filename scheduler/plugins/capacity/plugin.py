"""The plugin: queue order, limits and admission by capacity. Who may be reclaimed is in `reclaim`."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, ClassVar

from scheduler.framework.explain import Code, Stage, Verdict
from scheduler.framework.plugin import UNLIMITED, Answer, Event, Vote
from scheduler.framework.registry import plugin
from scheduler.framework.turns import Hierarchy
from scheduler.model.jobs import JobInfo
from scheduler.model.queues import QueueInfo
from scheduler.model.resources import PODS
from scheduler.model.tasks import TaskClass, TaskInfo, TaskStatus
from scheduler.plugins.capacity.devices import DeviceQuotas
from scheduler.plugins.capacity.gates import Gates, Kept
from scheduler.plugins.capacity.reclaim import Reclaim
from scheduler.plugins.capacity.standings import Standing, Standings, fault_of, flat, tree
from scheduler.plugins.holdings import Terms

if TYPE_CHECKING:
    from scheduler.conf import Arguments
    from scheduler.framework.session import Session


@plugin
class Capacity:
    """Queues keep within what they may have; who holds less of what he deserves goes first.

    Argument: `ancestorReclaimLevel` (0): how many levels up, with enableHierarchy, what ancestors deserve counts too when
    one queue reclaims from another; `capacity.DynamicResourceAllocationEnable` (true): devices count against quotas of
    their class, `capacity.DRAConsumableCapacityEnable` (false): so does what is claimed of their capacity.
    """

    name: ClassVar[str] = "capacity"
    _ssn: Session
    _fault: Verdict | None = None
    _standings: Standings
    _devices: DeviceQuotas
    _gates: Gates

    def __init__(self, arguments: Arguments) -> None:
        self._level = max(arguments.integer("ancestorReclaimLevel", 0), 0)
        self._counts_devices = arguments.boolean("capacity.DynamicResourceAllocationEnable", True)
        self._consumable = arguments.boolean("capacity.DRAConsumableCapacityEnable", False)
        self._terms = Terms()

    def on_session_open(self, ssn: Session) -> None:
        self._ssn = ssn
        hierarchical = ssn.is_hierarchical(self.name)
        self._fault = fault_of(ssn.queues) if hierarchical else None
        if self._fault is not None or not hierarchical:
            self._standings = flat(ssn.queues, ssn.roster, ssn.total)
        else:
            self._standings = tree(ssn.queues, ssn.roster, ssn.dims.width)
        if hierarchical and self._fault is None:
            ssn.add_queue_order(self.name, Hierarchy(self._path, lambda at: at.order, self._rank))
            ssn.add_victim_queue_order(self.name, lambda theirs, mine: -self._common(theirs, mine))
        elif not hierarchical:
            ssn.add_queue_order(self.name, lambda queue: (-queue.priority, *self._standings[queue.name].order))
        reclaim = Reclaim(self._standings, self._terms, self._level if hierarchical else 0)
        ssn.add_reclaimable(self.name, lambda task, candidates: [] if self._fault else reclaim.victims(task, candidates))
        ssn.add_unified_evictable(self.name, lambda kind, job, them: [] if self._fault else reclaim.unified(kind, them))
        ssn.add_preemptive(self.name, lambda queue, tasks: not self._fault and reclaim.may_start(queue, tasks))
        counted = self._standings if self._counts_devices else {}
        self._devices = DeviceQuotas(counted, ssn.estate.devices, consumable=self._consumable)
        self._gates = Gates(ssn)
        ssn.add_allocatable(self.name, self.room, self.refusal, gate=self._passes)
        ssn.add_enqueueable(self.name, self.admits)
        ssn.add_enqueued(self.name, self.charge)
        ssn.add_handlers(self._allocated, self._deallocated)

    def on_session_close(self, ssn: Session) -> None:
        """Say how every queue stands, inner ones with all that is below them."""
        for name, at in self._standings.items():
            share, (held, limits) = at.told(ssn.dims), self._devices.told(name)
            if held or limits:
                share = replace(share, allocated={**share.allocated, **held}, limit={**share.limit, **limits})
            ssn.queue_shares[name] = share

    # -- order -----------------------------------------------------------------------------------------------------------

    def _path(self, queue: QueueInfo) -> tuple[Standing, ...]:
        """From below the root to the queue itself."""
        return self._standings[queue.name].path[-2::-1]

    def _rank(self, queue: QueueInfo) -> tuple[int, bool]:
        """Priority first, then leaves before inner queues."""
        return (-queue.priority, not self._standings[queue.name].is_leaf)

    def _common(self, left: QueueInfo, right: QueueInfo) -> int:
        """How many ancestors two queues have in common."""
        return len(set(self._standings[left.name].above) & set(self._standings[right.name].above))

    # -- taking ----------------------------------------------------------------------------------------------------------

    def room(self, queue: QueueInfo, cls: TaskClass) -> int:
        """How many more tasks of the class the queue and all its ancestors may have."""
        at = self._standings.get(queue.name)
        if self._fault is not None or at is None or not queue.is_open or not at.is_leaf:
            return 0
        terms, kept = self._terms(cls), self._gates.kept(queue.name)
        if kept is None:
            rooms = (each.left[place] // amount for each in at.path for place, amount in terms)
        else:
            rooms = (self._left(each, place, cls, kept) // amount for each in at.path for place, amount in terms)
        room = min(rooms, default=UNLIMITED)
        return max(0, min(room, self._devices.room(at, cls)))

    @staticmethod
    def _left(at: Standing, place: int, cls: TaskClass, kept: Kept) -> int:
        """What is left of a dimension in a queue, beside what is kept there for tasks that its gate let through.

        Those tasks themselves find theirs as long as all that is kept is there.
        """
        if at.queue is not kept.queue:
            return at.left[place]
        left = at.left[place] - int(kept.total[place])
        if not cls.gate or kept.asks:
            return left
        return UNLIMITED if left >= 0 else 0

    def _passes(self, queue: QueueInfo, task: TaskInfo) -> bool:
        """Let a task through the gate, and keep room for it."""
        with self._gates.asking(queue.name):
            if self.room(queue, task.cls) <= 0:
                return False
        self._gates.keep(queue.name, task)
        return True

    def refusal(self, queue: QueueInfo, cls: TaskClass) -> Verdict:
        """The fault of the tree, or the first queue on the way up that is full, and what of."""
        closed = self._closed(queue, Stage.QUEUE_LIMIT)
        if closed is not None:
            return closed
        kept = self._gates.kept(queue.name)
        for at in self._standings[queue.name].path:
            for place, amount in self._terms(cls):
                left = at.left[place] if kept is None else self._left(at, place, cls, kept)
                if left < amount:
                    return self._short(Stage.QUEUE_LIMIT, at, place, amount, left)
        lack = self._devices.shortage(self._standings[queue.name], cls)
        if lack is not None:
            return _lacks(Stage.QUEUE_LIMIT, *lack)
        raise AssertionError("nothing refuses the class")

    def _closed(self, queue: QueueInfo, stage: Stage) -> Verdict | None:
        """Why a queue takes nothing, whatever it is asked for."""
        if self._fault is not None:
            return replace(self._fault, stage=stage)
        return None if queue.is_open else Verdict(stage, Code.QUEUE_CLOSED, queue.name)

    def _short(self, stage: Stage, at: Standing, place: int, asked: int, free: int) -> Verdict:
        name, limit = self._ssn.dims.names[place], int(at.real[place])
        short = asked - free
        return Verdict(
            stage, Code.QUEUE_CAPABILITY, at.queue.name, resource=name, asked=asked, free=max(free, 0), short=short, limit=limit
        )

    # -- admission -------------------------------------------------------------------------------------------------------

    def admits(self, job: JobInfo) -> Answer:
        """Whether minResources fits into the queue and all its ancestors, beside what is held and admitted and must stay."""
        at = self._standings[job.queue]
        closed = self._closed(at.queue, Stage.ADMISSION)
        if closed is not None:
            return closed
        lack = self._devices.refuses(at, self._devices.least(job))
        if job.min_resources is None:
            return Vote.PERMIT if lack is None else _lacks(Stage.ADMISSION, *lack)
        wanted = enumerate(job.min_resources.values.tolist())
        asked = [(place, amount) for place, amount in wanted if place != PODS and amount > 0]
        full: Verdict | None = None
        for each in at.path:
            sums = each.sums
            left = (each.real - sums.allocated - sums.inqueue + sums.elastic).tolist()
            for place, amount in asked:
                if amount > each.real[place]:  # what no waiting mends is said first
                    return self._short(Stage.ADMISSION, each, place, amount, left[place])
                if full is None and amount > left[place]:
                    full = self._short(Stage.ADMISSION, each, place, amount, left[place])
        if full is None and lack is not None:
            return _lacks(Stage.ADMISSION, *lack)
        return full or Vote.PERMIT

    def charge(self, job: JobInfo) -> None:
        """The job was admitted."""
        self._devices.admit(self._standings[job.queue], self._devices.least(job))
        if job.min_resources is not None and job.impossible is None:
            self._standings[job.queue].admit(job.enqueue_charge())

    # -- events ----------------------------------------------------------------------------------------------------------

    def _allocated(self, event: Event) -> None:
        at = self._standings.get(event.job.queue) if event.job is not None else None
        if at is not None:
            at.take(event.total)
            for task in event.tasks if self._devices or event.cls.gate else ():
                self._devices.take(at, task)
                self._gates.forget(at.queue.name, task)

    def _deallocated(self, event: Event) -> None:
        at = self._standings.get(event.job.queue) if event.job is not None else None
        if at is not None:
            at.take(-event.total)
            for task in event.tasks if self._devices or event.cls.gate else ():
                self._devices.give_back(at, task)
                if task.cls.gate and task.status is TaskStatus.PENDING:
                    self._gates.keep(at.queue.name, task)


def _lacks(stage: Stage, queue: str, quota: str, asked: int, free: int, limit: int) -> Verdict:
    """Why a queue takes no more devices."""
    code, short = Code.DEVICE_QUOTA, asked - max(free, 0)
    return Verdict(stage, code, queue, resource=quota, asked=asked, free=max(free, 0), short=short, limit=limit)
