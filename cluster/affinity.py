"""Which nodes a pod may run on by what it says of itself: node selectors, node affinity, taints and tolerations."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from cluster.selectors import Labels, matches_expressions

Taint = Mapping[str, Any]
Toleration = Mapping[str, Any]

HARD_EFFECTS = ("NoSchedule", "NoExecute")


def matches_node(spec: Mapping[str, Any], labels: Labels, name: str) -> bool:
    """Whether a node's labels and name satisfy a pod spec's nodeSelector and required node affinity."""
    if any(labels.get(key) != value for key, value in (spec.get("nodeSelector") or {}).items()):
        return False
    required = _node_affinity(spec).get("requiredDuringSchedulingIgnoredDuringExecution")
    if required is None:
        return True
    return any(matches_term(term, labels, name) for term in required.get("nodeSelectorTerms") or ())


def matches_term(term: Mapping[str, Any], labels: Labels, name: str) -> bool:
    """Whether one nodeSelectorTerm fits; a term without any condition fits no node."""
    expressions, fields = term.get("matchExpressions"), term.get("matchFields")
    if not expressions and not fields:
        return False
    return matches_expressions(expressions, labels) and matches_expressions(fields, {"metadata.name": name})


def preferred_weight(spec: Mapping[str, Any], labels: Labels, name: str) -> int:
    """The sum of the weights of the preferred terms that a node fulfils; an empty preferred term fits every node."""
    total = 0
    for preferred in _node_affinity(spec).get("preferredDuringSchedulingIgnoredDuringExecution") or ():
        term = preferred.get("preference") or {}
        if not (term.get("matchExpressions") or term.get("matchFields")) or matches_term(term, labels, name):
            total += int(preferred.get("weight", 0))
    return total


def _node_affinity(spec: Mapping[str, Any]) -> Mapping[str, Any]:
    found: Mapping[str, Any] = (spec.get("affinity") or {}).get("nodeAffinity") or {}
    return found


def tolerates(toleration: Toleration, taint: Taint) -> bool:
    """Whether one toleration covers one taint: an empty effect covers all, an empty key with Exists covers every taint."""
    if toleration.get("effect") and toleration["effect"] != taint.get("effect"):
        return False
    key = toleration.get("key") or ""
    if key and key != taint.get("key"):
        return False
    operator = toleration.get("operator") or "Equal"
    if operator == "Exists":
        return True
    return operator == "Equal" and bool(key) and (toleration.get("value") or "") == (taint.get("value") or "")


def untolerated(
    tolerations: Iterable[Toleration] | None, taints: Iterable[Taint] | None, effects: Sequence[str] = HARD_EFFECTS
) -> list[Taint]:
    """The taints of the given effects that no toleration covers, in the node's order."""
    covers = list(tolerations or ())
    return [
        taint
        for taint in taints or ()
        if taint.get("effect") in effects and not any(tolerates(toleration, taint) for toleration in covers)
    ]
