"""How far the database is behind the cluster."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from prometheus_client import CollectorRegistry
from prometheus_client.core import Metric

from portal.metrics.base import Collected, gauges, registry

if TYPE_CHECKING:
    from portal.mirror import Mirror


def watch_mirror(current: Callable[[], Mirror | None], into: CollectorRegistry = registry) -> None:
    """Show from now on how the mirror of this process, if it works, keeps up."""

    def families() -> Iterator[Metric]:
        mirror = current()
        if mirror is None or not mirror.synced.is_set():
            return  # before the first reading is done nobody knows
        lag = {(): mirror.behind}
        yield gauges("basalt_mirror_lag_seconds", "How long the oldest change waits to be in the database", (), lag)

    into.register(Collected(families))
