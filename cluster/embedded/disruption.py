"""PodDisruptionBudgets: whether a running pod may be evicted now."""

from __future__ import annotations

import math
import re

from cluster.embedded.memory import Memory
from cluster.errors import TooManyRequests
from cluster.kinds import DISRUPTION_BUDGET, POD
from cluster.objects import is_deleting, labels, matches_selector, namespace
from cluster.port import Obj

_PERCENT = re.compile(r"([0-9]{1,3})%")


def check_budgets(pod: Obj, memory: Memory) -> None:
    """Raises TooManyRequests when evicting a running pod would break a budget of its namespace."""
    for budget in memory.all(DISRUPTION_BUDGET).values():
        selector = (budget.get("spec") or {}).get("selector")
        if namespace(budget) == namespace(pod) and matches_selector(selector, labels(pod)):
            members = [
                other
                for other in memory.all(POD).values()
                if namespace(other) == namespace(pod) and matches_selector(selector, labels(other))
            ]
            _check(budget, members)


def _check(budget: Obj, members: list[Obj]) -> None:
    spec = budget["spec"]
    healthy = sum(1 for pod in members if (pod.get("status") or {}).get("phase") == "Running" and not is_deleting(pod))
    if spec.get("maxUnavailable") is not None:
        needed = len(members) - _amount(spec["maxUnavailable"], len(members))
    else:
        needed = _amount(spec.get("minAvailable", 1), len(members))
    if healthy - 1 < needed:
        raise TooManyRequests(
            f"disruption budget {budget['metadata']['name']!r} needs {needed} healthy pods and there are {healthy}"
        )


def _amount(value: int | str, total: int) -> int:
    """A count, or a percentage of `total` rounded up, as the disruption controller counts."""
    if isinstance(value, str) and (match := _PERCENT.fullmatch(value)):
        return math.ceil(int(match[1]) * total / 100)
    return int(value)
