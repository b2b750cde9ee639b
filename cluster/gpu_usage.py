"""How busy GPUs are, as whoever measures them writes it on their nodes. What cannot be read was not measured."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

import orjson

from cluster import objects

FRESH = timedelta(minutes=5)
"""How long a measurement counts."""
_MOST = 4096


@dataclass(frozen=True, slots=True)
class GpuUsage:
    """What was measured at `at` (seconds since the epoch): percent and MiB by index, None where a GPU was not measured."""

    at: float = 0.0
    load: tuple[int | None, ...] = ()
    memory: tuple[int | None, ...] = ()

    def fresh(self, now: datetime) -> bool:
        """Whether it still says anything about now."""
        return bool(self.at) and now.timestamp() - self.at <= FRESH.total_seconds()

    def load_of(self, gpu: int) -> int | None:
        """Percent of one GPU."""
        return self.load[gpu] if gpu < len(self.load) else None

    def memory_of(self, gpu: int) -> int | None:
        """MiB in use on one GPU."""
        return self.memory[gpu] if gpu < len(self.memory) else None


NOTHING = GpuUsage()


def read(text: str | None) -> GpuUsage:
    """The annotation's text. Anything that is no measurement is left out, one GPU at a time."""
    try:
        told = orjson.loads(text or "null")
        at = objects.parse_time(told["time"])
    except (orjson.JSONDecodeError, KeyError, TypeError, ValueError, AttributeError):
        return NOTHING
    return GpuUsage(at, _numbers(told.get("load"), 100), _numbers(told.get("memory"), 2**31 - 1))


def text_of(usage: GpuUsage) -> str:
    """The annotation's text."""
    told = {"time": objects.stamp(usage.at), "load": list(usage.load), "memory": list(usage.memory)}
    return orjson.dumps(told).decode()


def from_nvidia_smi(text: str, at: float) -> GpuUsage:
    """A table of `index, percent, MiB`; what the tool does not know (`[N/A]`, under MIG) was not measured."""
    found: dict[int, tuple[int | None, int | None]] = {}
    for line in text.splitlines():
        fields = [field.strip() for field in line.split(",")]
        if len(fields) == 3 and fields[0].isdecimal() and int(fields[0]) < _MOST:
            load, memory = (int(field) if field.isdecimal() else None for field in fields[1:])
            found[int(fields[0])] = (load, memory)
    rows = [found.get(index, (None, None)) for index in range(max(found, default=-1) + 1)]
    return GpuUsage(at, tuple(load for load, _ in rows), tuple(memory for _, memory in rows))


def _numbers(told: object, most: int) -> tuple[int | None, ...]:
    if not isinstance(told, list):
        return ()
    return tuple(
        round(each) if isinstance(each, int | float) and not isinstance(each, bool) and 0 <= each <= most else None
        for each in told[:_MOST]
    )


def of_row(row: object) -> GpuUsage:
    """What `as_row` made; nothing of an empty one."""
    if not isinstance(row, dict) or not row:
        return NOTHING
    return GpuUsage(row["at"], tuple(row["load"]), tuple(row["memory"]))


def as_row(usage: GpuUsage) -> dict[str, object]:
    """As the database keeps it."""
    return {"at": usage.at, "load": list(usage.load), "memory": list(usage.memory)} if usage.at else {}
