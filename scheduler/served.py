"""A cluster in which another scheduler works beside ours: gangs of its jobs are not there, for ours.

A PodGroup does not say which scheduler it is for. It is the other's when its controller noted so (`basalt.dev/scheduler-name`),
when the Job that owns it names another one, or when pods of another name it and none of ours. Pods stay as they are: those of
other schedulers use their nodes, and belong to no gang.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterator, Sequence
from typing import Any

from cluster import objects
from cluster.errors import ApiError, NotFound
from cluster.kinds import JOB, POD, POD_GROUP, Kind
from cluster.port import Cluster, Obj, Watch, WatchEvent
from scheduler.model.build import GROUP

FOREIGN = "basalt.dev/scheduler-name"
"""Annotation of a PodGroup that our controller made for another scheduler: its name."""

log = logging.getLogger(__name__)


class Served:
    """See `cluster.port.Cluster`; a watch leaves out what is another scheduler's.

    `asks_jobs` says that the controller that makes PodGroups notes nothing on them, so that their Jobs have to be read.
    """

    def __init__(self, inner: Cluster, schedulers: Collection[str], *, asks_jobs: bool) -> None:
        self._inner, self._schedulers, self._asks_jobs = inner, frozenset(schedulers), asks_jobs

    def __getattr__(self, verb: str) -> Any:
        return getattr(self._inner, verb)

    def watch(
        self,
        kinds: Sequence[Kind],
        *,
        namespace: str = "",
        labels: str = "",
        fields: str = "",
        notify: Callable[[], None] | None = None,
    ) -> Watch:
        """Events of what is ours, and of all else but gangs."""
        inner = self._inner.watch(kinds, namespace=namespace, labels=labels, fields=fields, notify=notify)
        return _Watch(inner, self._schedulers, self._scheduler_of_job if self._asks_jobs else _unknown)

    def _scheduler_of_job(self, group: Obj) -> str:
        """The scheduler that the Job of a group names; empty when it has none, or it cannot be read."""
        owner = objects.owner(group)
        if owner is None or (owner.get("apiVersion"), owner.get("kind")) != (JOB.api_version, JOB.kind):
            return ""
        try:
            job = self._inner.get(JOB, owner["name"], objects.namespace(group))
        except NotFound:
            return ""
        except ApiError as error:
            log.warning("whose gang %s is cannot be told: %s", objects.key(group), error)
            return ""
        return str((job.get("spec") or {}).get("schedulerName") or "")


def _unknown(_group: Obj) -> str:
    return ""


class _Watch:
    """A watch that tells of a gang as long as it is ours, and of its end when it turns out to be another's."""

    def __init__(self, inner: Watch, schedulers: frozenset[str], of_job: Callable[[Obj], str]) -> None:
        self._inner, self._schedulers, self._of_job = inner, schedulers, of_job
        self._names: dict[str, str] = {}
        self._groups: dict[str, Obj] = {}
        self._told: set[str] = set()
        self._pods: dict[str, tuple[str, bool]] = {}
        self._counts: dict[str, list[int]] = {}
        self._waiting: list[WatchEvent] = []

    def get(self, timeout: float | None = None) -> WatchEvent | None:
        """The next event; None also when what came was another's."""
        if not self._waiting:
            event = self._inner.get(timeout)
            if event is None:
                return None
            self._waiting += self._seen(event)
        return self._waiting.pop(0) if self._waiting else None

    def drain(self) -> list[WatchEvent]:
        """All that wait."""
        found, self._waiting = self._waiting, []
        for event in self._inner.drain():
            found += self._seen(event)
        return found

    def __iter__(self) -> Iterator[WatchEvent]:
        for event in self._inner:
            yield from self._seen(event)

    def close(self) -> None:
        """Stop."""
        self._inner.close()

    def _seen(self, event: WatchEvent) -> list[WatchEvent]:
        if event.kind == POD_GROUP:
            return self._group(event)
        if event.kind == POD:
            return [event, *self._pod(event)]
        return [event]

    def _group(self, event: WatchEvent) -> list[WatchEvent]:
        key, uid = objects.key(event.object), objects.uid(event.object)
        if event.type == "DELETED":
            self._groups.pop(key, None)
            self._names.pop(uid, None)
            was_told = key in self._told
            self._told.discard(key)
            return [event] if was_told else []
        self._groups[key] = event.object
        if uid not in self._names:
            self._names[uid] = objects.annotations(event.object).get(FOREIGN, "") or self._of_job(event.object)
        return self._judged(key, event)

    def _pod(self, event: WatchEvent) -> list[WatchEvent]:
        """Count a pod for the group that it names; what follows for that group."""
        pod, uid = event.object, objects.uid(event.object)
        group = objects.annotations(pod).get(GROUP, "")
        now = None
        if group and event.type != "DELETED":
            now = (f"{objects.namespace(pod)}/{group}", (pod["spec"].get("schedulerName") or "") in self._schedulers)
        before = self._pods.get(uid)
        if now == before:
            return []
        for entry, step in ((before, -1), (now, 1)):
            if entry is not None:
                counts = self._counts.setdefault(entry[0], [0, 0])
                counts[entry[1]] += step
                if counts == [0, 0]:
                    del self._counts[entry[0]]
        if now is None:
            self._pods.pop(uid, None)
        else:
            self._pods[uid] = now
        touched = dict.fromkeys(entry[0] for entry in (before, now) if entry is not None)
        return [found for key in touched if key in self._groups for found in self._judged(key, None)]

    def _judged(self, key: str, event: WatchEvent | None) -> list[WatchEvent]:
        """What is told of a group now; `event` is what happened to it itself."""
        group = self._groups[key]
        if not self._is_ours(key, group):
            if key not in self._told:
                return []
            self._told.remove(key)
            return [WatchEvent("DELETED", POD_GROUP, group)]
        if key in self._told:
            return [event] if event is not None else []
        self._told.add(key)
        return [WatchEvent("ADDED", POD_GROUP, group)]

    def _is_ours(self, key: str, group: Obj) -> bool:
        if name := self._names.get(objects.uid(group)):
            return name in self._schedulers
        others, ours = self._counts.get(key, (0, 0))
        return bool(ours) or not others
