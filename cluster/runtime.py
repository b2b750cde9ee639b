"""The cluster of this process: set once at start (by the run command, or by a test) and asked for by views."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime

from cluster.clock import Clock, SystemClock
from cluster.errors import Unavailable
from cluster.port import Cluster
from cluster.said import said

_current: Cluster | None = None


def use(cluster: Cluster | None) -> None:
    """Make `cluster` this process's own; None takes it away again."""
    global _current
    _current = cluster


def current() -> Cluster:
    """This process's cluster. Raises Unavailable when none was set."""
    if _current is None:
        raise Unavailable(said("no cluster is connected in this process: start it with `manage.py run`"))
    return _current


def current_or_none() -> Cluster | None:
    """This process's cluster, None when none was set."""
    return _current


_commands: tuple[tuple[str, str], ...] | None = None


def run_commands(missing: Sequence[tuple[str, str]] | None) -> None:
    """Pods run their commands on this machine, and have to do without these (codes, details); None: nothing runs here."""
    global _commands
    _commands = None if missing is None else tuple(missing)


def runs_commands() -> bool:
    """Whether pods run their commands on this machine."""
    return _commands is not None


def missing() -> tuple[tuple[str, str], ...]:
    """What pods have to do without on this machine: codes and details, as the kubelet's abilities tell them."""
    return _commands or ()


def now() -> datetime:
    """The present instant by the cluster's own clock, which may run faster than the wall's; wall time without a cluster."""
    clock: Clock = getattr(_current, "clock", None) or SystemClock()
    return datetime.fromtimestamp(clock.now(), UTC)


def speed() -> float:
    """How many seconds of the cluster pass in one second of wall time."""
    clock: Clock = getattr(_current, "clock", None) or SystemClock()
    wall = clock.real(1.0)
    return 1 / wall if wall > 0 else 1.0
