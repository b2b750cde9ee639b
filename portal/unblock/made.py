"""What the Job controller would make of a manifest: its PodGroup and pods, with the controller's own builders."""

from __future__ import annotations

from collections.abc import Iterable

from cluster import objects
from cluster.kinds import PRIORITY_CLASS
from cluster.port import Obj, Reader
from jobs import ahead
from jobs.admission import priority_of
from jobs.groups import KEPT_UP, build_group, kept_up
from jobs.roles import PodTable, released
from portal.dryrun.reading import made_up_uid


class Made:
    """Makes objects of jobs. They get the uids that `made_up_uid` draws from their names.

    `reader` is asked for priority classes alone.
    """

    def __init__(self, reader: Reader) -> None:
        self._reader = reader

    def priority(self, name: str) -> int:
        """The value of a priority class, 0 when there is none."""
        return priority_of(name, self._reader) or 0

    def known_classes(self) -> list[tuple[str, int]]:
        """Names and values of the priority classes, the lowest first."""
        found = [(objects.name(each), int(each.get("value") or 0)) for each in self._reader.list(PRIORITY_CLASS).items]
        return sorted(found, key=lambda each: (each[1], each[0]))

    def group(self, job: Obj, created: str) -> Obj:
        """The PodGroup of a new job."""
        group = build_group(job, released(job, PodTable()), self.priority)
        return _completed(group, created)

    def changed(self, group: Obj, job: Obj, pods: Iterable[Obj]) -> Obj:
        """The PodGroup as it follows a job whose manifest changed."""
        spec = {name: value for name, value in group["spec"].items() if name not in KEPT_UP}
        return {**group, "spec": {**spec, **kept_up(job, released(job, PodTable.of(pods)), self.priority)}}

    def pods(self, job: Obj, there: Iterable[Obj] = (), created: str = "") -> list[Obj]:
        """The pods that a job lacks beside those that are there."""
        created = created or job["metadata"]["creationTimestamp"]
        made = ahead.lacking(job, PodTable.of(there))
        return [ahead.ranked(_completed(pod, created), self.priority) for pod in made]


def _completed(obj: Obj, created: str) -> Obj:
    return ahead.admitted(obj, made_up_uid(str(obj["kind"]), objects.key(obj)), created)
