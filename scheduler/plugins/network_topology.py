"""network-topology-aware: keep the pods of a gang close to each other in the tree of HyperNodes, and fill domains one by one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from scheduler.framework.plugin import MAX_NODE_SCORE
from scheduler.framework.registry import plugin
from scheduler.model.jobs import JobInfo
from scheduler.model.nodes import Block
from scheduler.model.resources import Floats, Ints, Mask, Rows, less_equal
from scheduler.model.subjobs import SubJob
from scheduler.model.tasks import TaskInfo
from scheduler.topology.hypernodes import Domain, HyperNodes
from scheduler.topology.places import Places

if TYPE_CHECKING:
    from scheduler.conf import Arguments
    from scheduler.framework.session import Session

_PREFIX = "hypernode.binpack"


@plugin
class NetworkTopologyAware:
    """Which domains a gang may use, which of them is best, and which nodes are near what the gang holds.

    Arguments: `weight` (1), `hypernode.binpack.cpu`, `hypernode.binpack.memory` (1), `hypernode.binpack.resources`
    ("a, b"), `hypernode.binpack.resources.<name>` (1), `hypernode.binpack.normal-pod.enable` (true),
    `hypernode.binpack.normal-pod.fading` (0.8), `hypernode.gradient.evict.max-hypernodes` (8). A negative weight counts
    as 1, a negative fading as 0.8, a limit of 0 or less as 8.
    """

    name: ClassVar[str] = "network-topology-aware"
    _ssn: Session
    _tree: HyperNodes
    _places: Places
    _domains: DomainAmounts

    def __init__(self, arguments: Arguments) -> None:
        self._weight = _weight(arguments, "weight")
        self._resources = {name: _weight(arguments, f"{_PREFIX}.{name}") for name in ("cpu", "memory")}
        for part in arguments.text(f"{_PREFIX}.resources", "").split(","):
            if name := part.strip():
                self._resources[name] = _weight(arguments, f"{_PREFIX}.resources.{name}")
        self._plain = arguments.boolean(f"{_PREFIX}.normal-pod.enable", True)
        fading = arguments.number(f"{_PREFIX}.normal-pod.fading", 0.8)
        self._fading = fading if fading >= 0 else 0.8
        most = arguments.integer("hypernode.gradient.evict.max-hypernodes", 8)
        self._most_for_eviction = most if most > 0 else 8

    def on_session_open(self, ssn: Session) -> None:
        self._ssn, self._places, self._tree = ssn, ssn.places, ssn.places.tree
        places = [(ssn.dims.index[name], weight) for name, weight in self._resources.items() if name in ssn.dims.index]
        self._domains = DomainAmounts(ssn, places)
        ssn.add_hyper_node_gradients(self.name, self._rows_for_job, self._rows_for_sub_job)
        ssn.add_hyper_node_order(self.name, self.score_domains)
        if not self._weight:
            return
        ssn.add_task_score(self.name, self._near, self._differs)
        if self._plain and len(self._tree.domains) > 1:
            ssn.add_task_score(self.name, self._filling, lambda task: not _is_placed_by_topology(task))

    def on_session_close(self, ssn: Session) -> None:
        """Nothing to write: where gangs are is the session's own to keep."""

    # -- which domains -------------------------------------------------------------------------------------------------

    def _rows_for_job(self, job: JobInfo, within: Domain, evicting: bool) -> list[list[Domain]]:
        limit, held = self._places.job_limit(job), self._places.of_job.get(job.uid)
        needs = job.min_resources.values if job.min_resources is not None else np.zeros(job.width, np.int64)
        return [[within]] if limit is None else self._rows(within, limit, held, needs, evicting)

    def _rows_for_sub_job(self, sub: SubJob, within: Domain, evicting: bool) -> list[list[Domain]]:
        limit, held = self._places.sub_limit(sub), self._places.of_sub.get(sub.uid)
        return [[within]] if limit is None else self._rows(within, limit, held, sub.pending_request(), evicting)

    def _rows(self, within: Domain, limit: int, held: Domain | None, needs: Ints, evicting: bool) -> list[list[Domain]]:
        """Domains below the root of the search that are allowed and, where nothing is placed yet, large enough; low tiers first.

        For eviction the wide domains come first, and only so many.
        """
        root = self._root(within, limit, held)
        by_tier: dict[int, list[Domain]] = {}
        for domain in root.subtree() if root is not None else ():
            if domain.tier <= limit and (held is not None or self._could_hold(domain, needs, evicting)):
                by_tier.setdefault(domain.tier, []).append(domain)
        rows = [by_tier[tier] for tier in sorted(by_tier)]
        return _widest(rows, self._most_for_eviction) if evicting else rows

    def _root(self, within: Domain, limit: int, held: Domain | None) -> Domain | None:
        """Where the search begins: the given domain and, of a gang that runs in part, only what is around that part."""
        if held is None:
            return within
        around = [domain for domain in held.ancestors() if domain.tier <= limit]
        if not around:
            return None
        highest, common = around[-1], self._tree.common(within, around[-1])
        return within if common is highest else highest if common is within else None

    def _could_hold(self, domain: Domain, needs: Ints, evicting: bool) -> bool:
        amounts = self._domains
        if evicting:
            return less_equal(needs, amounts.allocatable[domain.number])
        return less_equal(needs, amounts.idle[domain.number]) or less_equal(needs, amounts.future[domain.number])

    # -- how good a domain is ------------------------------------------------------------------------------------------

    def score_domains(self, sub: SubJob, domains: Sequence[Domain]) -> list[float]:
        """How full each would be with all of the part's tasks; among the fullest, where more of its tasks already are."""
        needs = np.zeros(sub.job.width, np.int64)
        for task in sub.tasks.values():
            needs += task.cls.request
        scores = self._domains.filled(needs)[[domain.number for domain in domains]]
        best = scores == scores.max(initial=0.0)
        if best.sum() > 1:
            held = np.array([_count(sub, domain.mask) for domain in domains])
            scores = np.where(best, scores + held / max(len(sub.tasks), 1), scores)
        return [float(score) * MAX_NODE_SCORE * self._weight for score in scores]

    # -- how good a node is for a gang with a topology -----------------------------------------------------------------

    def _differs(self, task: TaskInfo) -> bool:
        """Whether nodes may differ in how near they are: inside one domain of the lowest tier they do not."""
        trying = self._places.trying
        return _is_placed_by_topology(task) and (trying is None or not trying.is_leaf)

    def _near(self, task: TaskInfo, at: Block) -> Floats:
        """1 in the part's own lowest domain, less the higher the tier that joins a node with it; 0 before its first task."""
        sub = task.sub
        assert sub is not None
        place = self._places.of_sub.get(sub.uid)
        if place is None:
            return np.zeros(len(at.rows))
        leaves = self._tree.leaf[at.rows]
        by_leaf = np.zeros(len(self._tree.domains) + 1)
        for number in np.unique(leaves).tolist():
            if number >= 0:
                by_leaf[number] = self._closeness(self._tree.domains[number], place)
        scores = by_leaf[leaves]  # the last entry stands for −1: in no domain of the lowest tier
        best = scores == scores.max(initial=0.0)
        if best.sum() > 1:
            shares = np.zeros(len(by_leaf))
            for number in np.unique(leaves[best]).tolist():
                if number >= 0:
                    shares[number] = _count(sub, self._tree.domains[number].mask) / max(len(sub.tasks), 1)
            scores = np.where(best, scores + shares[leaves], scores)
        return scores * MAX_NODE_SCORE * self._weight

    def _closeness(self, leaf: Domain, place: Domain) -> float:
        if leaf is place:
            return 1.0
        common = self._tree.common(leaf, place)
        low, high = self._tree.tiers[0], self._tree.tiers[-1]
        assert common is not None
        return 1.0 if low == high else (high - common.tier) / (high - low)

    # -- how good a node is for any other pod --------------------------------------------------------------------------

    def _filling(self, task: TaskInfo, at: Block) -> Floats:
        """How full the node's domains would be, the near ones counting most; a node in none counts as full."""
        filled = np.append(self._domains.filled(task.cls.request), 1.0)
        total, weights = np.zeros(len(at.rows)), 0.0
        for tier in range(self._tree.tiers[0], self._tree.tiers[-1] + 1):
            weight = self._fading ** (tier - 1)
            weights += weight
            total += weight * filled[self._domains.at_tier(tier)[at.rows]]
        return total / weights * MAX_NODE_SCORE * self._weight if weights > 0 else total


class DomainAmounts:
    """Sums over the nodes of each domain, rows by `Domain.number`; what is used follows the nodes as they change.

    `idle` and `future` (idle, with what is being released) are as of the session's opening.
    """

    def __init__(self, ssn: Session, weights: Sequence[tuple[int, int]]) -> None:
        self._nodes, self._tree = ssn.nodes, ssn.places.tree
        self._weights = weights
        nodes = self._nodes
        self.allocatable = self._sums(lambda rows: nodes.allocatable[rows])
        self.idle = self._sums(lambda rows: nodes.allocatable[rows] - nodes.used[rows])
        self.future = self._sums(
            lambda rows: nodes.allocatable[rows] - nodes.used[rows] + nodes.releasing[rows] - nodes.pipelined[rows]
        )
        self._known = nodes.listed.copy()
        self._used = self._sums(lambda rows: nodes.listed[rows])
        self._position = nodes.position
        self._by_tier: dict[int, Ints] = {}

    def _sums(self, amounts: Callable[[Rows], Ints]) -> Ints:
        return np.array([amounts(domain.rows).sum(axis=0) for domain in self._tree.domains])

    def at_tier(self, tier: int) -> Ints:
        """For each row the number of its domain of a tier, −1 where it has none."""
        found = self._by_tier.get(tier)
        if found is None:
            found = self._by_tier[tier] = self._tree.at_tier(tier)
        return found

    def used(self) -> Ints:
        """What the pods on each domain's nodes ask for, pipelined ones included, without those evicted in this session."""
        changed = self._nodes.changed_since(self._position)
        rows = range(self._nodes.rows) if changed is None else set(changed)
        for row in rows:
            more = self._nodes.listed[row] - self._known[row]
            if more.any():
                self._known[row] = self._nodes.listed[row]
                self._used[[domain.number for domain in self._tree.domains if domain.mask[row]]] += more
        self._position = self._nodes.position
        return self._used

    def filled(self, request: Ints) -> Floats:
        """By domain: the weighted mean share in use with the request; 0 where a dimension would overflow.

        A dimension of which a domain has nothing counts for nothing.
        """
        terms = [(place, weight) for place, weight in self._weights if request[place] > 0]
        divisor = sum(weight for _, weight in terms)
        if divisor <= 0:
            return np.zeros(len(self._tree.domains))
        places, weights = [place for place, _ in terms], np.array([weight for _, weight in terms], np.float64)
        filled, have = self.used()[:, places] + request[places], self.allocatable[:, places]
        share: Floats = (filled * weights / np.maximum(have, 1)).sum(axis=1) / divisor
        return np.where((filled <= have).all(axis=1), share, 0.0)


def _is_placed_by_topology(task: TaskInfo) -> bool:
    return task.sub is not None and task.sub.topology is not None


def _count(sub: SubJob, mask: Mask) -> int:
    """How many tasks of a part are on some nodes."""
    return sum(bool(mask[task.node]) for task in sub.tasks.values() if task.node >= 0)


def _widest(rows: list[list[Domain]], most: int) -> list[list[Domain]]:
    """Rows from the highest tier down, cut to so many domains; of a row that is cut the last ones stay."""
    found: list[list[Domain]] = []
    for row in reversed(rows):
        kept = row[max(len(row) - most, 0) :]
        if not kept or most <= 0:
            break
        found.append(kept)
        most -= len(kept)
    return found


def _weight(arguments: Arguments, key: str) -> int:
    weight = arguments.integer(key, 1)
    return weight if weight >= 0 else 1
