"""The fleet as text: what a reader asks of the table of GPUs, and the same as rows of a file or of the API."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from asgiref.sync import sync_to_async
from django.db.models import QuerySet

from cluster import queries
from cluster.cards import STATES, WHOLE, Cell, Part
from cluster.exports import Rows
from cluster.models import Node
from cluster.queries import Strip

CHUNK = 200
"""Nodes whose GPUs are held at once while a file is written."""
FIELDS = (
    "node", "spine", "rack", "model", "gpu", "state", "share_percent", "memory_mib", "part_memory_mib", "part_cores_percent",
    "mig_instance", "load_percent", "memory_used_mib", "job", "job_uid", "queue", "owner", "task", "task_index", "since",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class GpuFilter:
    """Which GPUs a reader asks for; empty means all. `text` is part of a node's, job's, queue's or user's name."""

    text: str = ""
    state: str = ""
    model: str = ""
    rack: str = ""
    spine: str = ""
    job: str = ""

    @classmethod
    def of(cls, query: Mapping[str, str]) -> GpuFilter:
        """From an address's query; a state that is none is none asked for."""
        state = query.get("state", "")
        asked = {name: query.get(name, "").strip()[:253].replace("\0", "") for name in ("model", "rack", "spine", "job")}
        return cls(query.get("q", "").strip()[:253].lower(), state if state in STATES else "", **asked)

    @property
    def is_empty(self) -> bool:
        return self == GpuFilter()

    def nodes(self, user: Any) -> QuerySet[Node]:
        """The nodes that can have such GPUs, as far as the database tells."""
        rows = queries.nodes(user).filter(gpu_count__gt=0).only(*queries.FLEET_COLUMNS)
        if self.model:
            rows = rows.filter(gpu_model=self.model)
        if self.rack:
            rows = rows.filter(rack=self.rack)
        if self.spine:
            rows = rows.filter(spine=self.spine)
        return rows.order_by("spine", "rack", "name")

    def narrow(self, strips: Iterable[Strip]) -> Iterator[Strip]:
        """The nodes that have such GPUs, with those alone."""
        for strip in strips:
            cells = tuple(cell for cell in strip.cells if self.takes(strip.node, cell))
            if cells:
                yield Strip(strip.node, cells)

    def takes(self, node: Node, cell: Cell) -> bool:
        """Whether a GPU is asked for."""
        if (self.state and cell.state != self.state) or not self._is_there(node):
            return False
        if self.job and all(part.holder.job_uid != self.job for part in cell.parts):
            return False
        return not self.text or self.text in node.name.lower() or any(self._names(part) for part in cell.parts)

    def _is_there(self, node: Node) -> bool:
        asked = ((self.model, node.gpu_model), (self.rack, node.rack), (self.spine, node.spine))
        return all(not wanted or wanted == has for wanted, has in asked)

    def _names(self, part: Part) -> bool:
        who = part.holder
        return any(self.text in name.lower() for name in (who.job, who.queue, who.owner))


def file(user: Any, asked: GpuFilter) -> Rows:
    """The GPUs that are asked for, a row for each that holds one of them or a part of it, and one for each that nobody holds."""
    return FIELDS, _values(user, asked)


async def _values(user: Any, asked: GpuFilter) -> AsyncIterator[Sequence[Any]]:
    uids = await sync_to_async(lambda: list(asked.nodes(user).values_list("uid", flat=True)))()
    for begin in range(0, len(uids), CHUNK):
        for strip in await sync_to_async(_chunk)(user, asked, uids[begin : begin + CHUNK]):
            for row in _rows(strip):
                yield row


def _chunk(user: Any, asked: GpuFilter, uids: Sequence[str]) -> list[Strip]:
    rows = list(asked.nodes(user).filter(pk__in=uids))
    return list(asked.narrow(queries.strips(user, rows)))


def _rows(strip: Strip) -> Iterator[Sequence[Any]]:
    node = strip.node
    for cell in strip.cells:
        place = (node.name, node.spine, node.rack, node.gpu_model, cell.index, cell.state)
        parts: tuple[Part | None, ...] = cell.parts or (None,)
        for part in parts:
            yield *place, *_part(cell, part)


def _part(cell: Cell, part: Part | None) -> Sequence[Any]:
    measured, memory = (cell.load, cell.used), cell.memory or None
    if part is None:
        return 0, memory, None, None, "", *measured, "", "", "", "", "", None, None
    who = part.holder
    of_card = (part.size * 100 / WHOLE, memory, part.memory or None, part.cores or None, part.instance)
    since = who.since.isoformat() if who.since else None
    return *of_card, *measured, who.job, who.job_uid, who.queue, who.owner, who.task, who.index if who.task else None, since
