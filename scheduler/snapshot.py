"""A cluster's objects at one moment, with a configuration: what cycles can be run on without a cluster.

The scheduler, tests, benches and dry runs share this one type. It is saved as a Kubernetes `List`, the configuration in
a ConfigMap as Volcano's chart keeps it, and read back from that or from any YAML or JSON of such objects.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from random import Random

import orjson

from cluster import documents, objects, volumes
from cluster.embedded.patches import merge
from cluster.errors import BadRequest
from cluster.kinds import (
    CLAIM,
    CONFIG_MAP,
    DISRUPTION_BUDGET,
    HYPER_NODE,
    NAMESPACE,
    NODE,
    POD,
    POD_GROUP,
    PRIORITY_CLASS,
    QUEUE,
    RESOURCE_CLAIM,
    RESOURCE_QUOTA,
    VOLUME,
    Kind,
    by_api,
)
from cluster.objects import HOSTNAME_LABEL
from cluster.port import Binding, Obj, WatchEvent
from cluster.said import said
from scheduler import conf as configuration
from scheduler.cache import KINDS, SchedulerCache
from scheduler.cycle import Cycle, run_cycle
from scheduler.model.supply import Supply
from scheduler.status import StatusKeeper
from scheduler.topology.nodes import choose_gpus

CONF_KEY = "volcano-scheduler.conf"
MOMENT_KEY = "basalt-moment.json"


@dataclass(slots=True)
class Snapshot:
    """Objects by kind, in the order given, and the text of a configuration. `estate`: those about volumes and devices.

    `at` is the moment (epoch seconds; 0 where nobody says), `usage` what nodes were measured to use then.
    """

    nodes: list[Obj] = field(default_factory=list)
    queues: list[Obj] = field(default_factory=list)
    pod_groups: list[Obj] = field(default_factory=list)
    pods: list[Obj] = field(default_factory=list)
    priority_classes: list[Obj] = field(default_factory=list)
    namespaces: list[Obj] = field(default_factory=list)
    budgets: list[Obj] = field(default_factory=list)
    hyper_nodes: list[Obj] = field(default_factory=list)
    quotas: list[Obj] = field(default_factory=list)
    config_maps: list[Obj] = field(default_factory=list)
    estate: dict[Kind, list[Obj]] = field(default_factory=dict)
    conf: str = configuration.DEFAULT
    at: float = 0.0
    usage: dict[str, tuple[float, float, float]] = field(default_factory=dict)

    @classmethod
    def of(cls, objs: Iterable[Obj], conf: str = "") -> Snapshot:
        """Sort objects by their kinds; other kinds are left out, but a ConfigMap with a scheduler's configuration is used."""
        found = cls()
        for obj in objs:
            kind = by_api(str(obj.get("apiVersion")), str(obj.get("kind")))
            data = obj.get("data") if kind == CONFIG_MAP else None
            if isinstance(data, dict) and isinstance(data.get(CONF_KEY), str):
                found.conf = data[CONF_KEY]
                found._of_moment(data.get(MOMENT_KEY))
            elif kind is not None and cls.holds(kind):
                found._of_kind(kind).append(obj)
        if conf:
            found.conf = conf
        return found

    @classmethod
    def load(cls, text: str | bytes, conf: str = "", *, limit: int = 1 << 28) -> Snapshot:
        """Read a saved snapshot, or any YAML or JSON documents. Raises BadRequest with the line."""
        try:
            items = orjson.loads(text)["items"]  # what `dump` wrote, large as it may be
        except (orjson.JSONDecodeError, KeyError, TypeError):
            most = max(len(text), documents.MAX_NODES)  # a text cannot hold more values, unless it repeats them
            items = [document.obj for document in documents.load(text, limit=limit, most=most)]
        if not (isinstance(items, list) and all(isinstance(obj, dict) for obj in items)):
            raise BadRequest(said("the file is no list of objects: a snapshot has them in items"))
        return cls.of(items, conf)

    @staticmethod
    def holds(kind: Kind) -> bool:
        """Whether objects of a kind are part of a snapshot."""
        return kind in KINDS

    def _of_kind(self, kind: Kind) -> list[Obj]:
        if kind in _FIELDS:
            found: list[Obj] = getattr(self, _FIELDS[kind])
            return found
        return self.estate.setdefault(kind, [])

    def _of_moment(self, text: object) -> None:
        """What `dump` wrote of the moment; nothing where it did not."""
        try:
            told = orjson.loads(text) if isinstance(text, str) else {}
            self.at = float(told.get("at", 0.0))
            self.usage = {str(name): (float(a), float(b), float(c)) for name, (a, b, c) in (told.get("usage") or {}).items()}
        except (orjson.JSONDecodeError, AttributeError, TypeError, ValueError):
            raise BadRequest(said("the ConfigMap's %(key)s is not what a snapshot has there", key=MOMENT_KEY)) from None

    def dump(self) -> bytes:
        """The snapshot as one JSON List of Kubernetes objects."""
        conf: Obj = {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": "volcano-scheduler-configmap", "namespace": "volcano-system"},
            "data": {CONF_KEY: self.conf},
        }
        if self.at or self.usage:
            conf["data"][MOMENT_KEY] = orjson.dumps({"at": self.at, "usage": self.usage}).decode()
        items = [conf, *(obj for _, obj in self.objects())]
        return orjson.dumps({"apiVersion": "v1", "kind": "List", "items": items}, option=orjson.OPT_INDENT_2)

    def objects(self) -> Iterable[tuple[Kind, Obj]]:
        """Every object with its kind, in the order in which a cache takes them in best."""
        for kind in KINDS:
            for obj in getattr(self, _FIELDS[kind]) if kind in _FIELDS else self.estate.get(kind, ()):
                yield kind, obj

    def cache(self, scheduler_names: Collection[str] = ("volcano",)) -> SchedulerCache:
        """A cache that has taken everything in. The queues `root` and `default` are there in any case, as in a cluster."""
        cache = SchedulerCache(scheduler_names, choose_gpus)
        for name in sorted({"root", "default"} - {objects.name(queue) for queue in self.queues}):
            cache.apply(WatchEvent("ADDED", QUEUE, {**_DEFAULT_QUEUE, "metadata": {"name": name}}))
        cache.apply_all(WatchEvent("ADDED", kind, obj) for kind, obj in self.objects())
        cache.usage = dict(self.usage)
        return cache


_DEFAULT_QUEUE: Obj = {"apiVersion": QUEUE.api_version, "kind": "Queue", "spec": {"weight": 1}, "status": {"state": "Open"}}
_FIELDS: dict[Kind, str] = {
    CONFIG_MAP: "config_maps",
    NODE: "nodes",
    QUEUE: "queues",
    POD_GROUP: "pod_groups",
    POD: "pods",
    PRIORITY_CLASS: "priority_classes",
    NAMESPACE: "namespaces",
    DISRUPTION_BUDGET: "budgets",
    HYPER_NODE: "hyper_nodes",
    RESOURCE_QUOTA: "quotas",
}


class Offline:
    """Cycles over a snapshot without a cluster: every bind and status is taken as done before the next cycle."""

    def __init__(
        self, snapshot: Snapshot, *, now: float = 0.0, seed: int = 0, scheduler_names: Collection[str] = ("volcano",)
    ) -> None:
        self.conf = configuration.load(snapshot.conf)
        self.cache = snapshot.cache(scheduler_names)
        self.now = now
        self._keeper, self._number = StatusKeeper(), 0
        self._random = Random(seed)  # noqa: S311 - ties and samples, nothing secret

    def cycle(self) -> Cycle:
        """Run one cycle and take in what it decided."""
        done = self.decide()
        self.take_in(done)
        return done

    def decide(self) -> Cycle:
        """Run one cycle; what it decided is only assumed so far."""
        self._number += 1
        done = run_cycle(self.cache, self.conf, self._keeper, self._number, now=self.now, random=self._random)
        self.now += 1.0
        return done

    def take_in(self, done: Cycle) -> None:
        """Take binds and statuses as written; a bound pod stays Pending with its node, as no kubelet runs it.

        An evicted pod is gone at once.
        """
        for binding in done.binds:
            self._supply(binding, done.supplies.get(binding.uid))
            self._modify(POD, bound(dict(self.cache.tasks[binding.uid].pod), binding.node, binding.annotations))
        for eviction in done.evictions:
            self.cache.apply(WatchEvent("DELETED", POD, dict(self.cache.tasks[eviction.uid].pod)))
        for task in done.released:
            spec = {key: value for key, value in task.pod["spec"].items() if key != "schedulingGates"}
            self._modify(POD, {**task.pod, "spec": spec})
        for write in done.writes.statuses:
            if write.kind == POD_GROUP:
                job = self.cache.jobs[f"{write.namespace}/{write.name}"]
                job.sent = None
                job.touch()
                self._modify(POD_GROUP, marked({**job.obj, "status": write.status}, write.annotations))

    def _supply(self, binding: Binding, supply: Supply | None) -> None:
        """Claims as they are once volumes and devices were given to them."""
        if not supply:
            return
        storage, devices = self.cache.estate.storage, self.cache.estate.devices
        for choice in supply.volumes:
            claim = storage.claim(choice.claim)
            volume = storage.volume(choice.volume) if choice.volume else None
            if claim is None or volumes.is_bound(claim):
                continue
            if volume is None:
                volume = volumes.provisioned(claim, storage.storage_class(claim) or {}, {HOSTNAME_LABEL: choice.node}, ())
            self._modify(VOLUME, merge(volume, {**volumes.reserving(claim), "status": {"phase": "Bound"}}))
            self._modify(CLAIM, merge(claim, {**volumes.binding(volume), "status": volumes.bound_status(volume)}))
        for given in supply.devices:
            claim = devices.claim(given.claim)
            if claim is not None:
                status = claim.get("status") or {}
                user = {"resource": "pods", "name": binding.name, "uid": binding.uid}
                new = {"allocation": status.get("allocation") or given.allocation}
                new["reservedFor"] = [*(status.get("reservedFor") or ()), user]
                self._modify(RESOURCE_CLAIM, {**claim, "status": {**status, **new}})

    def _modify(self, kind: Kind, obj: Obj) -> None:
        self.cache.apply(WatchEvent("MODIFIED", kind, obj))


def bound(pod: Obj, node: str, annotations: dict[str, str]) -> Obj:
    """A copy of a pod as a bind leaves it."""
    return {**marked(pod, annotations), "spec": {**pod["spec"], "nodeName": node}}


def marked(obj: Obj, annotations: Mapping[str, str | None]) -> Obj:
    """A copy of an object with further annotations, those that are None removed."""
    found = {**(obj["metadata"].get("annotations") or {}), **annotations}
    kept = {key: value for key, value in found.items() if value is not None}
    return {**obj, "metadata": {**obj["metadata"], "annotations": kept}}
