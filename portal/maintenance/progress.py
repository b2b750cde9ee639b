"""How far a drain is, as its viewer may know it: for the page and REST alike."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from django.db.models import QuerySet

from cluster import queries
from cluster.models import Node
from jobs.rows import iso
from portal.maintenance import acts, words
from portal.maintenance.models import ACTIVE, UNENDED, Drain, DrainedNode, DrainState, Mode, NodeState
from portal.maintenance.preview import visible

Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class HeldLine:
    """A pod that something keeps, with the reason in words; `name` is empty where the viewer may not see it."""

    name: str
    code: str
    word: str
    why: str


@dataclass(frozen=True, slots=True)
class NodeLine:
    """One node: of `pods` so many are `left`; None: nobody has looked yet. `is_shut`: it is cordoned still, and by no drain."""

    row: DrainedNode
    held: list[HeldLine]
    is_shut: bool = False

    @property
    def state(self) -> NodeState:
        """Its state, with a label and a mark."""
        return NodeState(self.row.state)

    @property
    def gone(self) -> int | None:
        """Pods that have left."""
        if self.row.pods is None or self.row.left is None:
            return None
        return max(self.row.pods - self.row.left, 0)

    @property
    def all(self) -> int:
        """Pods that had to go, those that came meanwhile among them."""
        return max(self.row.pods or 0, self.row.left or 0)


@dataclass(frozen=True, slots=True)
class Progress:
    """A drain with its nodes; `may_change`: the viewer may cancel it."""

    drain: Drain
    nodes: list[NodeLine]
    may_change: bool

    @property
    def state(self) -> DrainState:
        """Its state, with a label and a mark."""
        return DrainState(self.drain.state)

    @property
    def mode(self) -> Mode:
        """What becomes of the pods."""
        return Mode(self.drain.mode)

    @property
    def is_under_way(self) -> bool:
        return self.drain.state in UNENDED

    @property
    def shut(self) -> list[NodeLine]:
        """Nodes that it left cordoned, and that are so still."""
        return [each for each in self.nodes if each.is_shut and each.row.state in (NodeState.DRAINED, NodeState.LEFT)]

    @property
    def total(self) -> int:
        """Its nodes."""
        return len(self.nodes)

    @property
    def emptied(self) -> int:
        """Nodes that are empty."""
        return sum(each.row.state == NodeState.DRAINED for each in self.nodes)

    @property
    def stuck(self) -> int:
        """Pods that something keeps now."""
        return sum(each.row.held_count for each in self.nodes)

    @property
    def left(self) -> int | None:
        """Pods that still have to go on nodes that were looked at; None when none was."""
        known = [each.row.left for each in self.nodes if each.row.left is not None and each.row.state in ACTIVE]
        return sum(known) if known else None


def of(user: Any, drain: Drain) -> Progress:
    """How far a drain is. Names of pods that the user may not see are left out."""
    rows: Sequence[DrainedNode] = list(drain.nodes.all())
    seen = visible(user, {each["uid"] for row in rows for each in row.held})
    shut = set(_shut(user, drain).values_list("name", "uid")) if drain.state not in UNENDED else set()
    lines = [NodeLine(row, [_held(each, each["uid"] in seen) for each in row.held], (row.node, row.uid) in shut) for row in rows]
    return Progress(drain, lines, acts.may_change(user, drain))


def _shut(user: Any, drain: Drain) -> QuerySet[Node]:
    return queries.nodes(user).filter(name__in=drain.nodes.values("node"), cordoned=True, draining=False)


def _held(each: dict[str, str], is_seen: bool) -> HeldLine:
    name = f"{each['namespace']}/{each['name']}" if is_seen else ""
    return HeldLine(name, each["code"], words.held(each["code"]), each["why"] if is_seen else "")


def row(drain: Drain) -> Json:
    """A drain in a list."""
    nodes = list(drain.nodes.all())
    return {
        "id": str(drain.pk),
        "user": drain.user,
        "reason": drain.reason,
        "mode": drain.mode,
        "in_turn": drain.in_turn,
        "bare": drain.bare,
        "local_data": drain.local_data,
        "state": drain.state,
        "nodes": [each.node for each in nodes],
        "drained": sum(each.state == NodeState.DRAINED for each in nodes),
        "deadline": iso(drain.deadline),
        "created_at": iso(drain.created_at),
        "finished_at": iso(drain.finished_at),
        "ended_by": drain.ended_by,
    }


def as_json(found: Progress) -> Json:
    """A drain with each of its nodes."""
    return row(found.drain) | {"by_node": [_node_json(each) for each in found.nodes], "left": found.left, "held": found.stuck}


def _node_json(each: NodeLine) -> Json:
    found = each.row
    return {
        "node": found.node, "state": found.state, "pods": found.pods, "left": found.left, "was_cordoned": found.was_cordoned,
        "cordoned_at": iso(found.cordoned_at), "looked_at": iso(found.looked_at), "finished_at": iso(found.finished_at),
        "held": [{"pod": one.name, "code": one.code, "why": one.why} for one in each.held], "held_count": found.held_count,
        "trouble": found.trouble,
    }  # fmt: skip
