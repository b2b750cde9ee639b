"""What the controllers would add to files of objects: PodGroups, pods and Services of Jobs, PodGroups of plain pods."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator

from cluster import objects
from cluster.errors import NotFound
from cluster.kinds import JOB, POD, POD_GROUP, SERVICE, Kind
from cluster.port import Obj
from jobs import ahead, keys
from jobs.admission import priority_of
from jobs.choices import JobPhase
from jobs.groups import bare_group_name, build_bare_group, build_group
from jobs.plugins import Maker, plugins_of
from jobs.roles import FINISHED, PodTable, phase_of, released
from portal.dryrun.reading import Files, Reading, made_up_uid


class Controllers:
    """Makes what is missing, with the controllers' own builders. `made` counts pods by name, for those made again."""

    def __init__(self, files: Files, scheduler_names: Iterable[str]) -> None:
        self._reading, self._ours = Reading(files), frozenset(scheduler_names)
        self._jobs = [job for job in files.of(JOB) if not _is_over(job)]
        self._made: defaultdict[str, int] = defaultdict(int)

    def groups(self, files: Files) -> Iterator[tuple[Kind, Obj]]:
        """The PodGroups that are missing. A plain pod is marked with the one it gets."""
        there = {objects.key(group) for group in files.of(POD_GROUP)}
        owned = {owner["uid"] for group in files.of(POD_GROUP) if (owner := objects.owner(group))}
        table = _tables(files.of(POD))
        for job in self._jobs:
            if objects.uid(job) not in owned and f"{objects.namespace(job)}/{keys.group_name(job)}" not in there:
                group = build_group(job, released(job, table[objects.key(job)]), self._priority)
                yield POD_GROUP, self._completed(group, job)
        for pod in files.of(POD):
            if pod["spec"].get("schedulerName") not in self._ours or objects.annotations(pod).get(keys.GROUP_NAME):
                continue
            pod["metadata"]["annotations"] = {**objects.annotations(pod), keys.GROUP_NAME: bare_group_name(pod)}
            key = f"{objects.namespace(pod)}/{bare_group_name(pod)}"
            if key not in there and phase_of(pod) not in FINISHED:
                there.add(key)
                group = build_bare_group(pod)
                group["spec"].setdefault("queue", "default")
                yield POD_GROUP, self._completed(group, pod)

    def services(self, files: Files) -> Iterator[tuple[Kind, Obj]]:
        """The Services that the jobs' plugins make: pods that one selects are spread. One of the name that is there stays."""
        there = {objects.key(service) for service in files.of(SERVICE)}
        for job in self._jobs:
            for plugin in plugins_of(job):
                if any(kind == SERVICE for kind, _ in plugin.makes(objects.name(job))):
                    made = _Making()
                    plugin.on_job_add(Maker(made, job, lambda message: None), job)  # type: ignore[arg-type]
                    yield from ((SERVICE, self._completed(obj, job)) for obj in made.services if objects.key(obj) not in there)

    def pods(self, there: Iterable[Obj]) -> Iterator[tuple[Kind, Obj]]:
        """The pods that Jobs lack beside those that are there."""
        tables = _tables(there)
        for job in self._jobs:
            for pod in ahead.lacking(job, tables[objects.key(job)]):
                yield POD, self.bound_for(self._completed(pod, job))

    def bound_for(self, pod: Obj) -> Obj:
        """The pod with the number that admission would have given it for its priority class."""
        return ahead.ranked(pod, lambda name: priority_of(name, self._reading))

    def _completed(self, obj: Obj, owner: Obj) -> Obj:
        key = f"{obj['kind']}/{objects.key(obj)}"
        self._made[key] += 1
        return ahead.admitted(obj, made_up_uid(key, str(self._made[key])), owner["metadata"]["creationTimestamp"])

    def _priority(self, name: str) -> int:
        return priority_of(name, self._reading) or 0


class _Making:
    """A cluster in which nothing is, and of what is made only Services are kept."""

    def __init__(self) -> None:
        self.services: list[Obj] = []

    def get(self, kind: Kind, name: str, namespace: str = "") -> Obj:
        raise NotFound(name)

    def create(self, kind: Kind, obj: Obj, *, field_manager: str = "") -> Obj:
        if kind == SERVICE:
            self.services.append(obj)
        return obj


def _is_over(job: Obj) -> bool:
    phase = (job["status"].get("state") or {}).get("phase") or ""
    return phase in JobPhase.values and JobPhase(phase).is_final


def _tables(pods: Iterable[Obj]) -> defaultdict[str, PodTable]:
    """Pods by the job that they say made them."""
    by_job: defaultdict[str, list[Obj]] = defaultdict(list)
    for pod in pods:
        name = objects.labels(pod).get(keys.JOB_NAME)
        if name:
            by_job[f"{objects.namespace(pod)}/{name}"].append(pod)
    return defaultdict(PodTable, {key: PodTable.of(found) for key, found in by_job.items()})
