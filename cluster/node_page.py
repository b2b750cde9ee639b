"""What the page of one node shows beside its row: sets of its GPUs and who holds them, what is left of each resource, what
was done to it, what happened to it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.utils.translation import gettext as _

from cluster import gpusets, machines
from cluster.gpusets import GpuSet, Held, NodeSets
from cluster.models import Event, Node
from cluster.quantities import is_gpu
from cluster.queries import Strip, link_matrix, nearness
from cluster.workloads import Holder, Usage

_SLOW = 2
"""Links up to this nearness cross a host bridge or sockets: a set with one runs at their pace."""


@dataclass(frozen=True, slots=True)
class Holding:
    """A pod's set of GPUs, and the best it could have had."""

    holder: Holder
    held: Held

    @property
    def is_slow(self) -> bool:
        return bool(self.held.had.slowest) and nearness(self.held.had.slowest) <= _SLOW


@dataclass(frozen=True, slots=True)
class Offer:
    """The set that a pod of `size` GPUs would be given; None: too few are free."""

    size: int
    given: GpuSet | None

    @property
    def is_slow(self) -> bool:
        return self.given is not None and bool(self.given.slowest) and nearness(self.given.slowest) <= _SLOW


def sets(node: Node, strip: Strip) -> dict[str, Any]:
    """Islands, free sets by size and held sets, for the page and the panel; empty where nobody can judge."""
    holders = holders_of(strip)
    found = judged(node, strip, [each.gpus for each in holders])
    if found is None:
        return {"sets": None, "offers": [], "holdings": [], "best_pair": ()}
    offers = [Offer(size, given) for size, given in found.free]
    pair = next((offer.given.gpus for offer in offers if offer.size == 2 and offer.given and found.known), ())
    return {
        "sets": found,
        "offers": offers,
        "holdings": [Holding(holder, held) for holder, held in zip(holders, found.held)],
        "best_pair": pair,
        "islands": island_cells(found, strip),
    }


def judged(node: Node, strip: Strip, held: Sequence[Sequence[int]]) -> NodeSets | None:
    """The sets of a node with some that are held."""
    free = {cell.index for cell in strip.cells if cell.state == "free"}
    healthy = set(range(node.gpu_count)) - set(node.gpu_unhealthy)
    return gpusets.of_node(node.gpu_links, node.gpu_count, free, healthy, held)


def holders_of(strip: Strip) -> list[Holder]:
    """Pods that hold whole GPUs of the node, each once, by their first GPU."""
    found = {id(part.holder): part.holder for cell in strip.cells for part in cell.parts if part.holder.gpus}
    return sorted(found.values(), key=lambda holder: holder.gpus)


def island_cells(found: NodeSets, strip: Strip) -> list[list[Any]]:
    """The node's cells by island; empty where no link joins any two GPUs."""
    if not any(len(island) > 1 for island in found.islands):
        return []
    return [[strip.cells[gpu] for gpu in island] for island in found.islands]


def links(node: Node, strip: Strip, pair: Sequence[int]) -> list[dict[str, Any]]:
    """The link matrix, a row a GPU: its index, whether it is free, and its cells; those of the best free pair are `marked`."""
    free = {cell.index for cell in strip.cells if cell.state == "free"}
    return [
        {
            "index": row,
            "free": row in free,
            "cells": [(link, row in pair and column in pair) for column, link in enumerate(names)],
        }
        for row, names in enumerate(link_matrix(node))
    ]


@dataclass(frozen=True, slots=True)
class Amount:
    """A resource of a node in smallest units."""

    resource: str
    allocatable: int
    used: int

    @property
    def free(self) -> int:
        return self.allocatable - self.used


_ORDER = ("cpu", "memory", "ephemeral-storage", "pods")


def amounts(node: Node, usage: Usage) -> list[Amount]:
    """What the node has of each resource and what its pods ask, GPUs first, then the common ones, then by name."""
    used = {**usage.requests, "pods": usage.pods}

    def place(name: str) -> tuple[int, str]:
        return (-1 if is_gpu(name) else _ORDER.index(name) if name in _ORDER else len(_ORDER)), name

    return [Amount(name, node.allocatable[name], used.get(name, 0)) for name in sorted(node.allocatable, key=place)
            if node.allocatable[name]]  # fmt: skip


def told(events: Iterable[Event]) -> tuple[list[Event], list[Event]]:
    """What people did to a node, and everything else that happened."""
    done: list[Event] = []
    rest: list[Event] = []
    for event in events:
        (done if event.source == machines.SOURCE and event.reason in machines.REASONS else rest).append(event)
    return done, rest


def as_json(found: Mapping[str, Any]) -> dict[str, Any]:
    """`sets` for programs."""
    judged: NodeSets | None = found["sets"]
    if judged is None:
        return {"known": False, "islands": [], "free_sets": [], "held_sets": []}
    return {
        "known": judged.known,
        "islands": [list(island) for island in judged.islands],
        "free_sets": [{"size": offer.size, "set": _set(offer.given)} for offer in found["offers"]],
        "held_sets": [
            {"job": each.holder.job, "job_uid": each.holder.job_uid, "queue": each.holder.queue, "set": _set(each.held.had),
             "best": _set(each.held.best)}
            for each in found["holdings"]
        ],
    }  # fmt: skip


def _set(found: GpuSet | None) -> dict[str, Any] | None:
    if found is None:
        return None
    return {
        "gpus": list(found.gpus), "slowest_link": found.slowest or None,
        "bandwidth_gbs": found.bandwidth if found.score is not None else None, "score": found.score,
    }  # fmt: skip


def deed(event: Event) -> str:
    """What was done and by whom, in words."""
    user, _colon, why = event.message.removeprefix(machines.BY).partition(": ")
    words = {
        "Cordoned": _("Cordoned by %(user)s") if user else _("Cordoned"),
        "Uncordoned": _("Uncordoned by %(user)s") if user else _("Uncordoned"),
        "TakenDown": _("Taken down by %(user)s") if user else _("Taken down"),
        "BroughtBack": _("Brought back by %(user)s") if user else _("Brought back"),
        "Draining": _("Drain begun by %(user)s") if user else _("Drain begun"),
        "Drained": _("Drained for %(user)s") if user else _("Drained"),
        "DrainEnded": _("Drain ended before its time, for %(user)s") if user else _("Drain ended before its time"),
    }
    done = words[event.reason] % {"user": user}
    return f"{done} – {why}" if why else done
