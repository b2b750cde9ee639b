"""The tree as a file: a row a queue, every resource that any queue speaks of."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from typing import Any

from cluster.exports import Rows
from queues.history import divisor
from queues.queries import Bar, Branch

AMOUNTS = ("guarantee", "deserved", "allocated", "admitted", "pending", "request", "capability")


def as_rows(branches: Sequence[Branch], *, asks: bool) -> Rows:
    """Amounts in GPUs, CPUs, GiB; empty where there is no limit, or where another scheduler does not say."""
    resources = [bar.resource for bar in branches[0].bars] if branches else []
    fields = ["queue", "parent", "state", "weight", "priority", "reclaimable", "running", "admitted_jobs", "pending_jobs"]
    fields += [f"{resource} {part}" for resource in resources for part in AMOUNTS]

    async def rows() -> AsyncIterator[list[Any]]:
        for branch in branches:
            queue = branch.queue
            counts = [branch.running, branch.admitted, branch.pending]
            shown = [_cell(bar, part, asks) for bar in branch.bars for part in AMOUNTS]
            yield [queue.name, branch.above, queue.state, queue.weight, queue.priority, queue.reclaimable, *counts, *shown]

    return fields, rows()


def _cell(bar: Bar, part: str, asks: bool) -> float | None:
    if part in ("admitted", "pending", "request") and not asks:
        return None
    units = getattr(bar, part)
    return None if units is None else round(units / divisor(bar.resource), 3)
