"""Where pods would go, as rows of a table."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from cluster.display import runs
from portal.unblock.trial import Place


@dataclass(frozen=True, slots=True)
class Row:
    """A pod, its node and its GPUs, as short as they can be said."""

    pod: str
    node: str
    gpus: str


def rows(places: Iterable[Place], most: int = 200) -> list[Row]:
    """The pods by name."""
    return [Row(pod, node, runs(gpus)) for pod, node, gpus in list(places)[:most]]
