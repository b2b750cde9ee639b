"""Which colour a queue has: the same on every page, whatever else is shown there."""

from __future__ import annotations

from collections.abc import Sequence

from queues.models import Queue
from queues.queries import leaves

CATEGORIES = 6


def categories(rows: Sequence[Queue]) -> dict[str, int]:
    """The categories (1 to CATEGORIES) of queues by name; a queue that is absent is drawn as one of the others, grey.

    They go to the queues that hold jobs in the order in which these were made, so a new queue changes no other's colour.
    """
    oldest = sorted(leaves(rows), key=lambda row: (row.created_at, row.name))
    return {row.name: at for at, row in enumerate(oldest[:CATEGORIES], start=1)}
