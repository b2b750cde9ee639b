"""pdb: evictions keep within the PodDisruptionBudgets."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from cluster import objects
from scheduler.framework.registry import plugin
from scheduler.model.tasks import TaskInfo, TaskStatus

if TYPE_CHECKING:
    from scheduler.conf import Arguments
    from scheduler.framework.session import Session

_PERCENT = re.compile(r"([0-9]{1,3})%", re.ASCII)


@plugin
class Pdb:
    """Each victim that a budget selects uses one of the disruptions that it allows; beyond them nobody goes.

    A pod without labels is never a victim. How many disruptions a budget allows is what its status says or, where no
    controller says anything, what follows from its spec and its pods; those evicted in this session are taken off.
    """

    name: ClassVar[str] = "pdb"
    _ssn: Session
    _known: dict[str, int]

    def __init__(self, arguments: Arguments) -> None:
        """pdb has no arguments."""

    def on_session_open(self, ssn: Session) -> None:
        self._ssn, self._known = ssn, {}
        self._budgets = [budget for budget in ssn.budgets if _selects_any(budget)]
        ssn.add_preemptable(self.name, lambda preemptor, candidates: self.within(candidates))
        ssn.add_reclaimable(self.name, lambda preemptor, candidates: self.within(candidates))
        ssn.add_victim_limit(self.name, self.within)

    def on_session_close(self, ssn: Session) -> None:
        """Nothing to write."""

    def within(self, candidates: Sequence[TaskInfo]) -> list[TaskInfo]:
        """The candidates, in their order, that the budgets have a disruption left for."""
        left: dict[str, int] = {}
        found = []
        for task in candidates:
            labels = task.pod["metadata"].get("labels")
            if not labels:
                continue
            keys = []
            for budget in self._budgets:
                if _covers(budget, task.pod):
                    key = objects.key(budget)
                    left[key] = left.get(key, self._allowed(key, budget)) - 1
                    keys.append(key)
            if all(left[key] >= 0 for key in keys):
                found.append(task)
        return found

    def _allowed(self, key: str, budget: Any) -> int:
        """Disruptions left: those allowed at the opening, less what was evicted since."""
        members = [task for task in self._pods() if _matches(budget, task.pod)]
        if key not in self._known:
            said = (budget.get("status") or {}).get("disruptionsAllowed")
            self._known[key] = int(said) if isinstance(said, int) else _computed(budget["spec"], members)
        evicted = [task for task in members if task.status is TaskStatus.RELEASING and not objects.is_deleting(task.pod)]
        return self._known[key] - len(evicted)

    def _pods(self) -> Iterator[TaskInfo]:
        for job in self._ssn.jobs.values():
            yield from job.tasks.values()
        for tasks in self._ssn.nodes.tasks:
            yield from (task for task in tasks.values() if task.job is None)


def _computed(spec: Mapping[str, Any], members: Sequence[TaskInfo]) -> int:
    healthy: int = sum(
        (task.pod.get("status") or {}).get("phase") == "Running" and not objects.is_deleting(task.pod) for task in members
    )
    if spec.get("maxUnavailable") is not None:
        needed = len(members) - _amount(spec["maxUnavailable"], len(members))
    else:
        needed = _amount(spec.get("minAvailable", 1), len(members))
    return max(healthy - needed, 0)


def _amount(value: Any, total: int) -> int:
    """A count, or a percentage of `total` rounded up, as Kubernetes counts; nothing that makes sense is 0."""
    if isinstance(value, str) and (match := _PERCENT.fullmatch(value)):
        return math.ceil(int(match[1]) * total / 100)
    return int(value) if isinstance(value, int) else 0


def _selects_any(budget: Mapping[str, Any]) -> bool:
    selector = (budget.get("spec") or {}).get("selector") or {}
    return bool(selector.get("matchLabels") or selector.get("matchExpressions"))


def _matches(budget: Any, pod: Mapping[str, Any]) -> bool:
    return objects.namespace(budget) == (pod["metadata"].get("namespace") or "") and objects.matches_selector(
        budget["spec"]["selector"], pod["metadata"].get("labels") or {}
    )


def _covers(budget: Any, pod: Mapping[str, Any]) -> bool:
    disrupted = (budget.get("status") or {}).get("disruptedPods") or {}
    return pod["metadata"]["name"] not in disrupted and _matches(budget, pod)
