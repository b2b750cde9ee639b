"""The PodGroup controller: gives each pod of our schedulers that belongs to no group a PodGroup, so that it can be queued.

Pods of one controlling owner share a group. It follows what the owner and its newest pod say for as long as they stand.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import suppress
from typing import Any

from cluster import objects
from cluster.errors import AlreadyExists, NotFound
from cluster.informer import Change, IndexFunction
from cluster.kinds import DAEMON_SET, PLAIN_JOB, POD, POD_GROUP, REPLICA_SET, STATEFUL_SET, Kind, by_api
from cluster.port import Obj
from cluster.said import said
from jobs import keys
from jobs.controller.base import Context
from jobs.controller.events import EventRecorder
from jobs.groups import bare_changes, bare_group_name, build_bare_group
from jobs.keys import FIELD_MANAGER
from jobs.roles import FINISHED, phase_of

OWNERS: tuple[Kind, ...] = (REPLICA_SET, STATEFUL_SET, DAEMON_SET, PLAIN_JOB)
_SCALED = (REPLICA_SET, STATEFUL_SET)


def _group_of(pod: Obj) -> Iterator[str]:
    """The auto group that a pod is in, by its owner's uid."""
    owner = objects.owner(pod)
    if owner and objects.annotations(pod).get(keys.GROUP_NAME) == bare_group_name(pod):
        yield owner["uid"]


class BarePodController:
    """Reconciles pods and their owners; keys are `namespace/name` of a pod, or `<kind>=namespace/name` of an owner."""

    name = "pod"
    kinds: tuple[Kind, ...] = (POD, POD_GROUP, *OWNERS)
    indexes: dict[tuple[Kind, str], IndexFunction] = {(POD, "bare"): _group_of}  # noqa: RUF012

    def __init__(self, context: Context, events: EventRecorder, schedulers: Iterable[str]) -> None:
        self._context, self._events = context, events
        self._schedulers = frozenset(schedulers)

    def start(self) -> None:
        """Nothing is needed beforehand."""

    def keys(self, change: Change) -> Iterable[str]:
        """A pod of ours that has no group yet, or whose notes for its group changed; an owner that changed."""
        if change.kind in OWNERS and change.new is not None:
            return [f"{change.kind}={objects.key(change.new)}"]
        if change.kind != POD or change.new is None or change.new["spec"].get("schedulerName") not in self._schedulers:
            return ()
        changed = change.old is None or objects.annotations(change.old) != objects.annotations(change.new)
        is_auto = objects.annotations(change.new).get(keys.GROUP_NAME) == bare_group_name(change.new)
        return [objects.key(change.new)] if self._lacks_group(change.new) or (is_auto and changed) else ()

    def reconcile(self, key: str) -> float | None:
        """Make the PodGroup and name it on the pod; keep one up that is there; delete that of an owner without replicas."""
        kind, _, name = key.rpartition("=")
        if kind:
            self._follow_owner(kind, name)
            return None
        pod = self._context.informer.get(POD, key)
        if pod is None or objects.is_deleting(pod):
            return None
        if self._lacks_group(pod):
            self._join(pod)
        else:
            self._keep_up(pod, self._owner(pod))
        return None

    def failed(self, key: str, error: Exception, failures: int) -> None:
        """Tell it on the pod."""
        pod = self._context.informer.get(POD, key)
        if pod is not None:
            self._events.warning(pod, "PodGroupError", said("no PodGroup was made: %(error)s", error=error))

    def _join(self, pod: Obj) -> None:
        """Make the group unless it is there, and name it on the pod."""
        informer, cluster = self._context.informer, self._context.cluster
        name, namespace, owner = bare_group_name(pod), objects.namespace(pod), self._owner(pod)
        if informer.get(POD_GROUP, f"{namespace}/{name}") is None:
            try:
                made = cluster.create(POD_GROUP, build_bare_group(pod, owner), field_manager=FIELD_MANAGER)
                informer.observe(POD_GROUP, made)
            except AlreadyExists:
                pass  # made by an earlier life of this controller, or for a sister of this pod
        else:
            self._keep_up(pod, owner)
        named = {"metadata": {"annotations": {keys.GROUP_NAME: name}}}
        try:
            informer.observe(POD, cluster.patch(POD, objects.name(pod), namespace, named, field_manager=FIELD_MANAGER))
        except NotFound:
            informer.forget(POD, pod)

    def _follow_owner(self, kind: str, key: str) -> None:
        found = next(each for each in OWNERS if str(each) == kind)
        owner = self._context.informer.get(found, key)
        if owner is None or objects.is_deleting(owner):
            return  # its pods and their group go through owner references
        group = self._context.informer.get(POD_GROUP, f"{objects.namespace(owner)}/podgroup-{objects.uid(owner)}")
        if group is None:
            return
        if found in _SCALED and (owner.get("spec") or {}).get("replicas") == 0:
            with suppress(NotFound):
                self._context.cluster.delete(POD_GROUP, objects.name(group), objects.namespace(group), uid=objects.uid(group))
            return
        if pods := self._sisters(objects.uid(owner)):
            self._keep_up(pods[-1], owner)

    def _sisters(self, owner_uid: str) -> list[Obj]:
        """The pods of an owner that have not ended, oldest first."""
        found = [p for p in self._context.informer.by(POD, "bare", owner_uid) if phase_of(p) not in FINISHED]
        return sorted(found, key=lambda p: (p["metadata"]["creationTimestamp"], objects.resource_version(p)))

    def _keep_up(self, pod: Obj, owner: Obj | None) -> None:
        """Bring the group to what its owner and this pod say; an older pod than the newest has no say."""
        informer, reference = self._context.informer, objects.owner(pod)
        group = informer.get(POD_GROUP, f"{objects.namespace(pod)}/{bare_group_name(pod)}")
        newest = self._sisters(reference["uid"])[-1:] if reference else []
        is_older = newest and objects.uid(newest[0]) != objects.uid(pod) and not self._lacks_group(pod)
        if group is None or objects.is_deleting(group) or is_older:
            return
        body: dict[str, Any] = bare_changes(group, build_bare_group(pod, owner))
        if body:
            body.setdefault("metadata", {})["uid"] = objects.uid(group)
            patched = self._context.cluster.patch(
                POD_GROUP, objects.name(group), objects.namespace(group), body, field_manager=FIELD_MANAGER
            )
            informer.observe(POD_GROUP, patched)

    def _lacks_group(self, pod: Obj) -> bool:
        return (
            pod["spec"].get("schedulerName") in self._schedulers
            and not objects.annotations(pod).get(keys.GROUP_NAME)
            and not objects.is_deleting(pod)
            and phase_of(pod) not in FINISHED
        )

    def _owner(self, pod: Obj) -> Obj | None:
        """The object that controls the pod, when it is of a kind that we can read."""
        reference = objects.owner(pod)
        kind = by_api(reference["apiVersion"], reference["kind"]) if reference else None
        if reference is None or kind is None:
            return None
        if kind in OWNERS:
            return self._context.informer.get(kind, f"{objects.namespace(pod)}/{reference['name']}")
        try:
            return self._context.cluster.get(kind, reference["name"], objects.namespace(pod) if kind.namespaced else "")
        except NotFound:
            return None
