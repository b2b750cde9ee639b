"""PodDisruptionBudgets: whether a running pod may be evicted now."""

from __future__ import annotations

import math
import re
from collections.abc import Collection

from cluster.embedded.memory import Memory
from cluster.errors import TooManyRequests
from cluster.kinds import DISRUPTION_BUDGET, POD
from cluster.objects import is_deleting, labels, matches_selector, namespace
from cluster.port import Obj
from cluster.said import said

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


def standing(budget: Obj, members: Collection[Obj]) -> tuple[int, int]:
    """How many of a budget's pods are healthy, and how many it needs, where no controller says it."""
    spec = budget["spec"]
    healthy = sum(1 for pod in members if (pod.get("status") or {}).get("phase") == "Running" and not is_deleting(pod))
    if spec.get("maxUnavailable") is not None:
        return healthy, len(members) - _amount(spec["maxUnavailable"], len(members))
    return healthy, _amount(spec.get("minAvailable", 1), len(members))


def _check(budget: Obj, members: list[Obj]) -> None:
    healthy, needed = standing(budget, members)
    if healthy - 1 < needed:
        raise TooManyRequests(
            said(
                "disruption budget %(name)r needs %(needed)s healthy pods and there are %(healthy)s",
                name=budget["metadata"]["name"],
                needed=needed,
                healthy=healthy,
            )
        )


def _amount(value: int | str, total: int) -> int:
    """A count, or a percentage of `total` rounded up, as the disruption controller counts."""
    if isinstance(value, str) and (match := _PERCENT.fullmatch(value)):
        return math.ceil(int(match[1]) * total / 100)
    return int(value)
