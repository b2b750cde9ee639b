"""Which kinds of pods are on which nodes in a session: made once, then kept by its events.

Only sessions in which some pod has inter-pod affinity or spread constraints, or is spread by default, pay for it. Pods
are told apart only by what those ask about: the labels that selectors mention, and the spec of the pods that have them.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from cluster import objects
from scheduler.framework.plugin import Event
from scheduler.model.services import DEFAULTS
from scheduler.model.tasks import NO_NODE, TaskClass, TaskInfo
from scheduler.plugins.kube import affinity
from scheduler.plugins.kube.pods import NAMESPACE_NAME, NamespaceLabels, Placed, PodKind
from scheduler.plugins.kube.spread import Constraint

if TYPE_CHECKING:
    from scheduler.framework.session import Session

__all__ = ["Population", "of_session"]

_MEMO = ("kube", "population")


def of_session(ssn: Session) -> Population:
    """The one population of a session."""
    found = ssn.memo.get(_MEMO)
    if not isinstance(found, Population) or found.session != ssn.uid:
        found = ssn.memo[_MEMO] = Population(ssn)
    return found


class Population:
    """Counts of pods by kind and node, as Kubernetes lists them: reserved pods included, those evicted just now not.

    They are counted when somebody asks or something moves for the first time: a session in which nothing does costs nothing.
    """

    def __init__(self, ssn: Session) -> None:
        self.session = ssn.uid
        self.namespaces: NamespaceLabels = {name: {NAMESPACE_NAME: name, **labels} for name, labels in ssn.namespaces.items()}
        self._services = ssn.estate.services
        self._service_keys: frozenset[str] | None = None
        self._defaults: dict[Hashable, tuple[Constraint, ...]] = {}
        self._rows = ssn.nodes.rows
        self._particular = {cls for cls in ssn.classes if _selectors(cls.spec)}
        self._mentioned = {key for cls in self._particular for each in _selectors(cls.spec) for key in _keys(each)}
        selected = bool(self._services) and any(self._is_selected(task) for job in ssn.active() for task in job.pending())
        if selected:
            self._mentioned |= set(self._services.keys())
        self._talk = any(_affinity_terms(cls.spec) for cls in self._particular)
        self._kinds: dict[Hashable, PodKind] = {}
        self._speakers: list[PodKind] = []
        self._concerned: dict[PodKind, bool] = {}
        self._placed: dict[PodKind, Placed] = {}
        self._at: dict[str, tuple[PodKind, int, bool]] = {}
        self._uncounted: Session | None = None
        if self._particular or selected:
            self._uncounted = ssn
            ssn.add_handlers(self._allocated, self._deallocated)

    def _count(self) -> None:
        ssn, self._uncounted = self._uncounted, None
        if ssn is None:
            return
        for row, tasks in enumerate(ssn.nodes.tasks):
            for task in tasks.values():
                self._put(task, row)
        for job in ssn.active():
            for task in job.pending():
                if task.cls in self._particular:
                    self.kind(task)

    @property
    def placed(self) -> list[Placed]:
        """All kinds that are on nodes, with their counts."""
        self._count()
        return list(self._placed.values())

    def kind(self, task: TaskInfo) -> PodKind:
        """The kind of a task."""
        own = (task.pod.get("metadata") or {}).get("labels") or {}
        labels = {key: own[key] for key in self._mentioned if key in own}
        particular = task.cls in self._particular
        who: TaskClass | None = task.cls if particular else None
        key = (who, task.namespace, frozenset(labels.items()))
        found = self._kinds.get(key)
        if found is None:
            found = self._kinds[key] = PodKind(task.namespace, labels, task.cls.spec if particular else {})
            if found.has_terms:
                self._speakers.append(found)
                self._concerned.clear()
        return found

    def concerns(self, task: TaskInfo) -> bool:
        """Whether inter-pod affinity can matter to a task: its own terms, or those of a pod that is here or waits."""
        if not self._talk:
            return False
        self._count()
        kind = self.kind(task)
        found = self._concerned.get(kind)
        if found is None:
            found = self._concerned[kind] = affinity.concerns(kind, self._speakers, self.namespaces)
        return found

    def defaults(self, task: TaskInfo) -> tuple[Constraint, ...]:
        """The constraints, only wished for, of a task that names none and that a Service or its owner selects."""
        if not self._services or task.cls.spec.get("topologySpreadConstraints"):
            return ()
        meta = task.pod.get("metadata") or {}
        labels, owner = meta.get("labels") or {}, objects.owner(task.pod) or {}
        mine = frozenset((key, labels[key]) for key in self._asked_by_services() if key in labels)
        who = (task.namespace, mine, owner.get("kind"), owner.get("name"))
        found = self._defaults.get(who)
        if found is None:
            selector = self._services.selector(task.namespace, labels, owner)
            found = self._defaults[who] = () if selector is None else tuple(Constraint(k, n, selector) for k, n in DEFAULTS)
        return found

    def _is_selected(self, task: TaskInfo) -> bool:
        return bool(self.defaults(task))

    def _asked_by_services(self) -> frozenset[str]:
        if self._service_keys is None:
            self._service_keys = frozenset(self._services.keys())
        return self._service_keys

    # -- pods come and go ----------------------------------------------------------------------------------------------

    def _allocated(self, event: Event) -> None:
        self._count()
        for task in event.tasks:
            self._put(task, task.node)

    def _deallocated(self, event: Event) -> None:
        self._count()
        for task in event.tasks:
            found = self._at.pop(task.uid, None)
            if found is not None:
                kind, row, staying = found
                self._placed[kind].counts[row] -= 1
                self._placed[kind].staying[row] -= staying

    def _put(self, task: TaskInfo, row: int) -> None:
        if row == NO_NODE or task.uid in self._at:
            return
        kind, staying = self.kind(task), not (task.pod.get("metadata") or {}).get("deletionTimestamp")
        placed = self._placed.get(kind)
        if placed is None:
            nothing = np.zeros(self._rows, np.int64)
            placed = self._placed[kind] = Placed(kind, nothing, nothing.copy())
        placed.counts[row] += 1
        placed.staying[row] += staying
        self._at[task.uid] = (kind, row, staying)


def _affinity_terms(spec: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Every pod affinity and anti-affinity term of a pod spec, required and preferred."""
    found: list[Mapping[str, Any]] = []
    for kind in ("podAffinity", "podAntiAffinity"):
        terms = (spec.get("affinity") or {}).get(kind) or {}
        found += terms.get("requiredDuringSchedulingIgnoredDuringExecution") or ()
        preferred = terms.get("preferredDuringSchedulingIgnoredDuringExecution") or ()
        found += [each.get("podAffinityTerm") or {} for each in preferred]
    return found


def _selectors(spec: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Everything in a pod spec that selects other pods by their labels."""
    return [*_affinity_terms(spec), *(spec.get("topologySpreadConstraints") or ())]


def _keys(selecting: Mapping[str, Any]) -> Iterator[str]:
    """The label keys that a term or constraint asks about."""
    selector = selecting.get("labelSelector") or {}
    yield from selector.get("matchLabels") or ()
    yield from (each.get("key", "") for each in selector.get("matchExpressions") or ())
    yield from selecting.get("matchLabelKeys") or ()
    yield from selecting.get("mismatchLabelKeys") or ()
