"""resource-strategy-fit: fill some resources and spread others, keep off scarce ones, and keep proportions for them.

Scores look at what a node would have in use once the task is there. A pod may bring a strategy of its own.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import orjson

from cluster.said import said
from scheduler.framework.plugin import MAX_NODE_SCORE
from scheduler.framework.registry import plugin
from scheduler.model.nodes import Block
from scheduler.model.resources import CPU, MEMORY, Dimensions, Floats, Mask
from scheduler.model.tasks import TaskClass, TaskInfo

if TYPE_CHECKING:
    from scheduler.conf import Arguments
    from scheduler.framework.session import Session

TYPE, WEIGHTS = "volcano.sh/resource-strategy-scoring-type", "volcano.sh/resource-strategy-weight"
LEAST, MOST = "LeastAllocated", "MostAllocated"
_WEIGHT = 10
_MEMORY_UNIT = 1_000_000
"""Bytes of memory that one milli-unit of a resource counts for."""

Terms = list[tuple[int, int, bool]]
"""Dimension, weight, and whether it should be filled (else spread)."""


@dataclass(frozen=True, slots=True)
class Strategy:
    """How one resource, or all whose names begin alike, is scored."""

    fills: bool
    weight: int


@dataclass(frozen=True, slots=True)
class Scarce:
    """Resources that pods which do not need them should leave alone, with their weights."""

    weights: Mapping[str, int]
    weight: int


@plugin
class ResourceStrategyFit:
    """Arguments: `resourceStrategyFitWeight` (10), `resources` (cpu and memory LeastAllocated, weight 1): name or `prefix*`
    to `type` and `weight`; `sra` with `enable`, `resources`, `weight`, `resourceWeight`; `proportional` with `enable`,
    `resources`, `resourceProportion`.
    """

    name: ClassVar[str] = "resource-strategy-fit"
    _dims: Dimensions

    def __init__(self, arguments: Arguments) -> None:
        weight = arguments.integer("resourceStrategyFitWeight", _WEIGHT)
        self._weight = weight if weight >= 0 else _WEIGHT
        self._strategies = _strategies(arguments)
        self._scarce = _scarce(arguments)
        self._proportions = _proportions(arguments)
        self._terms: dict[TaskClass, Terms] = {}

    def on_session_open(self, ssn: Session) -> None:
        self._dims = ssn.dims
        if self._proportions:
            ssn.add_predicate(self.name, "proportion", self.keeps_proportion)
        if self._weight:
            ssn.add_node_score(self.name, self.score)
            ssn.add_task_score(self.name, self.own_score, lambda task: bool(_annotations(task).get(TYPE)))
        if self._scarce is not None and self._scarce.weight > 0:
            ssn.add_node_score(self.name, self.abundance)

    def on_session_close(self, ssn: Session) -> None:
        """Nothing to write."""

    # -- scores ----------------------------------------------------------------------------------------------------------

    def score(self, cls: TaskClass, at: Block) -> Floats:
        """The weighted mean over the asked resources that have a strategy; 0 where the task does not fit what is idle."""
        terms = self._terms.get(cls)
        if terms is None:
            terms = self._terms[cls] = [
                (place, found.weight, found.fills) for place, name in self._asked(cls) if (found := self._strategy(name))
            ]
        return self._fit(cls, at, terms)

    def own_score(self, task: TaskInfo, at: Block) -> Floats:
        """What a pod's own strategy scores instead of the configured one; 0 when it cannot be read."""
        marks = _annotations(task)
        weights, fills = _weights(marks.get(WEIGHTS, "")), marks[TYPE] == MOST
        known = marks[TYPE] in (LEAST, MOST)
        terms = [(place, weights[name], fills) for place, name in self._asked(task.cls) if name in weights] if known else []
        own: Floats = self._fit(task.cls, at, terms) - self.score(task.cls, at)
        return own

    def _fit(self, cls: TaskClass, at: Block, terms: Terms) -> Floats:
        score = np.zeros(len(at.rows))
        fits = np.ones(len(at.rows), np.bool_)
        for place, weight, fills in terms:
            have, used = at.allocatable[:, place], at.used[:, place] + cls.request[place]
            counted = (have > 0) & (weight != 0)
            fits &= ~counted | (used <= have)
            part = used / np.maximum(have, 1)
            score += np.where(counted, weight * (part if fills else 1 - part), 0.0)
        total = sum(weight for _, weight, _ in terms)
        if total > 0:
            score /= total
        found: Floats = np.where(fits, score, 0.0) * (MAX_NODE_SCORE * self._weight)
        return found

    def abundance(self, cls: TaskClass, at: Block) -> Floats:
        """More for nodes that have fewer of the scarce resources; 0 for one that lacks something the task asks."""
        assert self._scarce is not None
        weights = self._scarce.weights
        total = sum(weights.values())
        if not total:
            return np.zeros(len(at.rows))
        held = np.zeros(len(at.rows))
        for name, weight in weights.items():
            place = self._dims.index.get(name)
            if place is not None:
                held += weight * (at.allocatable[:, place] > 0)
        places = [place for place, _ in self._asked(cls)]
        able = (at.allocatable[:, places] > 0).all(axis=1)
        found: Floats = np.where(able, 1 - held / total, 0.0) * (MAX_NODE_SCORE * self._scarce.weight)
        return found

    # -- proportions -----------------------------------------------------------------------------------------------------

    def keeps_proportion(self, cls: TaskClass, at: Block) -> Mask:
        """Whether enough cpu and memory stay idle beside idle scarce resources that the task does not ask for."""
        places = [(self._dims.index[name], rates) for name, rates in self._proportions.items() if name in self._dims.index]
        mask: Mask = np.ones(len(at.rows), np.bool_)
        if any(cls.request[place] > 0 for place, _ in places):
            return mask
        idle = at.allocatable - at.used
        for place, (cpu, memory) in places:
            listed = at.allocatable[:, place] > 0
            kept = idle[:, place] * cpu <= idle[:, CPU] - cls.request[CPU]
            kept &= idle[:, place] * memory * _MEMORY_UNIT <= idle[:, MEMORY] - cls.request[MEMORY]
            mask &= kept | ~listed
        return mask

    # -- names -----------------------------------------------------------------------------------------------------------

    def _asked(self, cls: TaskClass) -> list[tuple[int, str]]:
        return [(place, self._dims.names[place]) for place in np.flatnonzero(cls.request > 0).tolist()]

    def _strategy(self, name: str) -> Strategy | None:
        """A resource's own strategy, else that of the longest prefix that it begins with."""
        own = self._strategies.get(name)
        if own is not None:
            return own
        prefixes = [key for key in self._strategies if key.endswith("*") and name.startswith(key[:-1])]
        return self._strategies[max(prefixes, key=len)] if prefixes else None


def _annotations(task: TaskInfo) -> Mapping[str, str]:
    return task.pod["metadata"].get("annotations") or {}


def _weights(text: str) -> dict[str, int]:
    """Weights by resource, as JSON; none when they cannot be read."""
    try:
        found = orjson.loads(text)
    except orjson.JSONDecodeError:
        return {}
    valid = isinstance(found, dict) and all(isinstance(weight, int) for weight in found.values())
    return dict(found) if valid else {}


# -- arguments -------------------------------------------------------------------------------------------------------------


def _strategies(arguments: Arguments) -> dict[str, Strategy]:
    given = _section(arguments, "resources")
    if not given:
        return {name: Strategy(False, 1) for name in ("cpu", "memory")}
    found = {}
    for name, spec in given.items():
        if "*" in name and (name == "*" or name.index("*") != len(name) - 1):
            raise arguments.error("resources", said("%(name)r may have one * at its end, after a prefix", name=name))
        if not isinstance(spec, Mapping) or not isinstance(spec.get("weight", 1), int):
            raise arguments.error("resources", said("%(name)s must have a type and a weight, a whole number", name=name))
        kind = spec.get("type", LEAST)
        if kind not in (LEAST, MOST):
            raise arguments.error(
                "resources",
                said("%(name)s: type %(kind)r must be %(least)s or %(most)s", name=name, kind=kind, least=LEAST, most=MOST),
            )
        found[name] = Strategy(kind == MOST, max(spec.get("weight", 1), 0) or 1)
    return found


def _scarce(arguments: Arguments) -> Scarce | None:
    given = _section(arguments, "sra")
    if not _enabled(arguments, "sra", given):
        return None
    weight, weights = given.get("weight", 0), given.get("resourceWeight") or {}
    if not isinstance(weight, int) or not isinstance(weights, Mapping) or not all(isinstance(w, int) for w in weights.values()):
        raise arguments.error("sra", said("weight and the values of resourceWeight must be whole numbers"))
    return Scarce({name: _or_one(weights.get(name, 1)) for name in _names(arguments, "sra", given)}, weight)


def _proportions(arguments: Arguments) -> dict[str, tuple[float, float]]:
    given = _section(arguments, "proportional")
    if not _enabled(arguments, "proportional", given):
        return {}
    rates = given.get("resourceProportion") or {}
    if not isinstance(rates, Mapping) or not all(isinstance(rate, (int, float)) for rate in rates.values()):
        raise arguments.error("proportional", said("the values of resourceProportion must be numbers"))
    names = _names(arguments, "proportional", given)
    return {name: (_or_one(rates.get(f"{name}.cpu", 1)), _or_one(rates.get(f"{name}.memory", 1))) for name in names}


def _or_one(value: Any) -> Any:
    return value if value >= 0 else 1


def _section(arguments: Arguments, key: str) -> Mapping[str, Any]:
    found = arguments.value(key, {})
    if not isinstance(found, Mapping) or not all(isinstance(name, str) for name in found):
        raise arguments.error(key, said("it must be a mapping of names to values"))
    return found


def _enabled(arguments: Arguments, key: str, section: Mapping[str, Any]) -> bool:
    found = section.get("enable", False)
    if not isinstance(found, bool):
        raise arguments.error(key, said("enable %(found)r must be true or false", found=found))
    return found


def _names(arguments: Arguments, key: str, section: Mapping[str, Any]) -> list[str]:
    found = section.get("resources", "")
    if not isinstance(found, str):
        raise arguments.error(key, said("resources must be a text: names with commas between them"))
    return [name.strip() for name in found.split(",") if name.strip()]
