"""The PodGroup controller: gives each pod of our schedulers that belongs to no group a PodGroup, so that it can be queued."""

from __future__ import annotations

from collections.abc import Iterable

from cluster import objects
from cluster.errors import AlreadyExists, NotFound
from cluster.informer import Change
from cluster.kinds import POD, POD_GROUP, Kind, by_api
from cluster.port import Obj
from jobs import keys
from jobs.controller.base import FIELD_MANAGER, Context
from jobs.controller.events import EventRecorder
from jobs.groups import bare_group_name, build_bare_group
from jobs.roles import FINISHED, phase_of


class BarePodController:
    """Reconciles pods; keys are `namespace/name`."""

    name = "pod"
    kinds: tuple[Kind, ...] = (POD, POD_GROUP)

    def __init__(self, context: Context, events: EventRecorder, schedulers: Iterable[str]) -> None:
        self._context, self._events = context, events
        self._schedulers = frozenset(schedulers)

    def start(self) -> None:
        """Nothing is needed beforehand."""

    def keys(self, change: Change) -> Iterable[str]:
        """A pod of ours that has no group yet."""
        if change.kind == POD and change.new is not None and self._lacks_group(change.new):
            return [objects.key(change.new)]
        return ()

    def reconcile(self, key: str) -> float | None:
        """Make the PodGroup, then name it on the pod."""
        informer, cluster = self._context.informer, self._context.cluster
        pod = informer.get(POD, key)
        if pod is None or not self._lacks_group(pod):
            return None
        name, namespace = bare_group_name(pod), objects.namespace(pod)
        if informer.get(POD_GROUP, f"{namespace}/{name}") is None:
            try:
                made = cluster.create(POD_GROUP, build_bare_group(pod, self._owner(pod)), field_manager=FIELD_MANAGER)
                informer.observe(POD_GROUP, made)
            except AlreadyExists:
                pass  # made by an earlier life of this controller, or for a sister of this pod
        named = {"metadata": {"annotations": {keys.GROUP_NAME: name}}}
        try:
            informer.observe(POD, cluster.patch(POD, objects.name(pod), namespace, named, field_manager=FIELD_MANAGER))
        except NotFound:
            informer.forget(POD, pod)
        return None

    def failed(self, key: str, error: Exception, failures: int) -> None:
        """Tell it on the pod."""
        pod = self._context.informer.get(POD, key)
        if pod is not None:
            self._events.warning(pod, "PodGroupError", f"no PodGroup was made: {error}")

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
        try:
            return self._context.cluster.get(kind, reference["name"], objects.namespace(pod) if kind.namespaced else "")
        except NotFound:
            return None
