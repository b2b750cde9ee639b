"""The whole fleet in few bytes, as the heatmap reads it: columns instead of rows, runs instead of repetitions.

`nodes`, `cells` and `holders` are columns. A column named in `runs` is a list of `value, times, value, times, …`; names of
spines, racks, models, jobs and tasks are said once, in tables, and referred to by their place. Cells stand in the order
of their nodes; `state` is one letter each with its repetitions (`a8f3`), `holder` a place in `holders` or -1.
What few cells have stands apart, by the cell's place: `parts` of cards that are shared, `load`, `used`, `over`.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator
from hashlib import blake2b
from typing import Any

import orjson

from cluster.cards import WHOLE, Cell
from cluster.queries import Fleet, Strip
from cluster.workloads import Holder

LETTERS = {
    "allocated": "a", "shared": "s", "idle": "i", "free": "f", "reserved": "r", "releasing": "t", "unhealthy": "u",
    "cordoned": "c", "not_ready": "n", "unknown": "x",
}  # fmt: skip


class Table:
    """Values that are said once; others are told by their place."""

    def __init__(self) -> None:
        self.values: dict[Hashable, int] = {}

    def place(self, value: Hashable) -> int:
        """Where a value stands, at the end when it is new."""
        return self.values.setdefault(value, len(self.values))

    def __iter__(self) -> Iterator[Any]:
        return iter(self.values)


def compact(fleet: Fleet) -> dict[str, Any]:
    """The fleet as the module says."""
    spines, racks, models, holders, jobs, tasks = (Table() for _ in range(6))
    strips = fleet.strips
    nodes = {
        "name": [strip.node.name for strip in strips],
        "spine": runs(spines.place(strip.node.spine) for strip in strips),
        "rack": runs(racks.place(strip.node.rack) for strip in strips),
        "model": runs(models.place(strip.node.gpu_model) for strip in strips),
        "memory": runs(strip.node.gpu_memory_mib for strip in strips),
        "size": runs(len(strip.cells) for strip in strips),
        "flags": runs(_flags(strip) for strip in strips),
        "measured": runs(int((strip.node.gpu_usage or {}).get("at", 0)) for strip in strips),
    }
    cells = [cell for strip in strips for cell in strip.cells]
    held = runs(holders.place(_Same(cell.holder)) if cell.holder else -1 for cell in cells)
    parts = {str(place): _parts(cell, holders) for place, cell in enumerate(cells) if _is_parted(cell)}
    return {
        "nodes": nodes,
        "cells": {
            "state": letters(LETTERS[cell.state] for cell in cells),
            "holder": held,
            "parts": parts,
            "load": _measured([cell.load for cell in cells]),
            "used": _measured([cell.used for cell in cells]),
            "over": [place for place, cell in enumerate(cells) if cell.over],
        },
        "holders": _holders([same.holder for same in holders], jobs, tasks),
        "spines": list(spines), "racks": list(racks), "models": list(models), "jobs": list(jobs), "tasks": list(tasks),
    }  # fmt: skip


def encoded(fleet: Fleet) -> tuple[bytes, str]:
    """The fleet as JSON, and a name that is equal for equal ones."""
    text = orjson.dumps(compact(fleet))
    return text, blake2b(text, digest_size=12).hexdigest()


class _Same:
    """A holder that is equal to itself only: comparing all its fields for every GPU takes longer than the rest together."""

    __slots__ = ("holder",)

    def __init__(self, holder: Holder | None) -> None:
        assert holder is not None
        self.holder = holder

    def __hash__(self) -> int:
        return id(self.holder)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Same) and other.holder is self.holder


def _flags(strip: Strip) -> int:
    """1: ready, 2: cordoned, 4: heard, 8: draining."""
    return strip.node.ready | strip.node.cordoned << 1 | strip.node.heard << 2 | strip.node.draining << 3


def _is_parted(cell: Cell) -> bool:
    return cell.is_in_use and (len(cell.parts) > 1 or any(part.size < WHOLE for part in cell.parts))


def _parts(cell: Cell, holders: Table) -> list[list[Any]]:
    return [[holders.place(_Same(p.holder)), p.size, p.memory, p.cores, p.instance] for p in cell.parts]


def _holders(found: list[Holder], jobs: Table, tasks: Table) -> dict[str, Any]:
    """Pods by columns; `since` in seconds since the epoch, 0 where the reader may not know."""
    return {
        "job": runs(jobs.place((each.job_uid, each.job, each.queue, each.owner)) for each in found),
        "task": runs(tasks.place(each.task) for each in found),
        "index": [each.index for each in found],
        "since": runs(int(each.since.timestamp()) if each.since else 0 for each in found),
    }


def _measured(values: list[int | None]) -> list[int] | None:
    """A column of measurements, -1 where there is none; None when nothing was measured at all."""
    return runs(-1 if value is None else value for value in values) if any(value is not None for value in values) else None


def runs(values: Iterable[int]) -> list[int]:
    """`value, times, value, times, …`"""
    found: list[int] = []
    last: int | None = None
    for value in values:
        if value == last:
            found[-1] += 1
        else:
            found += (value, 1)
            last = value
    return found


def letters(values: Iterable[str]) -> str:
    """`a8f3t`: letters with their repetitions."""
    found: list[tuple[str, int]] = []
    for value in values:
        if found and found[-1][0] == value:
            found[-1] = (value, found[-1][1] + 1)
        else:
            found.append((value, 1))
    return "".join(value if times == 1 else f"{value}{times}" for value, times in found)
