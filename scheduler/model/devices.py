"""Cards that pods share: what a node registers, what a pod asks of them, and what each pod was given.

Two ways of sharing exist. vGPU: a node lists its cards in an annotation, and a container asks for parts of so many cards.
gpushare: a node has memory units and a number of equal cards, and a pod asks for memory of one card, or for whole cards.
Texts are Volcano's, so its device plugins read what is written here.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from cluster import objects
from cluster.quantities import VGPU_PERCENT, parse_quantity

VGPU_NUMBER, VGPU_MEMORY, VGPU_CORES = "volcano.sh/vgpu-number", "volcano.sh/vgpu-memory", "volcano.sh/vgpu-cores"
GPU_MEMORY, GPU_NUMBER = "volcano.sh/gpu-memory", "volcano.sh/gpu-number"

DEVICE_CONFIG = "device-config.yaml"
"""The key of a ConfigMap that says how cards are divided."""

REGISTER = "volcano.sh/node-vgpu-register"
VGPU_IDS, VGPU_IDS_TO_ALLOCATE = "volcano.sh/vgpu-ids-new", "volcano.sh/devices-to-allocate"
GPU_INDEX = "volcano.sh/gpu-index"
MODE = "volcano.sh/vgpu-mode"
GROUP_POLICY, SPREAD = "volcano.sh/vgpu-podgroup-policy", "spread"
USE_UUID, NO_UUID = "volcano.sh/vgpu-use-gpuuuid", "volcano.sh/vgpu-nouse-gpuuuid"
USE_TYPE, NO_TYPE = "nvidia.com/use-gputype", "nvidia.com/nouse-gputype"

HAMI_CORE, MIG, MPS = "hami-core", "mig", "mps"
VENDOR = "NVIDIA"
_WHOLE = re.compile(r"[0-9]{1,9}", re.ASCII)
_INDICES = re.compile(r"[0-9]{1,4}(,[0-9]{1,4})*", re.ASCII)


@dataclass(frozen=True, slots=True)
class Ask:
    """What one container asks: of `count` cards each `memory` MiB, or `percent` of its memory, and `cores` percent.

    `percent` is None where an amount of memory is asked.
    """

    count: int
    memory: int
    percent: int | None
    cores: int

    def memory_of(self, card_memory: int) -> int:
        """MiB of a card of so much memory."""
        return self.memory if self.percent is None else card_memory * self.percent // 100


@dataclass(frozen=True, slots=True)
class Share:
    """What a pod asks of shared cards, and which cards it may have.

    `asks` are its vGPU containers; `memory` and `number` what it asks by gpushare.
    """

    asks: tuple[Ask, ...] = ()
    memory: int = 0
    number: int = 0
    mode: str = ""
    uuids: tuple[str, ...] = ()
    not_uuids: tuple[str, ...] = ()
    types: tuple[str, ...] | None = None
    not_types: tuple[str, ...] = ()

    def takes(self, uuid: str, kind: str) -> bool:
        """Whether a vGPU card may be used by its UUID and its type."""
        kind = kind.upper()
        if VENDOR not in kind or (self.uuids and uuid not in self.uuids) or uuid in self.not_uuids:
            return False
        if self.types is not None:
            return any(wanted in kind for wanted in self.types)
        return not any(unwanted in kind for unwanted in self.not_types)


@dataclass(frozen=True, slots=True)
class Use:
    """A part of a card that a pod holds: its UUID (with the instance of a MIG card), or by gpushare its index."""

    card: str
    memory: int
    cores: int = 0


@dataclass(frozen=True, slots=True)
class Card:
    """One card of a node; at most `sharers` pods share it."""

    uuid: str
    sharers: int
    memory: int
    kind: str
    healthy: bool


def read_share(pod: Mapping[str, Any]) -> Share | None:
    """What a pod asks of shared cards; None when it asks nothing. Raises ValueError for amounts that are no numbers."""
    spec = pod["spec"]
    containers = list(spec.get("containers") or ())
    asks = tuple(ask for container in containers if (ask := _ask(container)) is not None)
    memory = max(_sum(containers, GPU_MEMORY), _most(spec.get("initContainers") or (), GPU_MEMORY))
    number = max(_sum(containers, GPU_NUMBER), _most(spec.get("initContainers") or (), GPU_NUMBER))
    if not (asks or memory or number):
        return None
    marks = objects.annotations(pod)
    types = marks.get(USE_TYPE)
    return Share(
        asks,
        memory,
        number,
        marks.get(MODE, ""),
        _names(marks.get(USE_UUID)),
        _names(marks.get(NO_UUID)),
        None if types is None else tuple(part.strip().upper() for part in types.split(",")),
        tuple(part.upper() for part in _names(marks.get(NO_TYPE))) if types is None else (),
    )


def _ask(container: Mapping[str, Any]) -> Ask | None:
    resources = container.get("resources") or {}
    limits = resources.get("limits") or {}
    if VGPU_NUMBER not in limits and VGPU_MEMORY not in limits:
        return None
    either = {**(resources.get("requests") or {}), **limits}
    memory, percent = _amount(either, VGPU_MEMORY), either.get(VGPU_PERCENT)
    return Ask(
        _amount(limits, VGPU_NUMBER) if VGPU_NUMBER in limits else 1,
        memory,
        _amount(either, VGPU_PERCENT) if percent is not None else None if memory else 100,
        _amount(either, VGPU_CORES),
    )


def _amount(resources: Mapping[str, Any], name: str) -> int:
    try:
        amount = parse_quantity(resources.get(name) or 0)
    except ValueError as error:
        raise ValueError(f"{name}: {error}") from None
    if not 0 <= amount < 2**31:
        raise ValueError(f"{name}: {amount} must be from 0 to 2147483647")
    return int(amount)


def _limits(container: Mapping[str, Any]) -> Mapping[str, Any]:
    found: Mapping[str, Any] = (container.get("resources") or {}).get("limits") or {}
    return found


def _sum(containers: Sequence[Mapping[str, Any]], name: str) -> int:
    return sum(_amount(_limits(container), name) for container in containers)


def _most(containers: Sequence[Mapping[str, Any]], name: str) -> int:
    return max((_amount(_limits(container), name) for container in containers), default=0)


def _names(text: str | None) -> tuple[str, ...]:
    return tuple(part.strip() for part in (text or "").split(",") if part.strip())


# -- what a node has -----------------------------------------------------------------------------------------------------


def registered(node: Mapping[str, Any]) -> tuple[str, tuple[Card, ...]]:
    """The mode of a node's vGPU cards, and the cards; none when it has none, or does not offer them.

    Raises ValueError for a list that cannot be read.
    """
    text = objects.annotations(node).get(REGISTER) or ""
    offered = objects.resource_units((node.get("status") or {}).get("allocatable"))
    if not text or not all(offered.get(name) for name in (VGPU_NUMBER, VGPU_MEMORY, VGPU_CORES)):
        return HAMI_CORE, ()
    cards, mode = [], HAMI_CORE
    for entry in filter(None, text.split(":")):
        fields = entry.split(",")
        if len(fields) < 6 or not all(_WHOLE.fullmatch(field) for field in fields[1:3]):
            raise ValueError(f"annotation {REGISTER}: {entry!r} is no card: expected uuid,count,memory,type,health,mode")
        cards.append(Card(fields[0], int(fields[1]), int(fields[2]), fields[3], fields[4].lower() in ("true", "t", "1")))
        mode = fields[5] if fields[5] in (MIG, MPS) else HAMI_CORE
    return mode, tuple(cards)


def equal_cards(node: Mapping[str, Any]) -> tuple[Card, ...]:
    """A node's cards by gpushare: memory and number of its capacity, evenly; sharers do not matter."""
    capacity = (node.get("status") or {}).get("capacity") or {}
    memory, number = _amount(capacity, GPU_MEMORY), _amount(capacity, GPU_NUMBER)
    if not memory or not number:
        return ()
    ill = _names(objects.annotations(node).get(objects.GPU_UNHEALTHY))
    return tuple(Card(str(i), 0, memory // number, "", str(i) not in ill) for i in range(min(number, 4096)))


# -- what a pod was given ------------------------------------------------------------------------------------------------


def uses_of(pod: Mapping[str, Any]) -> tuple[Use, ...]:
    """The parts of cards that a pod's annotations say it was given; what cannot be read counts for nothing."""
    marks = objects.annotations(pod)
    found = []
    for entry in re.split(r"[:;]", marks.get(VGPU_IDS) or ""):
        fields = entry.rsplit(",", 3)
        if len(fields) == 4 and _WHOLE.fullmatch(fields[2]) and _WHOLE.fullmatch(fields[3]):
            found.append(Use(fields[0], int(fields[2]), int(fields[3])))
    if not found and _INDICES.fullmatch(marks.get(GPU_INDEX) or ""):
        memory = max(_sum(pod["spec"].get("containers") or (), GPU_MEMORY), 0)
        found = [Use(index, memory) for index in marks[GPU_INDEX].split(",")]
    return tuple(found)


def vgpu_text(containers: Sequence[Sequence[Use]]) -> str:
    """`uuid,type,memory,cores:` a card, `;` between containers."""
    return ";".join("".join(f"{use.card},{VENDOR},{use.memory},{use.cores}:" for use in uses) for uses in containers)
