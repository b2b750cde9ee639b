"""How large a gang fits now, and which free GPUs nobody can use, as the rooms above work it out. What is asked for, and the
tree of network domains, are not known here, so the answer is handed in (`use`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

NODE_TIER = -1
"""The tier of a single node, below all network domains."""


@dataclass(frozen=True, slots=True)
class Fits:
    """The largest gang of a tier. `gpus` is of pods with one GPU, `nodes` of pods that each take all GPUs of a node.

    `domain` and `nodes_domain` are where; each is empty where the number is 0 and for the whole fleet. `tier` is NODE_TIER, that
    of HyperNodes, or the top's; `label` says it: `node`, the name that the tier's domains give it, `fleet`, else `tier 3`.
    """

    tier: int
    label: str
    gpus: int = 0
    domain: str = ""
    nodes: int = 0
    nodes_domain: str = ""


@dataclass(frozen=True, slots=True)
class Unusable:
    """GPUs of a node that are free and of no use, for one cause; the node has `free` in all."""

    node: str
    model: str
    free: int
    gpus: int
    cause: str


@dataclass(frozen=True, slots=True)
class Summary:
    """`tiers` go from the single node up to the whole fleet. `free` GPUs are healthy, on ready nodes and held by nobody, those of
    cordoned nodes among them; `unusable` of them could be given to no pod of the shapes that are asked for (`waiting`: those of
    jobs that wait; else those usually asked), `causes` says why: `cordoned`, `leftover`, `cpu`, `memory`, `pods`, another
    resource, or `several` of these together. `parts` are the same by node, most first.
    """

    tiers: tuple[Fits, ...] = ()
    free: int = 0
    unusable: int = 0
    causes: Mapping[str, int] = field(default_factory=dict)
    waiting: bool = False
    parts: tuple[Unusable, ...] = ()

    def by_node(self) -> dict[str, list[Unusable]]:
        """The parts of each node that has any."""
        found: dict[str, list[Unusable]] = {}
        for part in self.parts:
            found.setdefault(part.node, []).append(part)
        return found


Ask = Callable[[Any], Summary]
_ask: Ask | None = None


def use(ask: Ask | None) -> None:
    """Say who answers."""
    global _ask
    _ask = ask


def summary(user: Any) -> Summary | None:
    """What the user's part of the fleet has room for; None where nobody knows. A constant number of queries, none a pod."""
    return _ask(user) if _ask is not None else None
