"""What a Node object says of its GPUs, as pages show it: how many, of which model, with how much memory, which are ill.

Whole GPUs are resources of device plugins. Where a node has none of them but lists cards that are shared (vGPU), its cards
count. Models and memory come from the labels of NVIDIA's GPU feature discovery or of AMD's node labeller, else from the cards.
Labels and annotations are written by many hands: what cannot be read is left out, and the node is shown all the same.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from cluster import objects
from cluster.port import Obj
from cluster.quantities import parse_quantity

VGPU_REGISTER = "volcano.sh/node-vgpu-register"
SHARED_MEMORY, SHARED_NUMBER = "volcano.sh/gpu-memory", "volcano.sh/gpu-number"
AMD_PRODUCT = ("amd.com/gpu.product-name", "beta.amd.com/gpu.product-name")
AMD_MEMORY = ("amd.com/gpu.vram", "beta.amd.com/gpu.vram")
_MIB = 2**20
_MOST = 4096


@dataclass(frozen=True, slots=True)
class GpuFacts:
    """`memory` in MiB of one GPU, 0 where it is not known; `unhealthy` are indices.

    `cards` are the cards that a node registers to be shared, as (UUID, MiB) by index; none where its GPUs are given whole.
    """

    count: int = 0
    model: str = ""
    memory: int = 0
    unhealthy: tuple[int, ...] = ()
    cards: tuple[tuple[str, int], ...] = ()


@dataclass(frozen=True, slots=True)
class _Card:
    uuid: str
    memory: int
    model: str
    healthy: bool


def gpu_facts(node: Obj, allocatable: Mapping[str, int]) -> GpuFacts:
    """The facts of a node with so much that can be allocated, in smallest units."""
    labels, notes = objects.labels(node), objects.annotations(node)
    whole = int(objects.gpu_count(allocatable))
    cards = () if whole else _cards(notes.get(VGPU_REGISTER))
    count = whole or len(cards)
    if not count:
        return GpuFacts()
    model = labels.get(objects.GPU_PRODUCT_LABEL) or _first(labels, AMD_PRODUCT) or (cards[0].model if cards else "")
    memory = _whole(labels.get(objects.GPU_MEMORY_LABEL)) or _amd_memory(labels) or _even_share(allocatable)
    ill = {index for index in _indices(notes.get(objects.GPU_UNHEALTHY)) if index < count}
    ill |= {index for index, card in enumerate(cards) if not card.healthy}
    named = tuple((card.uuid, card.memory) for card in cards)
    return GpuFacts(count, model, memory or (cards[0].memory if cards else 0), tuple(sorted(ill)), named)


def _cards(text: str | None) -> tuple[_Card, ...]:
    """`uuid,count,memory,type,health,mode:` for each card; an entry that is none counts for nothing."""
    fields = [entry.split(",") for entry in (text or "").split(":") if entry]
    return tuple(
        _Card(each[0], _whole(each[2]), each[3], each[4].lower() in ("true", "t", "1"))
        for each in fields[:_MOST]
        if len(each) >= 6
    )


def _first(labels: Mapping[str, str], names: tuple[str, ...]) -> str:
    return next((labels[name] for name in names if labels.get(name)), "")


def _amd_memory(labels: Mapping[str, str]) -> int:
    """`64G`, by which AMD's labeller means GiB."""
    text = _first(labels, AMD_MEMORY)
    try:
        return int(parse_quantity(text + "i" if text.endswith(("G", "M")) else text) / _MIB) if text else 0
    except ValueError:
        return 0


def _even_share(allocatable: Mapping[str, int]) -> int:
    """By gpushare: memory over cards. Its unit is the administrator's, MiB by custom."""
    number = allocatable.get(SHARED_NUMBER, 0)
    return allocatable.get(SHARED_MEMORY, 0) // number if number else 0


def _whole(text: str | None) -> int:
    return int(text) if text and text.isascii() and text.isdecimal() and len(text) < 10 else 0


def _indices(text: str | None) -> list[int]:
    return [
        int(part) for part in map(str.strip, (text or "").split(",")) if part.isascii() and part.isdecimal() and len(part) < 6
    ]
