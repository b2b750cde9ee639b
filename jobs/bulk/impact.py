"""Whom it costs when many waiting jobs get another priority, as the rooms above find out: this room runs no scheduler (`use`)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from jobs.bulk.asking import PRIORITY, Whose, judge
from jobs.bulk.models import BulkOperation, BulkState, Outcome

MOST = 500
"""Jobs that are tried together; of more, the first in the list's order."""


@dataclass(slots=True)
class Impact:
    """What would happen. Jobs are `{job, uid, queue}` as their reader may see them; totals count also those not named.

    `question` asks how starts move, where pages show that, and `foretell` tells it to programs. `error` says why it could not be
    tried.
    """

    tried: int = 0
    left_out: int = 0
    starts: list[dict[str, Any]] = field(default_factory=list)
    delayed: list[dict[str, Any]] = field(default_factory=list)
    evicted: list[dict[str, Any]] = field(default_factory=list)
    overtaken: list[dict[str, Any]] = field(default_factory=list)
    overtaken_total: int = 0
    question: Any = None
    foretell: Callable[[], dict[str, Any]] = dict
    error: str = ""

    @property
    def victims(self) -> list[dict[str, Any]]:
        """The jobs whose pods have to give way, each once."""
        return list({each["uid"] or id(each): each for each in self.evicted}.values())

    def as_dict(self) -> dict[str, Any]:
        """For programs."""
        names = ("tried", "left_out", "starts", "delayed", "evicted", "overtaken", "overtaken_total", "error")
        return {name: getattr(self, name) for name in names} | {"start": self.foretell()}


Ask = Callable[[Any, Sequence[tuple[str, str]], str], Impact]
_ask: Ask | None = None


def use(ask: Ask | None) -> None:
    """Say who finds out: for a user, jobs by namespace and name, and a priority class."""
    global _ask
    _ask = ask


def of(user: Any, operation: BulkOperation) -> Impact | None:
    """What a draft that sets priorities would cost others; None for other actions, and where nobody can say."""
    if operation.action != PRIORITY or operation.state != BulkState.DRAFT or _ask is None:
        return None
    columns = ("job__namespace", "job__name", "job__owner", "job__queue", "job__phase", "job__deleted_at", "job__priority_class")
    found = []
    for namespace, name, owner, queue, phase, gone, priority in operation.items.values_list(*columns):
        whose, is_so = Whose(owner, queue, namespace), priority == operation.argument
        outcome, _code = judge(user, operation.action, whose, phase, is_gone=gone is not None, is_so=is_so)
        if outcome == Outcome.WAITING:
            found.append((namespace, name))
    if not found:
        return None
    told = _ask(user, found[:MOST], operation.argument)
    told.left_out = len(found) - len(found[:MOST])
    return told
