"""Topology spread constraints: where a pod would not unbalance the domains, and where it balances them best."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cluster.objects import HOSTNAME_LABEL, matches_node, matches_selector, untolerated
from scheduler.plugins.kube.pods import Placed, PodKind, Topologies, narrowed

__all__ = ["Constraint", "constraints", "evenness", "within_skew"]

Mask = NDArray[np.bool_]
Ints = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Constraint:
    """One constraint of a pod, defaults filled in."""

    key: str
    max_skew: int
    selector: Mapping[str, Any] | None
    min_domains: int = 1
    honor_affinity: bool = True
    honor_taints: bool = False


def constraints(pod: PodKind, *, hard: bool) -> tuple[Constraint, ...]:
    """The pod's own constraints that must hold (`hard`), or those that are only wished for."""
    wanted = "DoNotSchedule" if hard else "ScheduleAnyway"
    return tuple(
        Constraint(
            key=each.get("topologyKey", ""),
            max_skew=int(each.get("maxSkew", 1)),
            selector=narrowed(each.get("labelSelector"), pod.labels, each.get("matchLabelKeys")),
            min_domains=int(each.get("minDomains") or 1),
            honor_affinity=(each.get("nodeAffinityPolicy") or "Honor") == "Honor",
            honor_taints=(each.get("nodeTaintsPolicy") or "Ignore") == "Honor",
        )
        for each in pod.spec.get("topologySpreadConstraints") or ()
        if (each.get("whenUnsatisfiable") or "DoNotSchedule") == wanted
    )


def _counted(
    pod: PodKind, constraint: Constraint, where: Topologies, names: Sequence[str], taints: Sequence[Sequence[Mapping[str, Any]]]
) -> Mask:
    """`[nodes]`: the nodes whose pods and domains a constraint looks at."""
    counted: Mask = np.ones(len(where), dtype=np.bool_)
    if constraint.honor_affinity and (pod.spec.get("nodeSelector") or (pod.spec.get("affinity") or {}).get("nodeAffinity")):
        counted &= [matches_node(pod.spec, labels, name) for labels, name in zip(where.node_labels, names)]
    if constraint.honor_taints:
        tolerations = pod.spec.get("tolerations")
        counted &= [not untolerated(tolerations, each) for each in taints]
    return counted


def _matching(pod: PodKind, constraint: Constraint, there: Sequence[Placed], nodes: int) -> Ints:
    """`[nodes]`: pods of the same namespace that the selector takes and that stay."""
    total: Ints = np.zeros(nodes, dtype=np.int64)
    exact = (constraint.selector or {}).get("matchLabels") or {"": None}
    key, value = min(exact.items())  # the one pair that all must have rules out most, such as the pods of other jobs
    for placed in there:
        if (
            placed.kind.labels.get(key) == value
            and placed.kind.namespace == pod.namespace
            and matches_selector(constraint.selector, placed.kind.labels)
        ):
            total += placed.staying
    return total


def within_skew(
    pod: PodKind,
    asked: Sequence[Constraint],
    there: Sequence[Placed],
    where: Topologies,
    names: Sequence[str],
    taints: Sequence[Sequence[Mapping[str, Any]]],
) -> Mask:
    """`[nodes]`: where the pod keeps every constraint: its domain would hold at most max_skew more than the emptiest."""
    nodes = len(where)
    fits: Mask = np.ones(nodes, dtype=np.bool_)
    labelled = _labelled(asked, where)
    for constraint in asked:
        counted = labelled & _counted(pod, constraint, where, names, taints)
        totals = where.totals(constraint.key, _matching(pod, constraint, there, nodes) * counted)
        domains = where.domains(constraint.key)
        eligible = len(np.unique(domains[counted]))
        least = int(totals[counted].min(initial=np.iinfo(np.int64).max)) if eligible >= constraint.min_domains else 0
        itself = int(matches_selector(constraint.selector, pod.labels))
        fits &= (domains >= 0) & (totals + itself - least <= constraint.max_skew)
    return fits


def evenness(
    pod: PodKind,
    asked: Sequence[Constraint],
    there: Sequence[Placed],
    where: Topologies,
    candidates: Mask,
    names: Sequence[str],
    taints: Sequence[Sequence[Mapping[str, Any]]],
    *,
    by_default: bool = False,
) -> Ints:
    """`[nodes]`: 0 to 100, higher where fewer matching pods are; what counts is how the candidates compare.

    Nodes without all the keys score 0, unless the constraints are the scheduler's own: a key that a node lacks says
    nothing of it then.
    """
    nodes = len(where)
    labelled = np.ones(nodes, dtype=np.bool_) if by_default else _labelled(asked, where)
    scored = candidates & labelled
    raw = np.zeros(nodes, dtype=np.float64)
    for constraint in asked:
        lowest, highest = where.reach(constraint.key)
        if highest < 0:  # no node has the key
            continue
        matching = _matching(pod, constraint, there, nodes)
        if constraint.key == HOSTNAME_LABEL:
            totals, size = matching, int(np.count_nonzero(scored))
        else:
            counted = labelled & _counted(pod, constraint, where, names, taints)
            totals, size = where.totals(constraint.key, matching * counted), where.spanned(constraint.key, scored)
        part = totals * np.log(size + 2) + (constraint.max_skew - 1)
        raw += part if lowest >= 0 else np.where(where.domains(constraint.key) >= 0, part, 0.0)
    return _inverted(np.floor(raw + 0.5).astype(np.int64), scored)


def _inverted(raw: Ints, scored: Mask) -> Ints:
    """The fewest at the top: 100 × (highest + lowest − raw) / highest."""
    among = raw[scored]
    if not among.size:
        return np.zeros_like(raw)
    lowest, highest = int(among.min()), int(among.max())
    if highest == 0:
        return np.where(scored, 100, 0)
    if highest - lowest < len(raw):  # dividing is dear: once for each value, not for each node
        each = 100 * (highest - np.arange(highest - lowest + 1)) // highest
        return np.where(scored, each.take(raw - lowest, mode="clip"), 0)
    return np.where(scored, 100 * (highest + lowest - raw) // highest, 0)


def _labelled(asked: Sequence[Constraint], where: Topologies) -> Mask:
    """`[nodes]`: the nodes that have every topology key."""
    has: Mask = np.ones(len(where), dtype=np.bool_)
    for constraint in asked:
        has &= where.domains(constraint.key) >= 0
    return has
