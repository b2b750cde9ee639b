"""What a task was given besides room on its node: volumes for its claims, devices for its resource claims.

It is chosen when the task gets its node, lives on the task, and is written to the cluster before the pod is bound.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class VolumeChoice:
    """An unbound claim (`namespace/name`) is met by an existing volume, or (none named) by one to be made for a node."""

    claim: str
    volume: str = ""
    node: str = ""


@dataclass(frozen=True, slots=True)
class DeviceChoice:
    """A resource claim (`namespace/name`) is used; `allocation` is what it is given, None when it has its devices already."""

    claim: str
    allocation: Mapping[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class Supply:
    """All of it for one task."""

    volumes: tuple[VolumeChoice, ...] = ()
    devices: tuple[DeviceChoice, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.volumes or self.devices)


NOTHING = Supply()
