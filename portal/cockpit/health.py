"""How the scheduler is: who leads, when the last cycle was, how long news wait. What nobody knows stays unknown."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from django.conf import settings
from django.core.exceptions import ImproperlyConfigured

from cluster import objects, runtime
from cluster.errors import ApiError
from cluster.kinds import LEASE
from portal import parts, services
from portal.models import Cycle

LEASE_NAME = "basalt-scheduler"
SILENT = 30.0
"""Wall seconds without a cycle, though an idle scheduler runs one every ten, after which it counts as silent."""


class State(StrEnum):
    """How it is, in one word. `elsewhere`: this cluster has another scheduler."""

    RUNNING = "running"
    SILENT = "silent"
    UNKNOWN = "unknown"
    ELSEWHERE = "elsewhere"


@dataclass(frozen=True, slots=True)
class Health:
    """`leader` is who schedules ('' for nobody, None for unknown), `here` whether this process does.

    `age` are seconds of the cluster's time since the last cycle that is kept, `waited` milliseconds of news before it, `renewed`
    seconds since the leader renewed its lease.
    """

    state: State
    leader: str | None = None
    here: bool = False
    age: float | None = None
    waited: float | None = None
    renewed: float | None = None
    last: datetime | None = None

    @property
    def mark(self) -> str:
        """The mark of the state."""
        return {State.RUNNING: "running", State.SILENT: "failed"}.get(self.state, "unknown")


def health(newest: Cycle | None, present: datetime) -> Health:
    """As far as this process can know."""
    if not settings.BASALT_SCHEDULER:
        return Health(State.ELSEWHERE)
    running = parts.current()
    leader: str | None = ""
    renewed: float | None = None
    if running is not None:
        works = running.is_running("scheduler")
    else:
        leader, renewed = _lease()
        works = leader != ""
    if newest is None:
        return Health(State.UNKNOWN, leader, running is not None, renewed=renewed)
    age = max((present - newest.at).total_seconds(), 0.0)
    silent = _wall(age) > SILENT or not works
    return Health(State.SILENT if silent else State.RUNNING, leader, running is not None, age, newest.waited, renewed, newest.at)


def _wall(seconds: float) -> float:
    """Wall seconds for seconds of the cluster's time."""
    clock = getattr(runtime.current(), "clock", None) if parts.current() is not None else None
    return float(clock.real(seconds)) if clock is not None else seconds


def _lease() -> tuple[str | None, float | None]:
    """Who holds the scheduler's lease, and how long ago it was renewed; None where that cannot be read."""
    try:
        spec = runtime.current().get(LEASE, LEASE_NAME, services.namespace()).get("spec") or {}
    except (ApiError, ImproperlyConfigured, RuntimeError):
        return None, None
    renewed = spec.get("renewTime")
    age = max(runtime.now().timestamp() - objects.parse_time(renewed), 0.0) if renewed else None
    return str(spec.get("holderIdentity") or ""), age
