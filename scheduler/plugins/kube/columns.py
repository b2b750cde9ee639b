"""The static columns of nodes (labels, taints, names, images) as numbers, so that a check is a look-up over all rows.

Every distinct value is asked about once, with the very functions that decide for a single node, and the answers are
spread over the rows that have it.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from cluster.objects import matches_expressions
from scheduler.plugins.kube.pods import Topologies
from scheduler.plugins.kube.scores import image_name

__all__ = ["Columns", "HasNodes", "of_session"]

Ints = NDArray[np.int64]
Mask = NDArray[np.bool_]
Taints = Sequence[Mapping[str, Any]]

_NAME = "metadata.name"


class _Nodes(Protocol):
    static_version: int
    names: list[str]
    labels: list[Mapping[str, str]]
    taints: list[Taints]
    objects: list[Mapping[str, Any]]


class HasNodes(Protocol):
    """The part of a session that columns are made of."""

    memo: dict[Hashable, Any]

    @property
    def nodes(self) -> Any:
        """The node table."""
        ...


def of_session(ssn: HasNodes) -> Columns:
    """The columns of the session's nodes; kept across sessions until a static column changes."""
    key = ("kube", "columns")
    found = ssn.memo.get(key)
    if found is None or found.version != ssn.nodes.static_version:
        found = ssn.memo[key] = Columns(ssn.nodes)
    assert isinstance(found, Columns)
    return found


class Columns:
    """Look-ups over all rows of a node table as it was when they were made."""

    def __init__(self, nodes: _Nodes) -> None:
        self.version = nodes.static_version
        self.names, self.labels, self.taints = list(nodes.names), list(nodes.labels), list(nodes.taints)
        self.topologies = Topologies(self.labels)
        self._objects = list(nodes.objects)
        self._values: dict[tuple[str, bool], tuple[dict[str, int], Ints]] = {}
        self._taint_sets: tuple[list[Taints], Ints] | None = None
        self._images: list[dict[str, int]] | None = None

    def __len__(self) -> int:
        return len(self.names)

    # -- labels --------------------------------------------------------------------------------------------------------

    def has_labels(self, pairs: Mapping[str, str]) -> Mask:
        """`[rows]`: nodes with all of these labels."""
        return self._all([{"key": key, "operator": "In", "values": [value]} for key, value in pairs.items()], field=False)

    def matches(self, term: Mapping[str, Any]) -> Mask:
        """`[rows]`: nodes that fit a nodeSelectorTerm; a term without any condition fits none."""
        expressions, fields = term.get("matchExpressions") or (), term.get("matchFields") or ()
        if not expressions and not fields:
            return np.zeros(len(self), dtype=np.bool_)
        return self._all(expressions, field=False) & self._all(fields, field=True)

    def _all(self, expressions: Sequence[Mapping[str, Any]], *, field: bool) -> Mask:
        fits: Mask = np.ones(len(self), dtype=np.bool_)
        for expression in expressions:
            key = str(expression.get("key", ""))
            values, codes = self._coded(key, field)
            if expression.get("operator") == "In":  # the only one that is asked of thousands of values
                wanted = [values[value] for value in map(str, expression.get("values") or ()) if value in values]
                fits &= codes == wanted[0] if len(wanted) == 1 else np.isin(codes, wanted)
                continue
            answers = [matches_expressions([expression], {key: value}) for value in values]
            fits &= np.array([*answers, matches_expressions([expression], {})], dtype=np.bool_)[codes]
        return fits

    def _coded(self, key: str, field: bool) -> tuple[dict[str, int], Ints]:
        """Distinct values of a label (or field) with their numbers and, a row each, which of them it has; −1 for none."""
        found = self._values.get((key, field))
        if found is None:
            sources: Sequence[Mapping[str, str]] = [{_NAME: name} for name in self.names] if field else self.labels
            numbers: dict[str, int] = {}
            codes = [numbers.setdefault(each[key], len(numbers)) if key in each else -1 for each in sources]
            found = self._values[key, field] = (numbers, np.array(codes, dtype=np.int64))
        return found

    # -- taints --------------------------------------------------------------------------------------------------------

    def by_taints(self, ask: Callable[[Taints], int]) -> Ints:
        """`[rows]`: an answer that depends only on a node's taints."""
        if self._taint_sets is None:
            numbers: dict[tuple[tuple[Any, ...], ...], int] = {}
            sets: list[Taints] = []
            codes = []
            for taints in self.taints:
                key = tuple((taint.get("key"), taint.get("value"), taint.get("effect")) for taint in taints)
                if key not in numbers:
                    numbers[key] = len(sets)
                    sets.append(taints)
                codes.append(numbers[key])
            self._taint_sets = (sets, np.array(codes, dtype=np.int64))
        sets, rows = self._taint_sets
        answers: Ints = np.array([ask(taints) for taints in sets], dtype=np.int64)
        return answers[rows] if sets else answers

    def has_effect(self, effect: str) -> bool:
        """Whether any node has a taint of this effect."""
        return bool(self.by_taints(lambda taints: sum(taint.get("effect") == effect for taint in taints)).any())

    # -- images --------------------------------------------------------------------------------------------------------

    def images(self) -> list[dict[str, int]]:
        """A row each: the images that the node reports, by every name of theirs, with their bytes."""
        if self._images is None:
            self._images = [
                {
                    image_name(name): int(image.get("sizeBytes") or 0)
                    for image in (node.get("status") or {}).get("images") or ()
                    for name in image.get("names") or ()
                }
                for node in self._objects
            ]
        return self._images

    def has_images(self) -> bool:
        """Whether any node reports an image."""
        return any(self.images())
