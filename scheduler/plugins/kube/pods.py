"""Kinds of pods, how many of each are on every node, and the topologies that node labels span.

Pods that are alike in namespace, labels and spec are one kind, so that affinity and spreading are sums over vectors
of counts and never loops over pods.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cluster.objects import matches_selector

__all__ = ["NAMESPACE_NAME", "NamespaceLabels", "Placed", "PodKind", "Term", "Topologies"]

NAMESPACE_NAME = "kubernetes.io/metadata.name"
"""The label that every namespace has."""

Ints = NDArray[np.int64]
Mask = NDArray[np.bool_]
Labels = Mapping[str, str]
NamespaceLabels = Mapping[str, Labels]


@dataclass(frozen=True, slots=True)
class Term:
    """One pod affinity term of a pod; `weight` is 0 for a required one and negative for preferred anti-affinity."""

    key: str
    selector: Mapping[str, Any] | None
    namespaces: frozenset[str]
    namespace_selector: Mapping[str, Any] | None
    weight: int

    def matches(self, pod: PodKind, namespaces: NamespaceLabels) -> bool:
        """Whether a pod is one of those that the term speaks of."""
        return self._reaches(pod.namespace, namespaces) and matches_selector(self.selector, pod.labels)

    def _reaches(self, namespace: str, namespaces: NamespaceLabels) -> bool:
        selector = self.namespace_selector
        if namespace in self.namespaces:
            return True
        return selector is not None and matches_selector(selector, namespaces.get(namespace) or {NAMESPACE_NAME: namespace})


class PodKind:
    """Pods alike in namespace, labels and spec, with their affinity terms made ready once."""

    __slots__ = ("affinity", "anti_affinity", "labels", "namespace", "preferred", "spec")

    def __init__(self, namespace: str, labels: Labels, spec: Mapping[str, Any]) -> None:
        self.namespace, self.labels, self.spec = namespace, labels, spec
        self.affinity = self._required("podAffinity")
        self.anti_affinity = self._required("podAntiAffinity")
        self.preferred = (*self._preferred("podAffinity", 1), *self._preferred("podAntiAffinity", -1))

    @property
    def has_terms(self) -> bool:
        """Whether it says anything of other pods."""
        return bool(self.affinity or self.anti_affinity or self.preferred)

    def _terms(self, kind: str, when: str) -> Sequence[Mapping[str, Any]]:
        return (((self.spec.get("affinity") or {}).get(kind)) or {}).get(when) or ()

    def _required(self, kind: str) -> tuple[Term, ...]:
        return tuple(self._term(term, 0) for term in self._terms(kind, "requiredDuringSchedulingIgnoredDuringExecution"))

    def _preferred(self, kind: str, sign: int) -> tuple[Term, ...]:
        weighted = self._terms(kind, "preferredDuringSchedulingIgnoredDuringExecution")
        return tuple(self._term(each.get("podAffinityTerm") or {}, sign * int(each.get("weight", 0))) for each in weighted)

    def _term(self, term: Mapping[str, Any], weight: int) -> Term:
        named, selector = term.get("namespaces"), term.get("namespaceSelector")
        return Term(
            key=term.get("topologyKey", ""),
            selector=narrowed(term.get("labelSelector"), self.labels, term.get("matchLabelKeys"), term.get("mismatchLabelKeys")),
            namespaces=frozenset(named or (() if selector is not None else (self.namespace,))),
            namespace_selector=selector,
            weight=weight,
        )


def narrowed(
    selector: Mapping[str, Any] | None,
    labels: Labels,
    match: Sequence[str] | None,
    mismatch: Sequence[str] | None = None,
) -> Mapping[str, Any] | None:
    """A label selector that also asks for (or against) the pod's own values of some keys; keys it lacks are skipped."""
    if selector is None or not (match or mismatch):
        return selector
    extra = [{"key": key, "operator": "In", "values": [labels[key]]} for key in match or () if key in labels]
    extra += [{"key": key, "operator": "NotIn", "values": [labels[key]]} for key in mismatch or () if key in labels]
    return {**selector, "matchExpressions": [*(selector.get("matchExpressions") or ()), *extra]}


@dataclass(frozen=True, slots=True)
class Placed:
    """How many pods of one kind are on each node, and how many of them are not on their way out."""

    kind: PodKind
    counts: Ints
    staying: Ints


@dataclass(slots=True)
class Topologies:
    """The domains of each topology key: per node the number of its domain, −1 where the node has no such label."""

    node_labels: Sequence[Labels]
    _domains: dict[str, Ints] = field(default_factory=dict)
    _reach: dict[str, tuple[int, int]] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.node_labels)

    def domains(self, key: str) -> Ints:
        """`[nodes]`: which domain of `key` each node is in, numbered from 0."""
        found = self._domains.get(key)
        if found is None:
            numbers: dict[str, int] = {}
            rows = [numbers.setdefault(labels[key], len(numbers)) if key in labels else -1 for labels in self.node_labels]
            found = self._domains[key] = np.array(rows, dtype=np.int64)
        return found

    def totals(self, key: str, counts: Ints) -> Ints:
        """`[nodes]`: the sum of `counts` over each node's domain; 0 where the node is in none."""
        domains, last = self.domains(key), self.reach(key)[1]
        # Sums of numbers of pods are exact as floats, and several times quicker so.
        sums = np.bincount(domains + 1, weights=counts, minlength=last + 2).astype(np.int64)
        sums[0] = 0
        return sums[domains + 1]

    def reach(self, key: str) -> tuple[int, int]:
        """The lowest and the highest number of a domain of `key`: −1 is lowest when some node is in none."""
        found = self._reach.get(key)
        if found is None:
            domains = self.domains(key)
            found = self._reach[key] = (int(domains.min(initial=0)), int(domains.max(initial=-1)))
        return found

    def spanned(self, key: str, nodes: Mask) -> int:
        """How many domains of `key` some nodes are in; to be in none counts as one."""
        return int(np.count_nonzero(np.bincount(self.domains(key)[nodes] + 1)))
