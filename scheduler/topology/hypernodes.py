"""The cluster's network as a tree of HyperNodes: who is close to whom.

A HyperNode is a domain of nodes that reach each other over one switch; its tier says how far apart they may be (smaller
is closer). A virtual domain above all others holds every node, so any two domains have a lowest common ancestor.
HyperNodes that contradict each other take no part, each with its reason; the rest of the tree stands without them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np

from cluster import objects
from cluster.port import Obj
from cluster.said import said
from cluster.selectors import matches_selector
from scheduler.model.build import section, whole
from scheduler.model.nodes import NodeTable
from scheduler.model.resources import Ints, Mask, Rows

__all__ = ["TOP", "Domain", "HyperNodes", "Member", "NamedRows", "NetworkTree", "Spec", "read"]

TOP = "<cluster-top-hypernode>"
"""The name of the virtual domain of all nodes; no HyperNode object can be called so."""


class NamedRows(Protocol):
    """Nodes as far as a tree must know them: as `NodeTable` has them."""

    @property
    def rows(self) -> int: ...

    @property
    def live(self) -> Mask: ...

    @property
    def index(self) -> Mapping[str, int]: ...

    @property
    def labels(self) -> Sequence[Mapping[str, str]]: ...


@dataclass(frozen=True, slots=True)
class Member:
    """Some nodes, or one domain below: exactly one of `node`, `pattern`, `selector` and `domain` says which."""

    node: str = ""
    pattern: re.Pattern[str] | None = None
    selector: Mapping[str, Any] | None = None
    domain: str = ""


@dataclass(frozen=True, slots=True)
class Spec:
    """What a HyperNode object says."""

    name: str
    tier: int
    tier_name: str
    members: tuple[Member, ...]


def read(obj: Obj) -> Spec:
    """A HyperNode object. Raises ValueError for one that makes no sense by itself."""
    spec = section(obj, "spec")
    tier = whole(spec, "tier", 0)
    if tier < 0:
        raise ValueError(said("spec.tier must be 0 or more, not %(tier)s", tier=tier))
    found = spec.get("members") or ()
    members = tuple(_member(section(member, "selector"), member.get("type")) for member in found)
    if not members:
        raise ValueError(said("spec.members is empty: a domain has nodes, or smaller domains"))
    return Spec(objects.name(obj), tier, str(spec.get("tierName") or ""), members)


def _member(selector: Mapping[str, Any], kind: object) -> Member:
    given = [name for name in ("exactMatch", "regexMatch", "labelMatch") if selector.get(name) is not None]
    if len(given) != 1:
        raise ValueError(said("a member's selector must have exactly one of exactMatch, regexMatch and labelMatch"))
    if kind == "HyperNode":
        if given != ["exactMatch"]:
            raise ValueError(said("a member of type HyperNode is named by exactMatch"))
        return Member(domain=str(selector["exactMatch"]["name"]))
    if given == ["exactMatch"]:
        return Member(node=str(selector["exactMatch"]["name"]))
    if given == ["labelMatch"]:
        return Member(selector=selector["labelMatch"])
    pattern = str(selector["regexMatch"]["pattern"])
    try:
        return Member(pattern=re.compile(pattern))
    except re.error as error:
        raise ValueError(said("%(pattern)r is no regular expression: %(error)s", pattern=pattern, error=error)) from None


@dataclass(slots=True, eq=False)
class Domain:
    """One HyperNode of the tree. `mask` marks the rows of its nodes, those of the domains below included.

    `number` is its place in `HyperNodes.domains`, which goes by tier and name; `is_leaf`: it is of the lowest tier, and its
    nodes are in no other domain of that tier.
    """

    name: str
    tier: int
    tier_name: str = ""
    number: int = 0
    parent: Domain | None = None
    children: list[Domain] = field(default_factory=list, repr=False)
    mask: Mask = field(default_factory=lambda: np.zeros(0, np.bool_), repr=False)
    rows: Rows = field(default_factory=lambda: np.zeros(0, np.intp), repr=False)
    is_leaf: bool = False

    def ancestors(self) -> Iterator[Domain]:
        """The domain itself, and those above it up to the top."""
        found: Domain | None = self
        while found is not None:
            yield found
            found = found.parent

    def subtree(self) -> Iterator[Domain]:
        """The domain itself and all below it, level by level."""
        level = [self]
        while level:
            yield from level
            level = [child for domain in level for child in domain.children]


class HyperNodes:
    """The tree over the nodes of the moment. `aside` says of a HyperNode why it, or one of its members, is left out.

    `domains` are all of them by tier and name, the virtual top last; `tiers` ascend; `leaf` is for each row the number
    of its domain of the lowest tier, −1 where it has none.
    """

    def __init__(self, specs: Iterable[Spec], nodes: NamedRows) -> None:
        self.aside: dict[str, str] = {}
        known = {spec.name: spec for spec in sorted(specs, key=lambda spec: (spec.tier, spec.name))}
        sound = self._sound(known)
        highest = max((spec.tier for spec in sound.values()), default=0)
        self.top = Domain(TOP, max(highest + 1, 1))
        self.by_name = {name: Domain(name, spec.tier, spec.tier_name) for name, spec in sound.items()}
        self._link(sound)
        self.by_name[TOP] = self.top
        self.domains: Sequence[Domain] = list(self.by_name.values())
        for number, domain in enumerate(self.domains):
            domain.number = number
        self.tiers: Sequence[int] = sorted({domain.tier for domain in self.domains})
        self._place(sound, nodes)
        self.leaf: Ints = self.at_tier(self.tiers[0])
        for domain in self.domains:
            domain.is_leaf = domain.tier == self.tiers[0] and bool((self.leaf[domain.rows] == domain.number).all())

    def tier_called(self, name: str) -> int | None:
        """The tier of this name; where several have it, the highest."""
        return max((domain.tier for domain in self.domains if name and domain.tier_name == name), default=None)

    def common(self, first: Domain | None, second: Domain | None) -> Domain | None:
        """The lowest domain that holds both; of one domain and none, the one."""
        if first is None or second is None:
            return first or second
        above = {id(domain) for domain in first.ancestors()}
        return next(domain for domain in second.ancestors() if id(domain) in above)

    def holding(self, rows: Iterable[int]) -> Domain:
        """The domain of the lowest tier that holds all these rows."""
        wanted = list(rows)
        return next(domain for domain in self.domains if domain.mask[wanted].all())

    def at_tier(self, tier: int) -> Ints:
        """For each row the number of its domain of a tier, −1 where it has none."""
        found: Ints = np.full(len(self.top.mask), -1, np.int64)
        for domain in reversed(self.domains):
            if domain.tier == tier:
                found[domain.rows] = domain.number
        return found

    # -- making the tree -----------------------------------------------------------------------------------------------

    def _sound(self, known: dict[str, Spec]) -> dict[str, Spec]:
        """Those that do not contradict each other, lower tiers first: of two that cannot both be right, the later goes."""
        sound: dict[str, Spec] = {}
        parent: dict[str, str] = {}
        for name, spec in known.items():
            reason = self._fault(spec, known, parent)
            if reason:
                self.aside[name] = reason
                continue
            sound[name] = spec
            parent.update({member.domain: name for member in spec.members if member.domain in sound})
            missing = [member.domain for member in spec.members if member.domain and member.domain not in sound]
            if missing:
                why = "takes no part itself" if missing[0] in self.aside else "does not exist"
                self.aside[name] = f"its member {missing[0]} {why}: the domain counts without it"
        return sound

    @staticmethod
    def _fault(spec: Spec, known: Mapping[str, Spec], parent: Mapping[str, str]) -> str:
        if _reaches(spec.name, known):
            return "it is a member of itself, directly or through its members"
        for member in spec.members:
            below = known.get(member.domain)
            if below is not None and below.tier >= spec.tier:
                return f"its member {below.name} has tier {below.tier}, which must be below its own {spec.tier}"
            if member.domain in parent:
                return f"its member {member.domain} belongs to {parent[member.domain]} already"
        return ""

    def _link(self, sound: Mapping[str, Spec]) -> None:
        for name, spec in sound.items():
            domain = self.by_name[name]
            for below in sorted({member.domain for member in spec.members} & sound.keys()):
                child = self.by_name[below]
                child.parent = domain
                domain.children.append(child)
        for domain in self.by_name.values():
            if domain.parent is None:
                domain.parent = self.top
                self.top.children.append(domain)

    def _place(self, sound: Mapping[str, Spec], nodes: NamedRows) -> None:
        """Which nodes each domain has; children come before their parents, since their tiers are lower."""
        for domain in self.domains:
            if domain is self.top:
                domain.mask = nodes.live.copy()
            else:
                domain.mask = _nodes_of(sound[domain.name], nodes)
                for child in domain.children:
                    domain.mask |= child.mask
            domain.rows = np.flatnonzero(domain.mask)


def _nodes_of(spec: Spec, nodes: NamedRows) -> Mask:
    found: Mask = np.zeros(nodes.rows, np.bool_)
    for member in spec.members:
        if member.node:
            if member.node in nodes.index:
                found[nodes.index[member.node]] = True
        elif member.pattern is not None:
            found[[row for name, row in nodes.index.items() if member.pattern.search(name)]] = True
        elif member.selector is not None:
            found[[row for row in nodes.index.values() if matches_selector(member.selector, nodes.labels[row])]] = True
    return found


def _reaches(name: str, known: Mapping[str, Spec]) -> bool:
    """Whether a domain is found again among all that is below it."""
    seen: set[str] = set()
    ahead = [member.domain for member in known[name].members if member.domain]
    while ahead:
        current = ahead.pop()
        if current == name:
            return True
        if current in known and current not in seen:
            seen.add(current)
            ahead += [member.domain for member in known[current].members if member.domain]
    return False


class NetworkTree:
    """The tree kept while HyperNode objects and nodes come and go; made anew only when one of them changed."""

    def __init__(self, nodes: NodeTable) -> None:
        self._nodes = nodes
        self._specs: dict[str, Spec] = {}
        self._tree: HyperNodes | None = None
        self._aside: Mapping[str, str] = {}
        self._version = -1

    def apply(self, obj: Obj, gone: bool) -> None:
        """Take a HyperNode object in, or drop it. Raises ValueError for one that makes no sense by itself."""
        name = objects.name(obj)
        if gone:
            self.drop(name)
            return
        spec = read(obj)
        if self._specs.get(name) != spec:
            self._specs[name], self._tree = spec, None

    def drop(self, name: str) -> None:
        """Forget a HyperNode."""
        if self._specs.pop(name, None) is not None:
            self._tree = None

    @property
    def is_current(self) -> bool:
        """Whether the tree stands as it was last asked for."""
        return self._tree is not None and self._version == self._nodes.static_version

    @property
    def aside(self) -> Mapping[str, str]:
        """What the tree last asked for left out, and why."""
        return self._aside

    def tree(self) -> HyperNodes:
        """The tree over the objects and nodes of now."""
        if self._tree is None or not self.is_current:
            self._tree, self._version = HyperNodes(self._specs.values(), self._nodes), self._nodes.static_version
            self._aside = self._tree.aside
        return self._tree
