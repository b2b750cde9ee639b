"""Plays a random cluster: cycles with events between them, and after each what must hold whatever the configuration says."""

from __future__ import annotations

from collections import Counter, defaultdict
from copy import deepcopy
from random import Random
from typing import Any

import numpy as np
import yaml

from cluster import objects
from cluster.kinds import NODE, POD, POD_GROUP, QUEUE, RESOURCE_CLAIM, Kind, by_api
from cluster.port import Obj, WatchEvent
from scheduler.cycle import Cycle, run_cycle
from scheduler.model.tasks import READY_SET, TaskStatus
from scheduler.snapshot import Offline, Snapshot, bound
from scheduler.status import StatusKeeper
from tests.scheduler.test_statement import ARRAYS

NOW = 1_000_000.0
MAKES_ROOM = ("preempt", "reclaim", "gangpreempt", "gangreclaim")
ENDED = ("Succeeded", "Failed")


class Broken(AssertionError):
    """Something that must hold does not."""


class Recorded(Offline):
    """Takes decisions in as a cluster with its own mind: it refuses some, and lets evicted pods linger."""

    def __init__(self, objs: list[Obj], conf: str, random: Random) -> None:
        self.truth: dict[tuple[Kind, str], Obj] = {}
        super().__init__(Snapshot.of(deepcopy(objs), conf), now=NOW)
        self.random = random
        for obj in objs:
            self.truth[_key(obj)] = obj

    def apply(self, what: str, obj: Obj) -> None:
        """An event, to the cache and to the truth."""
        kind, key = _key(obj)
        if what == "DELETED":
            self.truth.pop((kind, key), None)
        else:
            self.truth[kind, key] = obj
        self.cache.apply(WatchEvent(what, kind, deepcopy(obj)))

    def _modify(self, kind: Kind, obj: Obj) -> None:
        self.apply("MODIFIED", obj)

    def pods(self) -> list[Obj]:
        return [obj for (kind, _), obj in self.truth.items() if kind == POD]

    def all(self, kind: Kind) -> list[Obj]:
        return [obj for (each, _), obj in self.truth.items() if each == kind]

    def settle(self, done: Cycle, *, failing: float) -> None:
        """Carry decisions out, some in vain."""
        binds, evictions = [], []
        for binding in done.binds:
            if self.random.random() < failing:
                self.cache.bind_failed(binding.uid)
            else:
                binds.append(binding)
        for eviction in done.evictions:
            if self.random.random() < failing:
                self.cache.evict_failed(eviction.uid)
            else:
                evictions.append(eviction)
        for binding in binds:
            self._supply(binding, done.supplies.get(binding.uid))
            pod = bound(self.truth[POD, f"{binding.namespace}/{binding.name}"], binding.node, binding.annotations)
            self.apply("MODIFIED", pod)
            if self.random.random() < 0.7:
                self.apply("MODIFIED", {**pod, "status": {"phase": "Running"}})
        for eviction in evictions:
            pod = self.truth[POD, f"{eviction.namespace}/{eviction.name}"]
            if self.random.random() < 0.5:
                self.apply("DELETED", pod)
            else:
                self.apply("MODIFIED", leaving(pod))
        done.binds, done.evictions = [], []
        self.take_in(done)


def leaving(pod: Obj) -> Obj:
    return {**pod, "metadata": {**pod["metadata"], "deletionTimestamp": objects.stamp(NOW)}}


def _key(obj: Obj) -> tuple[Kind, str]:
    kind = by_api(obj["apiVersion"], obj["kind"])
    assert kind is not None
    return kind, objects.key(obj)


# -- one play ---------------------------------------------------------------------------------------------------------------


def play(
    parts: list[list[Obj]], later: list[list[Obj]], conf: dict[str, Any], events: list[tuple[str, int]], *, seed: int = 0
) -> Recorded:
    """`events` are (what happens, to which): one cycle runs whenever one is "cycle"."""
    text = yaml.safe_dump(conf, sort_keys=False)
    objs, later = [obj for part in parts for obj in part], deepcopy(later)
    world = Recorded(objs, text, Random(seed))
    known: dict[str, Any] = {}
    for what, which in events:
        if what == "cycle":
            cycle(world, known, failing=0.3 if which % 4 == 0 else 0.0)
        else:
            happen(world, what, which, later)
    return world


def cycle(world: Recorded, known: dict[str, Any], *, failing: float) -> None:
    same_as_counted_anew(world)
    before = {key: obj for key, obj in world.truth.items() if key[0] == POD}
    waiting = {uid: job.phase for uid, job in world.cache.jobs.items()}
    twin = twin_of(world)
    done = world.decide()
    deterministic(world, done, twin)
    sound_binds(world, before, done)
    sound_evictions(world, before, done)
    nothing_overcommitted(world, before, done)
    gangs_whole(world, done)
    queues_within_limits(world, done)
    for uid, verdict in done.record.verdicts.items():
        known.pop(uid, None) if verdict is None else known.update({uid: verdict})
    everybody_is_told(world, known, waiting, done)
    world.settle(done, failing=failing)


def happen(world: Recorded, what: str, which: int, later: list[list[Obj]]) -> None:
    """Something from outside."""
    if what == "arrive":
        for obj in later.pop(0) if later else ():
            world.apply("ADDED", obj)
        return
    kind = {"pod": POD, "node": NODE, "group": POD_GROUP, "queue": QUEUE}.get(what.partition("-")[0])
    found = (
        world.all(kind)
        if kind
        else [obj for obj in world.truth.values() if obj["kind"] not in ("Pod", "PodGroup", "Node", "Queue")]
    )
    if not found:
        return
    obj = found[which % len(found)]
    match what.partition("-")[2]:
        case "gone":
            world.apply("DELETED", obj)
        case "leaves":
            world.apply("MODIFIED", leaving(obj))
        case "ends" if obj["spec"].get("nodeName"):
            world.apply("MODIFIED", {**obj, "status": {"phase": ENDED[which % 2]}})
        case "cordoned":
            world.apply("MODIFIED", {**obj, "spec": {**obj["spec"], "unschedulable": which % 2 == 0}})
        case "shrinks":
            amounts = {**obj["status"]["allocatable"], "cpu": str(which % 8)}
            world.apply("MODIFIED", {**obj, "status": {**obj["status"], "allocatable": amounts}})
        case "back":
            world.apply("DELETED", obj)
            world.apply("ADDED", {**obj, "metadata": {**obj["metadata"], "uid": f"again-{which}"}})
        case "changes" if kind == POD_GROUP:
            world.apply("MODIFIED", {**obj, "spec": {**obj["spec"], "minMember": which % 5}})
        case "changes" if kind == QUEUE:
            spec = {**obj["spec"], "capability": {"cpu": str(which % 12)}, "weight": which % 5}
            world.apply("MODIFIED", {**obj, "spec": spec})
        case "closes":
            world.apply("MODIFIED", {**obj, "status": {"state": "Closed" if which % 2 else "Open"}})


EVENTS = (
    "arrive", "arrive", "pod-gone", "pod-leaves", "pod-ends", "pod-ends", "node-gone", "node-cordoned", "node-shrinks",
    "node-back", "group-gone", "group-changes", "queue-gone", "queue-changes", "queue-closes", "other-gone",
)  # fmt: skip


def random_events(random: Random) -> list[tuple[str, int]]:
    found: list[tuple[str, int]] = []
    for _ in range(random.randint(1, 5)):
        found.append(("cycle", random.randint(0, 99)))
        found += [(random.choice(EVENTS), random.randint(0, 99)) for _ in range(random.randint(0, 3))]
    return [*found, ("cycle", 1), ("cycle", 1)]


# -- what must hold ---------------------------------------------------------------------------------------------------------


def twin_of(world: Recorded) -> Recorded:
    """The same cluster as a scheduler that starts now sees it."""
    found = Recorded.__new__(Recorded)
    found.cache = Snapshot.of(deepcopy(list(world.truth.values()))).cache()
    found.conf, found.now, found.truth = world.conf, world.now, world.truth
    return found


def picture(cache: Any) -> dict[str, Any]:
    """What a cache has counted, by names."""
    nodes, names = cache.nodes, cache.dims.names
    found: dict[str, Any] = {}
    for name, row in sorted(nodes.index.items()):
        for array in ARRAYS:
            values = getattr(nodes, array)[row]
            matrix = getattr(values, "ndim", 0) == 1 and array != "nonzero"
            found[f"{name} {array}"] = (
                {n: int(v) for n, v in zip(names, values, strict=False) if v} if matrix else np.array(values).tolist()
            )
        found[f"{name} tasks"] = sorted(nodes.tasks[row])
        found[f"{name} ports"] = dict(+nodes.host_ports[row])
    for uid, job in sorted(cache.jobs.items()):
        held = {n: int(v) for n, v in zip(names, job.allocated, strict=False) if v}
        found[f"{uid} job"] = (held, {status.name: sorted(tasks) for status, tasks in zip(TaskStatus, job.by_status) if tasks})
    for uid, task in sorted(cache.tasks.items()):
        found[f"{uid} task"] = (task.status.name, nodes.names[task.node] if task.node >= 0 else "", task.gpus, task.cards)
    return found


def same_picture(left: dict[str, Any], right: dict[str, Any], what: str) -> None:
    wrong = [
        f"{key}: {left.get(key)} / {right.get(key)}"
        for key in sorted(left.keys() | right.keys())
        if left.get(key) != right.get(key)
    ]
    if wrong:
        raise Broken(f"{what}: {'; '.join(wrong[:4])}")


def same_as_counted_anew(world: Recorded) -> None:
    same_picture(picture(world.cache), picture(twin_of(world).cache), "counted by steps / anew")


def deterministic(world: Recorded, done: Cycle, twin: Recorded) -> None:
    """A scheduler that starts now decides twice the same, and leaves nothing behind when it takes all back."""
    outcomes, other = [], twin_of(twin)
    for _ in range(2):
        before = picture(twin.cache)
        again = run_cycle(twin.cache, twin.conf, StatusKeeper(), 1, now=twin.now, random=Random(0))
        outcomes.append((again.binds, again.evictions, again.record.verdicts, again.record.pipelined))
        for binding in again.binds:
            twin.cache.bind_failed(binding.uid)
        for eviction in again.evictions:
            twin.cache.evict_failed(eviction.uid)
        same_picture(before, picture(twin.cache), "before / after all was taken back")
        twin = other
    if outcomes[0] != outcomes[1]:
        raise Broken(f"two schedulers decide differently: {outcomes[0]} / {outcomes[1]}")


def holders(before: dict[Any, Obj], done: Cycle) -> dict[str, list[Obj]]:
    """Pods by the node that they hold, once the binds are done; who is being evicted holds its node still."""
    found: defaultdict[str, list[Obj]] = defaultdict(list)
    given = {f"{b.namespace}/{b.name}": b for b in done.binds}
    for (_, key), pod in before.items():
        if key in given:
            found[given[key].node].append(bound(pod, given[key].node, given[key].annotations))
        elif pod["spec"].get("nodeName") and pod["status"].get("phase") not in ENDED:
            found[pod["spec"]["nodeName"]].append(pod)
    return found


def sound_binds(world: Recorded, before: dict[Any, Obj], done: Cycle) -> None:
    seen = Counter(binding.uid for binding in done.binds)
    if twice := [uid for uid, count in seen.items() if count > 1]:
        raise Broken(f"bound twice: {twice}")
    for binding in done.binds:
        pod = before.get((POD, f"{binding.namespace}/{binding.name}"))
        if pod is None or pod["metadata"]["uid"] != binding.uid or pod["metadata"].get("deletionTimestamp"):
            raise Broken(f"bound though it is gone: {binding}")
        if pod["spec"].get("nodeName"):
            raise Broken(f"bound though it has a node: {binding}")
        if pod["spec"].get("schedulingGates"):
            raise Broken(f"bound behind a gate: {binding}")
        node = world.truth.get((NODE, f"/{binding.node}"))
        if node is None:
            raise Broken(f"bound to a node that is not there: {binding}")
        if (
            node["spec"].get("unschedulable")
            and _has(world, "predicates", "enablePredicate")
            and not pod["spec"].get("tolerations")
        ):
            raise Broken(f"bound to a cordoned node: {binding}")


def sound_evictions(world: Recorded, before: dict[Any, Obj], done: Cycle) -> None:
    bound_now = {f"{b.namespace}/{b.name}" for b in done.binds}
    seen = Counter(record.victim for record in done.record.evictions)
    if twice := [uid for uid, count in seen.items() if count > 1]:
        raise Broken(f"evicted twice: {twice}")
    for record in done.record.evictions:
        pod = before.get((POD, record.victim))
        if pod is None or not pod["spec"].get("nodeName") or pod["status"].get("phase") in ENDED:
            raise Broken(f"evicted though it holds nothing: {record}")
        if pod["metadata"].get("deletionTimestamp"):
            raise Broken(f"evicted though it leaves already: {record}")
        if record.victim in bound_now:
            raise Broken(f"bound and evicted: {record}")
        if record.action in MAKES_ROOM and record.preemptor_pod not in {*done.record.pipelined, *bound_now}:
            raise Broken(f"evicted in vain: {record} {done.record.pipelined}")


def nothing_overcommitted(world: Recorded, before: dict[Any, Obj], done: Cycle) -> None:
    given = {binding.node for binding in done.binds}
    newly = {f"{b.namespace}/{b.name}" for b in done.binds}
    for name, pods in holders(before, done).items():
        if name not in given:
            continue
        node = world.truth[NODE, f"/{name}"]
        room = objects.resource_units(node["status"]["allocatable"])
        used: Counter[str] = Counter(pods=len(pods))
        asked: set[str] = {"pods"}
        gpus: list[str] = []
        for pod in pods:
            requests = objects.pod_requests(pod["spec"])
            used.update({key: value for key, value in requests.items() if key != "pods"})
            if objects.key(pod) in newly:
                asked |= {key for key, value in requests.items() if value}
            gpus += [i for i in (objects.annotations(pod).get(objects.GPU_INDICES) or "").split(",") if i]
        for resource in asked:
            if used[resource] > room.get(resource, 0):
                raise Broken(f"node {name} has {room.get(resource, 0)} {resource}, its pods ask {used[resource]}")
        if len(gpus) != len(set(gpus)):
            raise Broken(f"node {name}: a GPU is given twice: {gpus}")
        cards_hold(world, name)
    used_devices: Counter[tuple[str, str, str]] = Counter()
    for claim in world.all(RESOURCE_CLAIM):
        allocation = (claim.get("status") or {}).get("allocation") or {}
        used_devices.update((r["driver"], r["pool"], r["device"]) for r in (allocation.get("devices") or {}).get("results") or ())
    taken = {choice.claim: choice for supply in done.supplies.values() for choice in supply.devices if choice.allocation}
    for choice in taken.values():
        used_devices.update((r["driver"], r["pool"], r["device"]) for r in choice.allocation["devices"]["results"])
    if twice := [device for device, count in used_devices.items() if count > 1]:
        raise Broken(f"devices given twice: {twice}")
    volumes = Counter(choice.volume for supply in done.supplies.values() for choice in supply.volumes if choice.volume)
    if twice := [name for name, count in volumes.items() if count > 1]:
        raise Broken(f"volumes given twice: {twice}")


def cards_hold(world: Recorded, name: str) -> None:
    if not any(
        option.name == "deviceshare" and option.arguments.boolean("deviceshare.VGPUEnable", False)
        for option in world.conf.plugins()
    ):
        return
    row = world.cache.nodes.index[name]
    memory: Counter[str] = Counter()
    count: Counter[str] = Counter()
    for task in world.cache.nodes.tasks[row].values():
        for use in task.cards:
            memory[use.card] += use.memory
            count[use.card] += 1
    if any(value > 1000 for value in memory.values()) or any(value > 2 for value in count.values()):
        raise Broken(f"node {name}: a card is given too often: {memory} {count}")


def _has(world: Recorded, plugin: str, switch: str) -> bool:
    return any(option.name == plugin and option.on(switch) for option in world.conf.plugins())


def ready_count(job: Any) -> int:
    """Pods that run or ran; those that wait and ask for nothing count as well, for they fit anywhere."""
    return sum(1 for task in job.tasks.values() if counts(task))


def counts(task: Any) -> bool:
    return task.status in READY_SET or (task.status is TaskStatus.PENDING and task.cls.best_effort)


def gangs_whole(world: Recorded, done: Cycle) -> None:
    """Whoever gets a node is in a gang that is whole then."""
    if not _has(world, "gang", "enableJobReady"):
        return
    started = {world.cache.tasks[binding.uid].job for binding in done.binds}
    for job in started:
        if job is None:
            continue
        evicted = {record.victim for record in done.record.evictions}
        now = sum(1 for task in job.tasks.values() if counts(task) or task.key in evicted)
        if now < job.min_available:
            raise Broken(f"{job.uid} runs {now} of {job.min_available}")
        if sum(job.role_min.values()) <= job.min_available:
            roles = Counter(task.role for task in job.tasks.values() if counts(task) or task.key in evicted)
            if short := [role for role, least in job.role_min.items() if roles[role] < least]:
                raise Broken(f"{job.uid} lacks of roles {short}: {roles} {job.role_min}")


def queues_within_limits(world: Recorded, done: Cycle) -> None:
    fair = [o.name for o in world.conf.plugins() if o.name in ("proportion", "capacity") and o.on("enabledAllocatable")]
    if not fair:
        return
    tree = world.conf and any(o.name == "capacity" and o.on("enableHierarchy") for o in world.conf.plugins())
    names, cache = world.cache.dims.names, world.cache
    held: defaultdict[str, Counter[str]] = defaultdict(Counter)
    grown: defaultdict[str, set[str]] = defaultdict(set)
    new = {binding.uid for binding in done.binds}
    for job in (job for job in cache.jobs.values() if job.obj):  # pods of deleted groups are in no queue
        chain = [job.queue]
        while tree and (queue := cache.queues.get(chain[-1])) is not None and queue.parent and queue.parent not in chain:
            chain.append(queue.parent)
        for task in job.tasks.values():
            if task.status in (TaskStatus.BINDING, TaskStatus.BOUND, TaskStatus.RUNNING):
                asked = {n: int(v) for n, v in zip(names, task.request, strict=False) if v and n != "pods"}
                for name in chain:
                    held[name].update(asked)
                    if task.uid in new and not task.cls.best_effort:
                        grown[name] |= set(asked)
    for name, resources in grown.items():
        spec = (world.truth.get((QUEUE, f"/{name}")) or {}).get("spec") or {}
        limit = objects.resource_units(spec.get("capability"))
        for resource in resources & limit.keys():
            if held[name][resource] > limit[resource]:
                raise Broken(f"queue {name} may have {limit[resource]} {resource}, and has {held[name][resource]}")


def everybody_is_told(world: Recorded, known: dict[str, Any], before: dict[str, str], done: Cycle) -> None:
    """Who waits is told why, unless it has its place kept."""
    if not {"enqueue", "allocate", "backfill"} <= set(world.conf.actions):
        return
    for uid, job in world.cache.jobs.items():
        if not job.obj or uid in known or before.get(uid) != job.phase or job.phase not in ("Pending", "Inqueue"):
            continue
        waiting = [task for task in job.tasks.values() if task.status is TaskStatus.PENDING]
        kept = any(task.key in done.record.pipelined for task in waiting)
        if waiting and not kept and not job.is_fresh(world.now - 1) and ready_count(job) == 0:
            raise Broken(f"{uid} ({job.phase}) waits and is not told why")
