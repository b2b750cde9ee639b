"""What a simulated container prints: a few lines that follow from its times alone."""

from __future__ import annotations

import time
from collections.abc import Iterator

from cluster.clock import Clock
from cluster.embedded.podstatus import main_state
from cluster.embedded.store import EmbeddedCluster, LogSource
from cluster.errors import NotFound
from cluster.kinds import POD
from cluster.objects import name, namespace, parse_time, stamp, uid
from cluster.port import Obj

_EVERY = 5.0
_MOST_LINES = 10_000
_POLL = 0.5


def source(clock: Clock, cluster: EmbeddedCluster) -> LogSource:
    """The log source of the simulated kubelet."""

    def lines(pod: Obj, container: str, tail: int | None, follow: bool) -> Iterator[str]:
        said = _lines(pod, container, clock.now())
        yield from said[-tail:] if tail else ([] if tail == 0 else said)
        count = len(said)
        while follow and main_state(pod)[0] != "terminated":
            time.sleep(_POLL)
            try:
                pod = cluster.get(POD, name(pod), namespace(pod)) if uid(pod) else pod
            except NotFound:
                return
            said = _lines(pod, container, clock.now())
            yield from said[count:]
            count = len(said)

    return lines


def _lines(pod: Obj, container: str, now: float) -> list[str]:
    state, details = main_state(pod)
    if not details.get("startedAt"):
        return []
    start = parse_time(details["startedAt"])
    end = parse_time(details["finishedAt"]) if state == "terminated" else now
    steps = min(int(max(0.0, end - start) / _EVERY), _MOST_LINES)
    said = [f"{stamp(start)} {container}: started (simulated: no program runs)"]
    said += [f"{stamp(start + k * _EVERY)} {container}: step {k}" for k in range(1, steps + 1)]
    if state == "terminated":
        said.append(f"{stamp(end)} {container}: exit code {details.get('exitCode', 0)}")
    return said
