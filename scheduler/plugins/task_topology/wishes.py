"""Which roles of a job want to be together and which apart, as annotations of its PodGroup say."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

from cluster.said import said

AFFINITY = "volcano.sh/task-topology-affinity"
ANTI_AFFINITY = "volcano.sh/task-topology-anti-affinity"
ORDER = "volcano.sh/task-topology-task-order"

Groups = Sequence[Sequence[str]]

_APART_FROM_OWN, _WITH_OTHERS, _WITH_OWN, _APART_FROM_OTHERS = 4, 3, 2, 1
"""How early a role is placed by what it wants; the highest counts."""


@dataclass(slots=True)
class Wishes:
    """Of one job. `near` and `apart` are pairs of roles in both directions; a role may be paired with itself.

    `rank` is the place of each role in the order asked for, largest first; `weight` how early it goes by what it wants.
    """

    near: set[tuple[str, str]] = field(default_factory=set)
    apart: set[tuple[str, str]] = field(default_factory=set)
    rank: dict[str, int] = field(default_factory=dict)
    weight: defaultdict[str, int] = field(default_factory=lambda: defaultdict(int))

    def concern(self, role: str) -> bool:
        """Whether anything is said of a role. Its place in the order alone is nothing."""
        return role in self.weight

    def urgency(self, role: str) -> tuple[int, int]:
        """Larger goes earlier: by the order asked for, then by what the role wants."""
        return self.rank.get(role, 0), self.weight.get(role, 0)

    def attraction(self, role: str, others: Mapping[str, int]) -> int:
        """How many of `others` (role → number) a task of the role wants to be with, less those it wants to avoid."""
        return sum(count for other, count in others.items() if (role, other) in self.near) - self.repulsion(role, others)

    def repulsion(self, role: str, others: Mapping[str, int]) -> int:
        """How many of `others` a task of the role wants to avoid."""
        return sum(count for other, count in others.items() if (role, other) in self.apart)

    def _take(self, groups: Groups, pairs: set[tuple[str, str]], of_own: int, of_others: int) -> None:
        for group in groups:
            if len(group) == 1:
                pairs.add((group[0], group[0]))
            else:
                pairs.update((one, other) for one in group for other in group if one != other)
            for role in group:
                self.weight[role] = max(self.weight[role], of_own if len(group) == 1 else of_others)


def read(annotations: Mapping[str, str], roles: Collection[str]) -> Wishes | None:
    """What a PodGroup wishes; None when it wishes nothing. Raises ValueError for a role that it has not, or names twice.

    Groups stand between semicolons, roles between commas; empty names are passed over.
    """
    if not {AFFINITY, ANTI_AFFINITY, ORDER} & annotations.keys():
        return None
    found = Wishes()
    if (text := annotations.get(AFFINITY)) is not None:
        found._take(_groups(AFFINITY, text, roles), found.near, _WITH_OWN, _WITH_OTHERS)
    if (text := annotations.get(ANTI_AFFINITY)) is not None:
        found._take(_groups(ANTI_AFFINITY, text, roles), found.apart, _APART_FROM_OWN, _APART_FROM_OTHERS)
    if (text := annotations.get(ORDER)) is not None:
        order = text.split(",")
        _check(ORDER, order, roles)
        found.rank = {role: len(order) - place for place, role in enumerate(order)}
    return found


def _groups(key: str, text: str, roles: Collection[str]) -> Groups:
    groups = [part.split(",") for part in text.split(";")]
    for group in groups:
        _check(key, group, roles)
    return groups


def _check(key: str, group: Sequence[str], roles: Collection[str]) -> None:
    seen = set()
    for role in filter(None, group):
        if role not in roles:
            raise ValueError(said("annotation %(key)s: the job has no task %(role)r", key=key, role=role))
        if role in seen:
            raise ValueError(said("annotation %(key)s: task %(role)r is named twice in one group", key=key, role=role))
        seen.add(role)
