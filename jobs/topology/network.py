"""The tree of network domains over rows: as the scheduler makes it of HyperNodes, else of the labels of racks and spines."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from cluster import queries
from cluster.access import policy
from cluster.models import HyperNode
from cluster.objects import RACK_LABEL, SPINE_LABEL
from cluster.said import told
from jobs.topology.stock import Machine
from scheduler.model.resources import Mask
from scheduler.topology.hypernodes import TOP, Domain, HyperNodes, Member, Spec, read

RACK, SPINE = "rack", "spine"


class Rows:
    """Nodes by name, as a tree wants them; the last entry of nothing else."""

    def __init__(self, names: Sequence[str], labels: Sequence[Mapping[str, str]] = ()) -> None:
        self.rows = len(names)
        self.live: Mask = np.ones(len(names), np.bool_)
        self.index = {name: row for row, name in enumerate(names)}
        self.labels = labels or [{}] * len(names)


@dataclass(frozen=True, slots=True)
class Network:
    """A tree, with the word for each of its tiers. `by_labels`: there are no HyperNodes, so the scheduler knows no tiers; what is
    shown are the racks and spines of nodes' labels. `aside` says which HyperNodes take no part, and why."""

    tree: HyperNodes
    tiers: Mapping[int, str]
    by_labels: bool
    aside: Mapping[str, str]

    def rooms(self) -> list[Domain]:
        """The domains without the virtual top."""
        return [domain for domain in self.tree.domains if domain.name != TOP]


_last: tuple[Any, Network] | None = None


def network(user: Any, machines: Sequence[Machine]) -> Network:
    """The network over these machines (rows go in their order); one query, and one more where domains select nodes by labels."""
    global _last
    names = tuple(machine.name for machine in machines)
    rows = list(policy().visible(user, HyperNode.objects.filter(deleted_at=None)).order_by("name"))
    labels: tuple[Mapping[str, str], ...] = ()
    if any("labelMatch" in (member.get("selector") or {}) for row in rows for member in row.members if isinstance(member, dict)):
        known = dict(queries.nodes(user).values_list("name", "labels"))
        labels = tuple(known.get(name, {}) for name in names)
    places = () if rows else tuple((machine.rack, machine.spine) for machine in machines)
    key = ([(row.uid, row.resource_version) for row in rows], names, labels, places)
    last = _last
    if last is None or last[0] != key:
        last = _last = key, _made(rows, names, labels, machines)
    return last[1]


def _made(
    rows: Sequence[HyperNode], names: Sequence[str], labels: Sequence[Mapping[str, str]], machines: Sequence[Machine]
) -> Network:
    aside: dict[str, str] = {}
    specs = list(_of_labels(machines)) if not rows else []
    for row in rows:
        spec = {"tier": row.tier, "tierName": row.tier_name, "members": row.members}
        try:
            specs.append(read({"metadata": {"name": row.name}, "spec": spec}))
        except (ValueError, TypeError, KeyError, AttributeError) as error:
            aside[row.name] = told(error)
    tree = HyperNodes(specs, Rows(names, labels))
    return Network(tree, _words(tree), not rows, {**aside, **tree.aside})


def _of_labels(machines: Sequence[Machine]) -> list[Spec]:
    """Racks, and spines over them. A rack that two spines claim is two racks; nodes of a spine without a rack are in it alone."""
    racks: defaultdict[tuple[str, str], list[str]] = defaultdict(list)
    spines: defaultdict[str, list[Member]] = defaultdict(list)
    for machine in machines:
        if machine.rack:
            racks[machine.spine, machine.rack].append(machine.name)
        elif machine.spine:
            spines[machine.spine].append(Member(node=machine.name))
    above = {machine.spine for machine in machines if machine.spine}
    twice = {rack for rack, times in Counter(rack for _spine, rack in racks).items() if times > 1} | above
    found = []
    for (spine, rack), nodes in racks.items():
        name = f"{spine}/{rack}" if rack in twice else rack
        found.append(Spec(name, 1, RACK, tuple(Member(node=node) for node in nodes)))
        if spine:
            spines[spine].append(Member(domain=name))
    return found + [Spec(name, 2, SPINE, tuple(members)) for name, members in spines.items()]


_KNOWN = {RACK_LABEL: RACK, SPINE_LABEL: SPINE}


def _words(tree: HyperNodes) -> dict[int, str]:
    """What the domains of each tier call it, where they agree; a label's key is known by what it says."""
    called: defaultdict[int, set[str]] = defaultdict(set)
    for domain in tree.domains:
        called[domain.tier].add(domain.tier_name)
    found = {tier: names.pop() if len(names) == 1 else "" for tier, names in called.items()}
    found = {tier: _KNOWN.get(name, name.rpartition("/")[2]) for tier, name in found.items()}
    return found | {tree.top.tier: "fleet"}
