"""The scheduler's cache in simulated time: what cycles decide is done at once, and pods run from the moment they are bound."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from cluster import objects
from cluster.kinds import NODE, POD, POD_GROUP, Kind
from cluster.port import Obj, WatchEvent
from scheduler.cycle import Cycle
from scheduler.framework.session import Session
from scheduler.model.jobs import JobInfo
from scheduler.snapshot import Offline, Snapshot, bound, marked
from scheduler.status import StatusKeeper, Writes


class Quiet(StatusKeeper):
    """Keeps only the phases of PodGroups, on which the scheduler's own decisions rest: nobody reads the rest here."""

    def _due(self, ssn: Session) -> list[str]:
        changed = [job.uid for job in ssn.roster.unsaid()]
        return list(dict.fromkeys([*changed, *ssn.admitted]))

    def _pods(self, *_args: Any) -> None:
        pass

    def _job_event(self, *_args: Any) -> None:
        pass

    def _evicted(self, ssn: Session, writes: Writes) -> None:
        pass

    def _queues_allocated(self, ssn: Session, writes: Writes) -> None:
        pass


class World(Offline):
    """The objects of a simulated cluster, and the cycles over them."""

    def __init__(self, snapshot: Snapshot, *, now: float, seed: int, scheduler_names: Iterable[str]) -> None:
        super().__init__(snapshot, now=now, seed=seed, scheduler_names=tuple(scheduler_names))
        self._keeper = Quiet()
        self._changed: dict[tuple[str, str], Obj] = {}

    # -- what happens --------------------------------------------------------------------------------------------------

    def put(self, kind: Kind, obj: Obj) -> None:
        """An object is there, in this version."""
        self.cache.apply(WatchEvent("ADDED", kind, obj))

    def remove(self, kind: Kind, obj: Obj) -> None:
        """An object is gone."""
        self.cache.apply(WatchEvent("DELETED", kind, obj))

    def pods_on(self, node: str) -> list[str]:
        """Uids of the pods on a node, in order."""
        row = self.cache.nodes.index.get(node)
        return [] if row is None else sorted(self.cache.nodes.tasks[row])

    def node_ready(self, name: str, ready: bool) -> None:
        """A node fails, or is well again."""
        row = self.cache.nodes.index[name]
        node = self.cache.nodes.objects[row]
        condition = {"type": "Ready", "status": "True" if ready else "False"}
        others = [c for c in node["status"].get("conditions") or () if c.get("type") != "Ready"]
        self.put(NODE, {**node, "status": {**node["status"], "conditions": [*others, condition]}})

    def job(self, key: str) -> JobInfo | None:
        """The scheduler's view of a PodGroup."""
        return self.cache.jobs.get(key)

    # -- cycles --------------------------------------------------------------------------------------------------------

    def cycle_at(self, now: float) -> Cycle:
        """Run one cycle at a moment (epoch seconds)."""
        self.now = now
        return self.decide()

    def take_in(self, done: Cycle) -> None:
        """Bound pods run at once; evicted ones are being ended until the engine says that they are gone."""
        for binding in done.binds:
            self._supply(binding, done.supplies.get(binding.uid))
            pod = bound(dict(self.cache.tasks[binding.uid].pod), binding.node, binding.annotations)
            self.cache.apply(WatchEvent("MODIFIED", POD, {**pod, "status": {"phase": "Running"}}))
        for eviction in done.evictions:
            pod = dict(self.cache.tasks[eviction.uid].pod)
            meta = {**pod["metadata"], "deletionTimestamp": objects.stamp(self.now)}
            self.cache.apply(WatchEvent("MODIFIED", POD, {**pod, "metadata": meta}))
        for task in done.released:
            spec = {key: value for key, value in task.pod["spec"].items() if key != "schedulingGates"}
            self.cache.apply(WatchEvent("MODIFIED", POD, {**task.pod, "spec": spec}))
        for write in done.writes.statuses:
            job = self.cache.jobs.get(f"{write.namespace}/{write.name}") if write.kind == POD_GROUP else None
            if job is not None:
                job.sent = None
                job.touch()
                self.cache.apply(
                    WatchEvent("MODIFIED", POD_GROUP, marked({**job.obj, "status": write.status}, write.annotations))
                )

    # -- to be kept ----------------------------------------------------------------------------------------------------

    def _modify(self, kind: Kind, obj: Obj) -> None:
        self._changed[kind.kind, objects.key(obj)] = obj
        super()._modify(kind, obj)

    def state(self, statics: Iterable[Obj]) -> dict[str, Any]:
        """The objects as they are now, JSON-ready; `statics` are those that it began with."""
        cache, moving = self.cache, {NODE.kind, POD_GROUP.kind, POD.kind}
        nodes = [dict(cache.nodes.objects[row]) for row in sorted(cache.nodes.index.values())]
        others = [obj for obj in statics if obj["kind"] not in moving]
        known = {(obj["kind"], objects.key(obj)): obj for obj in others} | self._changed
        groups = [dict(job.obj) for job in cache.jobs.values() if job.obj]
        pods = [dict(task.pod) for task in cache.tasks.values()]
        return {
            "objects": [*nodes, *known.values(), *groups, *pods],
            "admitted": {uid: job.admitted_at for uid, job in cache.jobs.items() if job.obj},
            "random": self._random.getstate(),
            "number": self._number,
            "now": self.now,
        }

    @classmethod
    def of(cls, state: Mapping[str, Any], conf: str, scheduler_names: Iterable[str]) -> World:
        """Objects that were kept, in a new cache."""
        world = cls(Snapshot.of(state["objects"], conf), now=state["now"], seed=0, scheduler_names=scheduler_names)
        version, inner, gauss = state["random"]
        world._random.setstate((version, tuple(inner), gauss))
        world._number = state["number"]
        for uid, at in state["admitted"].items():
            world.cache.jobs[uid].admitted_at = at
        return world
