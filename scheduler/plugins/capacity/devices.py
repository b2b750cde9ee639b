"""Quotas of devices: how many of a class of devices, and how much of what they offer, the jobs of a queue may claim.

In a queue's capability, deserved and guarantee `deviceclass/<class>` is a number of devices and
`<what>.deviceclass/<class>` an amount of their capacity. A claim that several pods share is charged once. Amounts are
kept in thousandths, as those of other scalars are.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from cluster.quantities import to_units
from scheduler.dynamic.catalog import Devices
from scheduler.framework.plugin import UNLIMITED
from scheduler.model.build import DEVICE_QUOTA
from scheduler.model.jobs import JobInfo
from scheduler.model.queues import QueueInfo
from scheduler.model.tasks import ALLOCATED_SET, TaskClass, TaskInfo

if TYPE_CHECKING:
    from scheduler.plugins.capacity.standings import Standing, Standings

MOST = (1 << 62) - 1
"""Sums stop here, so that absurd numbers do not run over."""

Amounts = Counter[str]
"""Thousandths by quota name."""


@dataclass(slots=True)
class Account:
    """What one queue may have (`limits`), its jobs hold, and were admitted for in this session."""

    limits: dict[str, int]
    held: Amounts = field(default_factory=Counter)
    admitted: Amounts = field(default_factory=Counter)
    users: Counter[str] = field(default_factory=Counter)


@dataclass(frozen=True, slots=True)
class Demand:
    """What each pod of a class asks for by templates, and what the claims ask that all of them share, by claim."""

    each: Amounts
    shared: Mapping[str, Amounts]

    @property
    def all(self) -> Amounts:
        """What one pod asks in all."""
        return _sum([self.each, *self.shared.values()])


class DeviceQuotas:
    """Accounts of the queues of one session; without a quota anywhere nothing is counted."""

    def __init__(self, standings: Standings, catalog: Devices, *, consumable: bool) -> None:
        self._catalog, self._consumable = catalog, consumable
        self._accounts = {name: Account(limits) for name, at in standings.items() if (limits := _limits(at.queue)) is not None}
        self._demands: dict[TaskClass, Demand] = {}
        if self._accounts:
            for name, at in standings.items():
                for task in _holding(at.queue.jobs.values()) if at.is_leaf else ():
                    self.take(standings[name], task)

    def __bool__(self) -> bool:
        return bool(self._accounts)

    # -- how much may be taken -------------------------------------------------------------------------------------------

    def room(self, at: Standing, cls: TaskClass) -> int:
        """How many more pods of a class the queue and its ancestors may have, by their devices."""
        return min((room for _, room, _ in self._rooms(at, cls)), default=UNLIMITED)

    def shortage(self, at: Standing, cls: TaskClass) -> tuple[str, str, int, int, int] | None:
        """Queue, quota, and what is asked, free and the limit of the first that takes no pod of the class."""
        for queue, room, (quota, asked) in self._rooms(at, cls):
            if room <= 0:
                account = self._accounts[queue]
                limit = account.limits.get(quota, 0)
                return queue, quota, asked, limit - account.held[quota], limit
        return None

    def _rooms(self, at: Standing, cls: TaskClass) -> Iterator[tuple[str, int, tuple[str, int]]]:
        if not cls.claims or not self._accounts:
            return
        demand = self._demand(cls)
        for each in at.path:
            account = self._accounts.get(each.queue.name)
            if account is None:
                continue
            once = _sum(amounts for claim, amounts in demand.shared.items() if not account.users[claim])
            for quota in sorted({*demand.each, *once}):
                limit = self._limit(account, quota)
                if limit is None:
                    continue
                left, more = limit - account.held[quota] - once[quota], demand.each[quota]
                room = 0 if left < 0 else left // more if more else UNLIMITED
                yield each.queue.name, room, (quota, more + once[quota])

    def _limit(self, account: Account, quota: str) -> int | None:
        """The most that may be held; None where nothing limits it. A class whose number is 0 is not limited in number."""
        dimension, _, device_class = quota.rpartition(DEVICE_QUOTA)
        if not dimension:
            return account.limits.get(quota) or None
        if not self._consumable or not account.limits.keys() & self._of_class(account, device_class):
            return None
        return account.limits.get(quota, 0)

    @staticmethod
    def _of_class(account: Account, device_class: str) -> set[str]:
        return {quota for quota in account.limits if quota.rpartition(DEVICE_QUOTA)[2] == device_class}

    # -- admission -------------------------------------------------------------------------------------------------------

    def least(self, job: JobInfo) -> Amounts:
        """What the least number of pods with which a job runs asks of devices, by the pods that exist."""
        if not self._accounts:
            return Counter()
        tasks = [task for task in job.tasks.values() if task.cls.claims]
        if not job.role_min:
            ordered = sorted(tasks, key=lambda task: (task.name, task.uid))
            return _sum(self._demand(task.cls).all for task in ordered[: job.min_available])
        of_role: dict[str, TaskInfo] = {}
        for task in tasks:
            of_role.setdefault(task.role, task)
        needs: Amounts = Counter()
        for role, task in of_role.items():
            for quota, amount in self._demand(task.cls).all.items():
                needs[quota] = min(needs[quota] + amount * max(job.role_min.get(role, 0), 0), MOST)
        return needs

    def refuses(self, at: Standing, needs: Amounts) -> tuple[str, str, int, int, int] | None:
        """As `shortage`, for a job that asks to be admitted; what was admitted before it counts too."""
        for each in at.path:
            account = self._accounts.get(each.queue.name)
            for quota, asked in sorted(needs.items()) if account is not None else ():
                assert account is not None
                limit = self._limit(account, quota)
                used = min(account.held[quota] + account.admitted[quota], MOST)
                if limit is not None and used + asked > limit:
                    return each.queue.name, quota, asked, limit - used, limit
        return None

    def admit(self, at: Standing, needs: Amounts) -> None:
        """A job was admitted."""
        for each in at.path:
            account = self._accounts.get(each.queue.name)
            if account is not None:
                account.admitted = _sum([account.admitted, needs])

    # -- what is held ----------------------------------------------------------------------------------------------------

    def take(self, at: Standing, task: TaskInfo) -> None:
        """A task got its node."""
        self._move(at, task, 1)

    def give_back(self, at: Standing, task: TaskInfo) -> None:
        """A task lost its node."""
        self._move(at, task, -1)

    def _move(self, at: Standing, task: TaskInfo, sign: int) -> None:
        if not task.cls.claims or not self._accounts:
            return
        demand = self._demand(task.cls)
        for each in at.path:
            account = self._accounts.get(each.queue.name)
            if account is None:
                continue
            for quota, amount in demand.each.items():
                account.held[quota] += sign * amount
            for claim, amounts in demand.shared.items():
                was = account.users[claim]
                account.users[claim] += sign
                if not was or not account.users[claim]:
                    for quota, amount in amounts.items():
                        account.held[quota] += sign * amount

    def told(self, queue: str) -> tuple[dict[str, int], dict[str, int]]:
        """What a queue holds of devices, and its limits."""
        account = self._accounts.get(queue)
        if account is None:
            return {}, {}
        return {quota: amount for quota, amount in account.held.items() if amount}, account.limits

    # -- what classes ask --------------------------------------------------------------------------------------------------

    def _demand(self, cls: TaskClass) -> Demand:
        found = self._demands.get(cls)
        if found is None:
            found = self._demands[cls] = self._read(cls)
        return found

    def _read(self, cls: TaskClass) -> Demand:
        each: list[Amounts] = []
        shared: defaultdict[str, Amounts] = defaultdict(Counter)
        for use in cls.spec.get("resourceClaims") or ():
            if name := use.get("resourceClaimName"):
                claim = self._catalog.claim(f"{cls.namespace}/{name}")
                shared[str(name)] = _asked((claim or {}).get("spec") or {})
            elif name := use.get("resourceClaimTemplateName"):
                template = self._catalog.template(f"{cls.namespace}/{name}")
                each.append(_asked(((template or {}).get("spec") or {}).get("spec") or {}))
        return Demand(_sum(each), {f"{cls.namespace}/{name}": amounts for name, amounts in shared.items() if amounts})


def _asked(spec: Mapping[str, Any]) -> Amounts:
    """What a claim asks of quotas. Alternatives and requests for all devices cannot be counted, as in Volcano."""
    found: Amounts = Counter()
    for request in (spec.get("devices") or {}).get("requests") or ():
        exactly = request.get("exactly") or {}
        device_class = exactly.get("deviceClassName")
        if not device_class or request.get("firstAvailable") or exactly.get("allocationMode") == "All":
            continue
        quota = f"{DEVICE_QUOTA}{device_class}"
        found[quota] = min(found[quota] + 1000 * int(exactly.get("count") or 1), MOST)
        for dimension, amount in ((exactly.get("capacity") or {}).get("requests") or {}).items():
            found[f"{dimension}.{quota}"] += to_units(quota, amount)
    return found


def _limits(queue: QueueInfo) -> dict[str, int] | None:
    """A queue's limits of devices; None for one that says nothing of devices at all."""
    spec = queue.obj.get("spec") or {}
    parts = (spec.get("capability"), spec.get("deserved"), (spec.get("guarantee") or {}).get("resource"))
    if not any(DEVICE_QUOTA in str(name) for part in parts for name in part or ()):
        return None
    return {str(name): to_units(str(name), amount) for name, amount in (parts[0] or {}).items() if DEVICE_QUOTA in str(name)}


def _holding(jobs: Iterable[JobInfo]) -> Iterator[TaskInfo]:
    for job in jobs:
        for status in ALLOCATED_SET:
            yield from job.by_status[status].values()


def _sum(parts: Iterable[Amounts]) -> Amounts:
    total: Amounts = Counter()
    for part in parts:
        for quota, amount in part.items():
            total[quota] = min(total[quota] + amount, MOST)
    return total
