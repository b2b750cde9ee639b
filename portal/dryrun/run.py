"""Runs cycles over files and gathers what was decided."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from cluster import objects
from cluster.kinds import POD
from cluster.port import WatchEvent
from portal.dryrun.expand import Controllers
from portal.dryrun.reading import Files
from portal.dryrun.supplies import Claims
from scheduler import wording
from scheduler.cycle import Cycle
from scheduler.framework.explain import Verdict
from scheduler.framework.record import QueueShare, Units
from scheduler.snapshot import Offline, Snapshot

Json = dict[str, Any]


@dataclass(slots=True)
class Result:
    """What some cycles decided, JSON-ready; `docs/schedule.md` describes every key. `problems` is for people."""

    binds: list[Json] = field(default_factory=list)
    evictions: list[Json] = field(default_factory=list)
    pipelined: list[Json] = field(default_factory=list)
    pod_groups: dict[str, Json] = field(default_factory=dict)
    queues: dict[str, Json] = field(default_factory=dict)
    verdicts: dict[str, Json] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)

    def as_dict(self) -> Json:
        """The stable form."""
        return {
            "binds": self.binds,
            "evictions": self.evictions,
            "pipelined": self.pipelined,
            "podGroups": self.pod_groups,
            "queues": self.queues,
            "verdicts": self.verdicts,
            "problems": self.problems,
        }


def run(files: Files, conf: str = "", *, cycles: int = 1, scheduler_names: tuple[str, ...] = ("volcano",)) -> Result:
    """Run cycles, a second apart; every bind, eviction and status is taken as done before the next.

    Raises `scheduler.conf.ConfError`.
    """
    controllers = Controllers(files, scheduler_names)
    claims = Claims(files)
    added = [obj for _, obj in (*claims.of_files(), *controllers.groups(files), *controllers.services(files))]
    pods = [controllers.bound_for(pod) for pod in files.of(POD)]
    snapshot = Snapshot.of([source.obj for source in files.known] + added, conf or files.conf)
    snapshot.pods = [*pods, *(pod for _, pod in controllers.pods(pods))]
    for kind, claim in claims.of_pods(snapshot.pods):
        snapshot.estate.setdefault(kind, []).append(claim)
    offline = Offline(snapshot, now=_after(snapshot), scheduler_names=scheduler_names)
    result, verdicts = Result(), dict[str, Verdict]()
    for number in range(cycles):
        if number:
            there = [dict(task.pod) for task in offline.cache.tasks.values()]
            pods = [pod for _, pod in controllers.pods(there)]
            offline.cache.apply_all(WatchEvent("ADDED", kind, claim) for kind, claim in claims.of_pods(pods))
            offline.cache.apply_all(WatchEvent("ADDED", POD, pod) for pod in pods)
        done = offline.cycle()
        _gather(result, verdicts, done)
    _conclude(result, verdicts, offline, files)
    return result


def _after(snapshot: Snapshot) -> float:
    """The second after the latest object was made: the same files give the same times."""
    stamps = (obj["metadata"].get("creationTimestamp") for _, obj in snapshot.objects())
    return max((objects.parse_time(stamp) for stamp in stamps if isinstance(stamp, str)), default=0.0) + 1


def _gather(result: Result, verdicts: dict[str, Verdict], done: Cycle) -> None:
    for binding in done.binds:
        indices = binding.annotations.get(objects.GPU_INDICES, "")
        gpus = [int(index) for index in indices.split(",") if index]
        result.binds.append({"pod": f"{binding.namespace}/{binding.name}", "node": binding.node, "gpus": gpus})
    for each in done.record.evictions:
        result.evictions.append({
            "victim": each.victim, "node": each.node, "preemptor": each.preemptor_pod, "preemptorGroup": each.preemptor,
            "action": each.action, "rule": each.rule, "reason": each.reason, "freed": quantities(each.freed),
            "cycle": done.record.number,
        })  # fmt: skip
    result.pipelined = [{"pod": pod, "node": node} for pod, node in done.record.pipelined.items()]
    result.queues = {name: _share(share) for name, share in sorted(done.record.queues.items())}
    for key, verdict in done.record.verdicts.items():
        if verdict is None:
            verdicts.pop(key, None)
        else:
            verdicts[key] = verdict


def _conclude(result: Result, verdicts: dict[str, Verdict], offline: Offline, files: Files) -> None:
    for uid, job in sorted(offline.cache.jobs.items()):
        if job.obj:
            status = job.obj.get("status") or {}
            result.pod_groups[uid] = {
                "phase": status.get("phase") or "Pending",
                "conditions": list(status.get("conditions") or ()),
            }
    result.verdicts = {key: {**found.as_dict(), "text": wording.describe(found)} for key, found in sorted(verdicts.items())}
    for source, fault in files.misshapen:
        name = objects.key(source.obj).lstrip("/")
        result.problems.append(f"{source.place()}: {source.obj['kind']} {name} takes no part: {fault}")
    for aside in offline.cache.doubts():
        known = files.source(aside.kind, aside.key)
        where = known.place() if known is not None else "made by a controller"
        result.problems.append(f"{where}: {aside.kind} {aside.key.lstrip('/')} takes no part: {aside.reason}")
    if any(option.name == "extender" for option in offline.conf.plugins()):
        result.problems.append("the extender is not asked here: it might take what is only tried for done")
    result.problems += [
        f"{source.place('/kind')}: kind {source.obj['kind']} of {source.obj['apiVersion']} means nothing to the scheduler here"
        for source in files.others
        if source.obj.get("kind") != "ConfigMap" or not files.conf
    ]


def _share(share: QueueShare) -> Json:
    return {
        "share": share.share,
        "allocated": quantities(share.allocated),
        "deserved": quantities(share.deserved),
        "request": quantities(share.request),
        "inqueue": quantities(share.inqueue),
        "limit": quantities(share.limit),
    }


def quantities(units: Units) -> dict[str, str]:
    """Amounts as Kubernetes writes them."""
    return {resource: objects.format_units(resource, amount) for resource, amount in units.items()}
