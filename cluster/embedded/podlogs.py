"""What a simulated container prints, as the cluster's port gives it: a few lines that follow from its times alone."""

from __future__ import annotations

import time
from collections.abc import Iterator

from cluster.clock import Clock
from cluster.embedded.podstatus import main_state
from cluster.embedded.store import EmbeddedCluster, LogSource
from cluster.errors import NotFound
from cluster.kinds import POD
from cluster.logs.streams import SimulatedStream
from cluster.objects import name, namespace, parse_time, uid
from cluster.port import Obj

_POLL = 0.5


def source(clock: Clock, cluster: EmbeddedCluster) -> LogSource:
    """The log source of the simulated kubelet."""

    def lines(pod: Obj, container: str, tail: int | None, follow: bool) -> Iterator[str]:
        said = _lines(pod, container, clock)
        yield from said[-tail:] if tail else ([] if tail == 0 else said)
        count = len(said)
        while follow and main_state(pod)[0] != "terminated":
            time.sleep(_POLL)
            try:
                pod = cluster.get(POD, name(pod), namespace(pod)) if uid(pod) else pod
            except NotFound:
                return
            said = _lines(pod, container, clock)
            yield from said[count:]
            count = len(said)

    return lines


def times(pod: Obj) -> tuple[float | None, float | None, int | None]:
    """Start, end and exit code of a pod's first container, each None while it is not known."""
    state, details = main_state(pod)
    if not details.get("startedAt"):
        return None, None, None
    start = parse_time(details["startedAt"])
    if state != "terminated":
        return start, None, None
    return start, parse_time(details["finishedAt"]), int(details.get("exitCode") or 0)


def _lines(pod: Obj, container: str, clock: Clock) -> list[str]:
    records, _ = SimulatedStream(container, lambda: times(pod), clock.now).read((0, 0), 1 << 30)
    return [f"{record.at[:19]}Z {record.text.decode()}" for record in records]
