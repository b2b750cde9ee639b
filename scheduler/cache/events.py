"""Watch events become changes of the model, one by one, and the model is opened to sessions.

Only the thread that owns the model calls it, between sessions. A bad object never stops the others: it is set aside
with its reason (`aside`) and takes no part until it is mended. Binds that were decided are assumed until the watch
confirms them or they fail.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from random import Random
from typing import Any

from cluster import objects
from cluster.kinds import (
    CONFIG_MAP,
    DISRUPTION_BUDGET,
    HYPER_NODE,
    NAMESPACE,
    NODE,
    POD,
    POD_GROUP,
    PRIORITY_CLASS,
    QUEUE,
    RESOURCE_QUOTA,
    Kind,
)  # fmt: skip
from cluster.port import Obj, WatchEvent
from scheduler.cache.groups import Groups
from scheduler.cache.pods import Held, Pods
from scheduler.calls import PostAll
from scheduler.conf import Configuration
from scheduler.estate import KINDS as ESTATE_KINDS
from scheduler.estate import Estate
from scheduler.framework.explain import Code, Stage, Verdict
from scheduler.framework.session import Session
from scheduler.framework.view import View
from scheduler.measuring import Usage
from scheduler.model import build, shapes
from scheduler.model.devices import DEVICE_CONFIG
from scheduler.model.jobs import JobInfo
from scheduler.model.nodes import ChooseGpus, NodeTable, lowest_gpus
from scheduler.model.queues import QueueInfo
from scheduler.model.quotas import Quota, quota
from scheduler.model.resources import Dimensions
from scheduler.model.services import KINDS as SERVICE_KINDS
from scheduler.model.tasks import TaskInfo
from scheduler.placement.oversize import Oversize
from scheduler.topology.hypernodes import HyperNodes, NetworkTree
from scheduler.topology.places import Places

KINDS: tuple[Kind, ...] = (
    CONFIG_MAP, NODE, QUEUE, PRIORITY_CLASS, NAMESPACE, DISRUPTION_BUDGET, HYPER_NODE, RESOURCE_QUOTA,
    *ESTATE_KINDS, POD_GROUP, POD,
)  # fmt: skip
"""What the scheduler watches; on a list this order needs no second look at anything."""


@dataclass(frozen=True, slots=True)
class Aside:
    """An object that makes no sense to the scheduler, and why."""

    kind: str
    key: str
    reason: str


class SchedulerCache:
    """The model, kept up to date by events."""

    def __init__(self, scheduler_names: Collection[str] = ("volcano",), choose_gpus: ChooseGpus = lowest_gpus) -> None:
        self.scheduler_names = frozenset(scheduler_names)
        self.dims = Dimensions()
        self.nodes = NodeTable(self.dims.width, choose_gpus=choose_gpus)
        self.groups = Groups(self.dims)
        self.pods = Pods(self.scheduler_names, self.dims, self.nodes, self.groups, self._fit)
        self.namespaces: dict[str, Obj] = {}
        self.estate = Estate(self.pods.tasks)
        self.budgets: dict[str, Obj] = {}
        self.hyper_nodes = NetworkTree(self.nodes)
        self.device_configs: dict[str, Obj] = {}
        self.aside: dict[tuple[str, str], Aside] = {}
        self.memo: dict[Any, Any] = {}
        self.usage: Usage = {}
        self.post: PostAll | None = None
        self._quotas: dict[str, dict[str, Quota]] = {}
        self._oversize = Oversize(self.nodes, self.dims)
        self._places: Places | None = None
        self._appliers: dict[Kind, Callable[[Obj, bool], bool | None]] = {
            NODE: self.pods.node,
            POD: self.pods.pod,
            POD_GROUP: self.groups.group,
            QUEUE: self.groups.queue,
            PRIORITY_CLASS: self.groups.priority_class,
            NAMESPACE: lambda obj, gone: _keep(self.namespaces, objects.name(obj), obj, gone),
            DISRUPTION_BUDGET: lambda obj, gone: _keep(self.budgets, objects.key(obj), obj, gone),
            HYPER_NODE: self.hyper_nodes.apply,
            RESOURCE_QUOTA: self._quota,
            CONFIG_MAP: self._config_map,
            **self.estate.appliers(),
        }

    @property
    def jobs(self) -> dict[str, JobInfo]:
        """PodGroups, and groups that pods name, by `namespace/name`."""
        return self.groups.jobs

    @property
    def queues(self) -> dict[str, QueueInfo]:
        """Queues by name."""
        return self.groups.queues

    @property
    def tasks(self) -> dict[str, TaskInfo]:
        """Pods by uid."""
        return self.pods.tasks

    @property
    def classes(self) -> build.Classes:
        """The classes of those pods."""
        return self.pods.classes

    def doubts(self) -> list[Aside]:
        """What was set aside, and groups that pods name and nobody made, or somebody deleted; as of the last session."""
        missing = [
            Aside(POD_GROUP.kind, uid, f"it does not exist, and is named by so many pods: {len(job.tasks)}")
            for uid, job in self.groups.roster.groupless.items()
            if (POD_GROUP.kind, uid) not in self.aside
        ]
        return [*self.aside.values(), *missing]

    # -- events --------------------------------------------------------------------------------------------------------

    def apply(self, event: WatchEvent) -> bool:
        """Take one event in; whether it may change what is decided. Never raises for what an object says."""
        if event.kind is None or event.kind not in self._appliers:
            return False
        matters = event.kind not in SERVICE_KINDS
        key, gone = (event.kind.kind, objects.key(event.object)), event.type == "DELETED"
        self.aside.pop(key, None)
        try:
            if not gone:
                shapes.check(event.kind, event.object)
            matters = self._appliers[event.kind](event.object, gone) is not False and matters
        except Exception as error:  # noqa: BLE001 - whatever one object says, the others go on
            self._set_aside(event.kind, event.object)
            if not gone:
                self.aside[key] = Aside(*key, shapes.reason(event.kind, event.object, error))
        self._fit()
        return matters

    def apply_all(self, events: Iterable[WatchEvent]) -> int:
        """Take events in, in order; how many may change what is decided."""
        return sum(self.apply(event) for event in events)

    def _set_aside(self, kind: Kind, obj: Obj) -> None:
        """Take what was known of a bad object out of the model, so that nothing rests on an outdated version of it."""
        if kind == NODE:
            self.pods.drop_node(objects.name(obj))
        elif kind == POD:
            self.pods.drop_pod(str(objects.uid(obj)))
        elif kind == POD_GROUP:
            self.groups.drop_group(objects.key(obj))
        elif kind == QUEUE:
            self.groups.drop_queue(objects.name(obj))
        elif kind == HYPER_NODE:
            self.hyper_nodes.drop(objects.name(obj))
        elif kind in ESTATE_KINDS:
            self.estate.drop(kind, obj)

    def _fit(self) -> None:
        """Follow a dimension table that grew."""
        width = self.dims.width
        if width <= self.nodes.width:
            return
        self.nodes.widen(width)
        for cls in self.classes.known():
            cls.widen(width)
        for job in self.jobs.values():
            job.widen(width)
        for queue in self.queues.values():
            queue.widen(width)
        self.groups.roster.widen(width)
        self._oversize = Oversize(self.nodes, self.dims)
        self.memo.clear()

    # -- what was decided ----------------------------------------------------------------------------------------------

    def bind_failed(self, uid: str) -> None:
        """A bind was refused: the task goes back, unless the watch already said where it is."""
        self.pods.bind_failed(uid)

    def evict_failed(self, uid: str) -> None:
        """An eviction was refused: the task has its node again."""
        self.pods.evict_failed(uid)

    def hand_back(self, held: Mapping[str, Held]) -> None:
        """Tasks that came anew have what they held of their nodes' GPUs before."""
        self.pods.hand_back(held)

    # -- what is kept as it came ---------------------------------------------------------------------------------------

    def _quota(self, obj: Obj, gone: bool) -> None:
        """Keep a quota; a version that cannot be read takes the place of one that could, and limits nothing."""
        quotas = self._quotas.setdefault(objects.namespace(obj), {})
        quotas.pop(objects.name(obj), None)
        if not gone:
            quotas[objects.name(obj)] = quota(obj)

    def _config_map(self, obj: Obj, gone: bool) -> bool:
        """Of all ConfigMaps only those about devices matter; what they say is as static as the nodes."""
        key, about_devices = objects.key(obj), DEVICE_CONFIG in (obj.get("data") or {})
        if about_devices or key in self.device_configs:
            _keep(self.device_configs, key, obj, gone or not about_devices)
            self.nodes.static_version += 1
            return True
        return False

    # -- sessions ------------------------------------------------------------------------------------------------------

    def open_session(
        self, uid: str, conf: Configuration, *, now: float, random: Random, only: Collection[str] | None = None
    ) -> Session:
        """A session over the live model. Jobs whose queue is unknown stay outside, with a verdict; `only` some are served."""
        roster = self.groups.roster
        changed = roster.settle()
        self._oversize.mark(changed if self._oversize.is_current else dict.fromkeys([*changed, *roster.active.values()]))
        view = View(
            dims=self.dims, nodes=self.nodes, jobs=roster.jobs, queues=self.queues, roster=roster,
            places=self._found_places(changed), classes=self.classes.count.keys(), estate=self.estate,
            namespaces={name: objects.labels(obj) for name, obj in self.namespaces.items()},
            quotas={name: tuple(found.values()) for name, found in self._quotas.items() if found},
            budgets=list(self.budgets.values()), device_configs=self.device_configs, usage=self.usage, post=self.post,
            memo=self.memo,
        )  # fmt: skip
        ssn = Session(uid, conf, view, now=now, random=random, only=only)
        for job in roster.strays.values():
            ssn.verdicts[job.uid] = Verdict(Stage.ADMISSION, Code.QUEUE_MISSING, queue=job.queue)
        ssn.open()
        return ssn

    def _found_places(self, changed: Sequence[JobInfo]) -> Places:
        """Where gangs with a topology are: found again for those that changed, for all when the network did."""
        tree, divided = self._network(), self.groups.roster.divided
        if self._places is None or self._places.tree is not tree:
            self._places = Places(tree, divided.values())
            for job in divided.values():
                job.touch()
        else:
            self._places.forget(changed)
            self._places.find(job for job in changed if divided.get(job.uid) is job)
        return self._places.copy()

    def _network(self) -> HyperNodes:
        """The tree of HyperNodes as of now; what contradicts itself in it is set aside."""
        if self.hyper_nodes.is_current:
            return self.hyper_nodes.tree()
        for name in self.hyper_nodes.aside:
            self.aside.pop((HYPER_NODE.kind, f"/{name}"), None)
        tree = self.hyper_nodes.tree()
        for name, reason in tree.aside.items():
            found = Aside(HYPER_NODE.kind, f"/{name}", reason)
            self.aside[found.kind, found.key] = found
        return tree


def _keep(store: dict[str, Obj], key: str, obj: Obj, gone: bool) -> None:
    if gone:
        store.pop(key, None)
    else:
        store[key] = obj
