"""nodeorder: which of the nodes that fit is best, by the scorers of Kubernetes's default scheduler, weighted and added."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from cluster.objects import untolerated
from scheduler.framework.plugin import LoneScore
from scheduler.framework.registry import plugin
from scheduler.model.nodes import Block
from scheduler.model.resources import CPU, MEMORY, PODS, Ints, Mask, Rows
from scheduler.model.tasks import TaskClass, TaskInfo
from scheduler.plugins.kube import affinity, columns, few, population, scores, spread
from scheduler.plugins.kube.columns import Columns
from scheduler.plugins.kube.population import Population

if TYPE_CHECKING:
    from scheduler.conf import Arguments
    from scheduler.framework.session import Session

WEIGHTS = {
    "leastrequested": 1,
    "mostrequested": 0,
    "balancedresource": 1,
    "nodeaffinity": 2,
    "podaffinity": 2,
    "tainttoleration": 3,
    "imagelocality": 1,
    "podtopologyspread": 2,
}
_GPU = "nvidia.com/gpu"
_CPU_AND_MEMORY: Rows = np.array([CPU, MEMORY], np.intp)
_SOFT = ("PreferNoSchedule",)


@plugin
class NodeOrder:
    """Each scorer gives 0 to 100; its weight (`<scorer>.weight`) multiplies it, and 0 turns it off.

    A scorer that has nothing to say of a class (no preferred terms, no such taints anywhere, no images known) is not
    asked; what it would give is the same for all nodes.
    """

    name: ClassVar[str] = "nodeorder"
    _columns: Columns
    _population: Population
    _gpu: int | None
    _is_exact: bool

    def __init__(self, arguments: Arguments) -> None:
        self._weights = {scorer: arguments.integer(f"{scorer}.weight", weight) for scorer, weight in WEIGHTS.items()}
        self._scorers: dict[TaskClass, few.Scorer] = {}

    def on_session_open(self, ssn: Session) -> None:
        self._columns, self._population = columns.of_session(ssn), population.of_session(ssn)
        self._gpu = ssn.dims.index.get(_GPU)
        self._is_exact = bool((ssn.nodes.allocatable < few.EXACT).all())
        weights = self._weights
        if any(weights[scorer] for scorer in ("leastrequested", "mostrequested", "balancedresource")):
            ssn.add_node_score(self.name, self.resources, alone=self._alone)
        if weights["imagelocality"] and self._columns.has_images():
            ssn.add_node_score(self.name, self.images, static=True)
        if weights["nodeaffinity"]:
            ssn.add_normalised_score(self.name, self._wishes, self._scaled, applies=_has_wishes)
        if weights["tainttoleration"] and self._columns.has_effect(_SOFT[0]):
            ssn.add_normalised_score(self.name, self._disliked, self._inverted)
        if weights["podaffinity"]:
            ssn.add_task_score(self.name, self._company, self._population.concerns)
        if weights["podtopologyspread"]:
            ssn.add_task_score(self.name, self._evenness, _wants_spread)
            if ssn.estate.services:
                ssn.add_task_score(self.name, self._default_evenness, lambda task: bool(self._population.defaults(task)))

    def on_session_close(self, ssn: Session) -> None:
        """Nothing to write."""

    # -- what the node holds -----------------------------------------------------------------------------------------------

    def resources(self, cls: TaskClass, at: Block) -> Ints:
        """Least requested, most requested and balance, weighted.

        The first two count containers without requests by Kubernetes's defaults, balance counts what is really asked.
        """
        if len(at) <= few.FEW and self._is_exact:
            return self._one_by_one(cls, at)
        weights, total = self._weights, None
        if weights["leastrequested"] or weights["mostrequested"]:
            have, need = at.allocatable[:, :PODS], at.nonzero + cls.nonzero
            if weights["leastrequested"]:
                total = _plus(total, weights["leastrequested"], scores.least_requested(need, have))
            if weights["mostrequested"]:
                total = _plus(total, weights["mostrequested"], scores.most_requested(need, have))
        if weights["balancedresource"] and (places := self._balanced_places(cls)) is not None:
            held, have = at.listed.take(places, axis=1), at.allocatable.take(places, axis=1)
            total = _plus(total, weights["balancedresource"], scores.balanced(held + cls.request.take(places), held, have))
        return np.zeros(len(at.rows), np.int64) if total is None else total

    def _one_by_one(self, cls: TaskClass, at: Block) -> Ints:
        """The same for a few rows."""
        score = self._in_plain_numbers(cls)
        return np.array(list(map(score, at.allocatable.tolist(), at.nonzero.tolist(), at.listed.tolist())), np.int64)

    def _alone(self, cls: TaskClass) -> LoneScore | None:
        """The same for single nodes."""
        if not self._is_exact:
            return None
        score = self._in_plain_numbers(cls)
        return lambda node: score(node.allocatable, node.nonzero, node.listed)

    def _in_plain_numbers(self, cls: TaskClass) -> few.Scorer:
        found = self._scorers.get(cls)
        if found is None:
            weights, places = self._weights, self._balanced_places(cls)
            cpu, memory = cls.nonzero.tolist()
            found = self._scorers[cls] = few.scorer(
                weights["leastrequested"], weights["mostrequested"], weights["balancedresource"], (cpu, memory),
                () if places is None else [(place, int(cls.request[place])) for place in places.tolist()],
            )  # fmt: skip
        return found

    def _balanced_places(self, cls: TaskClass) -> Rows | None:
        """The dimensions that are balanced for a class: none when it asks for none of them; GPUs only when it asks for some."""
        gpu = self._gpu
        if gpu is not None and cls.request[gpu]:
            return np.array([CPU, MEMORY, gpu], np.intp)
        return _CPU_AND_MEMORY if cls.request[CPU] or cls.request[MEMORY] else None

    # -- what the node is --------------------------------------------------------------------------------------------------

    def images(self, cls: TaskClass, at: Block) -> Ints:
        """How much of the class's images the nodes have already."""
        containers = [*(cls.spec.get("initContainers") or ()), *(cls.spec.get("containers") or ())]
        there = self._columns.images()
        live: Mask = at.nodes.live
        held = scores.image_locality(
            [container.get("image") or "" for container in containers], [each for each, is_live in zip(there, live) if is_live]
        )
        whole: Ints = np.zeros(len(there), np.int64)
        whole[live] = held
        return self._weights["imagelocality"] * whole[at.rows]

    def _wishes(self, cls: TaskClass, at: Block) -> Ints:
        """The sum of the weights of the preferred terms that each node fulfils."""
        total: Ints = np.zeros(len(self._columns), np.int64)
        for each in _preferred_terms(cls):
            total += int(each.get("weight", 0)) * self._columns.matches(each.get("preference") or {})
        return total[at.rows]

    def _scaled(self, raw: Ints, low: int, high: int) -> Ints:
        return self._weights["nodeaffinity"] * scores.normalise(raw, high)

    def _disliked(self, cls: TaskClass, at: Block) -> Ints:
        """How many soft taints of each node the class does not tolerate."""
        tolerations = cls.spec.get("tolerations")
        return self._columns.by_taints(lambda taints: len(untolerated(tolerations, taints, _SOFT)))[at.rows]

    def _inverted(self, raw: Ints, low: int, high: int) -> Ints:
        return self._weights["tainttoleration"] * scores.normalise(raw, high, reverse=True)

    # -- who is around -----------------------------------------------------------------------------------------------------

    def _company(self, task: TaskInfo, at: Block) -> Ints:
        """Preferred inter-pod affinity, stretched over the candidates."""
        people = self._population
        raw = affinity.preference(people.kind(task), people.placed, self._columns.topologies, people.namespaces)
        if raw is None:
            return np.zeros(len(at.rows), np.int64)
        among = raw[at.rows]
        return self._weights["podaffinity"] * scores.stretch(among, np.ones(len(among), np.bool_))

    def _evenness(self, task: TaskInfo, at: Block) -> Ints:
        """Soft topology spreading over the candidates."""
        return self._spread_by(spread.constraints(self._population.kind(task), hard=False), task, at)

    def _default_evenness(self, task: TaskInfo, at: Block) -> Ints:
        """The same for a task that names no constraints, by those that Kubernetes gives to what Services select."""
        return self._spread_by(self._population.defaults(task), task, at, by_default=True)

    def _spread_by(self, asked: tuple[spread.Constraint, ...], task: TaskInfo, at: Block, *, by_default: bool = False) -> Ints:
        people, nodes = self._population, self._columns
        candidates: Mask = np.zeros(len(nodes), np.bool_)
        candidates[at.rows] = True
        even = spread.evenness(
            people.kind(task), asked, people.placed, nodes.topologies, candidates, nodes.names, nodes.taints,
            by_default=by_default,
        )  # fmt: skip
        return self._weights["podtopologyspread"] * even[at.rows]


def _plus(total: Ints | None, weight: int, score: Ints) -> Ints:
    """total + weight × score, without the calls that change nothing."""
    weighted: Ints = score if weight == 1 else weight * score
    return weighted if total is None else total + weighted


def _preferred_terms(cls: TaskClass) -> list[Mapping[str, Any]]:
    """Preferred node affinity terms that say anything."""
    wanted = (cls.spec.get("affinity") or {}).get("nodeAffinity") or {}
    terms = wanted.get("preferredDuringSchedulingIgnoredDuringExecution") or ()
    return [each for each in terms if (each.get("preference") or {}).keys() & {"matchExpressions", "matchFields"}]


def _has_wishes(cls: TaskClass) -> bool:
    return bool(_preferred_terms(cls))


def _wants_spread(task: TaskInfo) -> bool:
    constraints = task.cls.spec.get("topologySpreadConstraints") or ()
    return any(each.get("whenUnsatisfiable") == "ScheduleAnyway" for each in constraints)
