"""What must hold after each cycle, whatever the configuration says."""

from __future__ import annotations

from collections import Counter, defaultdict
from copy import deepcopy
from random import Random
from typing import Any

import numpy as np

from cluster import objects
from cluster.kinds import NODE, POD, QUEUE, RESOURCE_CLAIM
from cluster.port import Obj
from scheduler.cycle import Cycle, run_cycle
from scheduler.model.tasks import READY_SET, TaskStatus
from scheduler.snapshot import Snapshot, bound
from scheduler.status import StatusKeeper
from tests.scheduler.fuzz.recorded import ENDED, Broken, Recorded
from tests.scheduler.test_statement import ARRAYS

MAKES_ROOM = ("preempt", "reclaim", "gangpreempt", "gangreclaim")


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
