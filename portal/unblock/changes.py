"""Changes of a cluster as the events that would tell of them: a job changed in place, submitted anew, ended; a queue changed."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from cluster import objects
from cluster.embedded.patches import merge
from cluster.kinds import POD, POD_GROUP, QUEUE
from cluster.port import Obj, WatchEvent
from jobs.keys import group_name
from jobs.roles import tasks_of
from portal.dryrun.reading import made_up_uid
from portal.unblock.copy import View


@dataclass(slots=True)
class Change:
    """Events, and the job that they are about: `uid` of its PodGroup afterwards, `job` its manifest then.

    `stay` are the pods that it has and keeps.
    """

    uid: str
    events: list[WatchEvent] = field(default_factory=list)
    job: Obj | None = None
    stay: list[Obj] = field(default_factory=list)

    def pods(self, view: View, uid: str) -> list[Obj]:
        """The pods that are made once a job was admitted, of the changed one as of others."""
        if uid == self.uid and self.job is not None:
            return view.made.pods(self.job, self.stay)
        return view.pods_of(uid)


def in_place(view: View, job: Obj, patch: Obj) -> Change:
    """The live job changed by a merge patch of what may change: its PodGroup follows, pods beyond its replicas go."""
    uid, new = view.group_of(job), merge(job, patch)
    group = view.cache.jobs[uid]
    replicas = {task["name"]: int(task.get("replicas") or 0) for task in tasks_of(new)}
    gone = [task for task in group.tasks.values() if task.index >= replicas.get(task.role, 0)]
    stay = [dict(task.pod) for task in group.tasks.values() if task not in gone]
    events = [WatchEvent("MODIFIED", POD_GROUP, view.made.changed(dict(group.obj), new, stay))]
    events += [WatchEvent("DELETED", POD, dict(task.pod)) for task in gone]
    return Change(uid, events, new, stay)


def instead(view: View, job: Obj, patch: Obj) -> Change:
    """A changed copy of the job submitted now, in the place of the job, which is deleted."""
    uid = view.group_of(job)
    change = submitted(view, merge(job, patch))
    return Change(change.uid, [*ended(view, [uid]), *change.events], change.job)


def submitted(view: View, manifest: Obj) -> Change:
    """A job submitted now; its manifest is complete, as admission leaves it."""
    created = objects.stamp(view.at)
    meta = {**manifest["metadata"], "creationTimestamp": created}
    meta["uid"] = made_up_uid("Job", objects.key(manifest), created)
    job = {**manifest, "metadata": meta, "status": {}}
    group = view.made.group(job, created)
    return Change(f"{objects.namespace(job)}/{group_name(job)}", [WatchEvent("ADDED", POD_GROUP, group)], job)


def ended(view: View, uids: Iterable[str]) -> list[WatchEvent]:
    """Jobs that are over and hold nothing any more."""
    events = []
    for uid in uids:
        group = view.cache.jobs[uid]
        events += [WatchEvent("DELETED", POD, dict(task.pod)) for task in group.tasks.values()]
        events.append(WatchEvent("DELETED", POD_GROUP, dict(group.obj)))
    return events


def queue_changed(view: View, queue: Obj) -> list[WatchEvent]:
    """A queue as it would be written."""
    return [WatchEvent("MODIFIED", QUEUE, queue)]
