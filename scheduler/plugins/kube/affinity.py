"""Inter-pod affinity and anti-affinity: which nodes the pods that are there allow, and which they prefer.

Required terms of existing pods bind only as anti-affinity: their affinity was a matter of when they were placed.
Preferred terms of existing pods pull and push a new pod as its own do; required ones add nothing to the score
(Volcano leaves the weight of hard affinity at 0).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from scheduler.plugins.kube.pods import NamespaceLabels, Placed, PodKind, Topologies

__all__ = ["allowed", "concerns", "preference"]

Mask = NDArray[np.bool_]
Ints = NDArray[np.int64]


def concerns(pod: PodKind, others: Sequence[PodKind], namespaces: NamespaceLabels) -> bool:
    """Whether where the others are can matter to `pod`: it has terms of its own, or one of theirs speaks of it."""
    return pod.has_terms or any(
        term.matches(pod, namespaces) for other in others for term in (*other.anti_affinity, *other.preferred)
    )


def allowed(pod: PodKind, there: Sequence[Placed], where: Topologies, namespaces: NamespaceLabels) -> Mask:
    """`[nodes]`: where required terms let `pod` go, its own and the anti-affinity of the pods that are there."""
    fits: Mask = np.ones(len(where), dtype=np.bool_)
    for placed in there:
        for term in placed.kind.anti_affinity:
            if term.matches(pod, namespaces):
                fits &= where.totals(term.key, placed.counts) == 0
        for term in pod.anti_affinity:
            if term.matches(placed.kind, namespaces):
                fits &= where.totals(term.key, placed.counts) == 0
    return fits & _attracted(pod, there, where, namespaces)


def _attracted(pod: PodKind, there: Sequence[Placed], where: Topologies, namespaces: NamespaceLabels) -> Mask:
    """Nodes near pods that match all the required affinity terms at once.

    The first of a group that asks for its own kind may go wherever the labels are.
    """
    fits: Mask = np.ones(len(where), dtype=np.bool_)
    if not pod.affinity:
        return fits
    matching: Ints = np.zeros(len(where), dtype=np.int64)
    for placed in there:
        if all(term.matches(placed.kind, namespaces) for term in pod.affinity):
            matching += placed.counts
    near = [where.totals(term.key, matching) > 0 for term in pod.affinity]
    for term in pod.affinity:
        fits &= where.domains(term.key) >= 0
    if not any(each.any() for each in near) and all(term.matches(pod, namespaces) for term in pod.affinity):
        return fits
    for each in near:
        fits &= each
    return fits


def preference(pod: PodKind, there: Sequence[Placed], where: Topologies, namespaces: NamespaceLabels) -> Ints | None:
    """`[nodes]`: what preferred terms say of each node, not yet stretched to 0…100; None when no term speaks."""
    raw: Ints = np.zeros(len(where), dtype=np.int64)
    spoke = False
    for placed in there:
        speaking = [term for term in pod.preferred if term.matches(placed.kind, namespaces)]
        speaking += [term for term in placed.kind.preferred if term.matches(pod, namespaces)]
        for term in speaking:
            raw += term.weight * where.totals(term.key, placed.counts)
            spoke = True
    return raw if spoke else None
