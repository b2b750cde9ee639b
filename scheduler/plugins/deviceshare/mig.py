"""MIG: cards divided in hardware into instances, by one geometry at a time."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import yaml

from scheduler.model.devices import DEVICE_CONFIG

_HELD = re.compile(r".*\[(.+)-([0-9]{1,4})\]", re.ASCII)


@dataclass(frozen=True, slots=True)
class Geometry:
    """One way to divide cards of some models: kinds of instances as (MiB, how many), numbered through in this order."""

    models: tuple[str, ...]
    group: str
    kinds: tuple[tuple[int, int], ...]


@dataclass(frozen=True, slots=True)
class Instance:
    """One instance of a divided card: `group-position`, and its MiB."""

    name: str
    memory: int


@dataclass(slots=True)
class Instances:
    """The instances of one card: its possible geometries, and those held of the one in use."""

    geometries: Sequence[Geometry]
    group: str = ""
    held: set[int] = field(default_factory=set)

    @classmethod
    def of(cls, kind: str, geometries: Sequence[Geometry]) -> Instances | None:
        """Those of a card by its type; None when no geometry is known for it: it is shared by software then."""
        fitting = [geometry for geometry in geometries if any(model in kind for model in geometry.models)]
        return cls(fitting) if fitting else None

    def hold(self, card: str) -> None:
        """Count an instance as held, by the UUID with which it was given."""
        found = _HELD.fullmatch(card)
        if found is not None:
            self.group = found[1]
            self.held.add(int(found[2]))

    def find(self, memory: int) -> Instance | None:
        """The smallest sufficient free instance of the geometry in use, else of the first geometry that has one."""
        for geometry in self.geometries:
            if self.group and geometry.group != self.group:
                continue
            fitting = sorted((size, place) for place, size in self._free(geometry) if size >= memory)
            if fitting:
                size, place = fitting[0]
                return Instance(f"{geometry.group}-{place}", size)
        return None

    def _free(self, geometry: Geometry) -> list[tuple[int, int]]:
        sizes = [size for size, count in geometry.kinds for _ in range(count)]
        return [(place, size) for place, size in enumerate(sizes) if place not in self.held]


def read(config: Mapping[str, Any] | None) -> list[Geometry]:
    """The geometries of Volcano's device ConfigMap. Raises ValueError for a text that is no such list."""
    text = ((config or {}).get("data") or {}).get(DEVICE_CONFIG)
    if not text:
        return []
    try:
        entries = (yaml.safe_load(text).get("nvidia") or {}).get("knownMigGeometries") or ()
        return [
            Geometry(
                tuple(map(str, entry["models"])),
                str(geometry["group"]),
                tuple((int(kind["memory"]), int(kind["count"])) for kind in geometry["geometries"]),
            )
            for entry in entries
            for geometry in entry["allowedGeometries"]
        ]
    except (yaml.YAMLError, AttributeError, KeyError, TypeError, ValueError) as error:
        raise ValueError(f"{DEVICE_CONFIG} is no device configuration: {error}") from None
