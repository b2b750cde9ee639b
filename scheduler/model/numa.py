"""What a node tells of its CPUs: where they are, who manages them, which are free. Read from its Numatopology object."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from typing import Any

from cluster import objects
from cluster.cpus import LARGEST, format_cpus, parse_cpus
from cluster.kinds import NUMATOPOLOGY, Kind
from cluster.port import Obj
from cluster.quantities import to_units

KINDS: tuple[Kind, ...] = (NUMATOPOLOGY,)

CPU_MANAGER, TOPOLOGY_MANAGER = "CPUManagerPolicy", "TopologyManagerPolicy"
POLICY = "volcano.sh/numa-topology-policy"
"""The annotation by which a pod asks for a policy."""
DECISION = "volcano.sh/topology-decision"
CPUS = "basalt.dev/cpus"
"""The annotation that says which CPUs a pod was promised."""

STATIC, NONE = "static", "none"
BEST_EFFORT, RESTRICTED, SINGLE = "best-effort", "restricted", "single-numa-node"

Place = tuple[int, int, int]
"""NUMA node, socket, and core in its socket."""


@dataclass(frozen=True, eq=False)
class Layout:
    """Where each CPU is. Sets of CPUs are bits of integers."""

    places: Mapping[int, Place]

    @cached_property
    def all(self) -> int:
        """Every CPU."""
        return _bits(self.places)

    @cached_property
    def numa_nodes(self) -> dict[int, int]:
        """NUMA node → its CPUs, by id."""
        return self._grouped(lambda place: place[0])

    @cached_property
    def sockets(self) -> dict[int, int]:
        """Socket → its CPUs, by id."""
        return self._grouped(lambda place: place[1])

    @cached_property
    def cores(self) -> dict[tuple[int, int], int]:
        """(socket, core) → its CPUs, by id. Core ids are often unique in their socket only."""
        return self._grouped(lambda place: (place[1], place[2]))

    def _grouped(self, key: Any) -> dict[Any, int]:
        found: dict[Any, int] = {}
        for cpu, place in self.places.items():
            found[key(place)] = found.get(key(place), 0) | 1 << cpu
        return dict(sorted(found.items()))


@dataclass(slots=True, eq=False)
class NumaInfo:
    """One node's CPUs. `allocatable` are those that its kubelet has not given to any pod, None when it tells of none.

    `reserved` is how many it keeps for itself; `given` the pods (uid, and namespace with name) that its kubelet gave CPUs.
    `settled` are pods that were promised CPUs here and have got theirs since.
    """

    layout: Layout
    cpu_manager: str = ""
    topology_manager: str = ""
    allocatable: int | None = None
    reserved: int = 0
    given: frozenset[str] = frozenset()
    settled: set[str] = field(default_factory=set)

    def free(self, promised: Mapping[str, tuple[str, int]]) -> int:
        """CPUs to give, beside what pods here (by uid, with key and CPUs) were promised and their kubelet may not know of.

        A kubelet may choose other CPUs than were promised. So promises stand until all that stand have been met.
        """
        self.settled &= promised.keys()
        standing = {uid: told for uid, told in promised.items() if uid not in self.settled}
        if all(uid in self.given or key in self.given for uid, (key, _) in standing.items()):
            self.settled |= standing.keys()
            return self.allocatable or 0
        free = self.allocatable or 0
        for _, cpus in standing.values():
            free &= ~cpus
        return free


class NumaNodes:
    """What all nodes tell of their CPUs, by node name."""

    def __init__(self) -> None:
        self.of_node: dict[str, NumaInfo] = {}

    def apply(self, kind: Kind, obj: Obj, gone: bool) -> None:
        """Take a Numatopology in, or forget it. Raises ValueError for one that makes no sense."""
        name = objects.name(obj)
        before = self.of_node.pop(name, None)
        if not gone:
            info = self.of_node[name] = read(obj)
            info.settled = before.settled if before is not None else set()


def read(obj: Obj) -> NumaInfo:
    """A Numatopology object. Raises ValueError that says what in it makes no sense."""
    spec = _mapping(obj.get("spec"), "spec")
    policies = _mapping(spec.get("policies"), "spec.policies")
    places = {}
    for text, detail in _mapping(spec.get("cpuDetail"), "spec.cpuDetail").items():
        cpu = int(text) if text.isascii() and text.isdecimal() else LARGEST + 1
        if cpu > LARGEST:
            raise ValueError(f"spec.cpuDetail: {text!r} is no CPU id from 0 to {LARGEST}")
        numbers = [_mapping(detail, f"spec.cpuDetail.{text}").get(name, 0) for name in ("numa", "socket", "core")]
        if not all(isinstance(number, int) and 0 <= number <= LARGEST for number in numbers):
            raise ValueError(f"spec.cpuDetail.{text}: numa, socket and core must be whole numbers from 0 to {LARGEST}")
        places[cpu] = (int(numbers[0]), int(numbers[1]), int(numbers[2]))
    layout = _layout(tuple(sorted(places.items())))
    told = _mapping(_mapping(spec.get("numares"), "spec.numares").get("cpu"), "spec.numares.cpu")
    allocatable = parse_cpus(str(told.get("allocatable") or "")) if told else None
    if allocatable is not None and allocatable & ~layout.all:
        raise ValueError(f"spec.numares.cpu.allocatable: {format_cpus(allocatable & ~layout.all)} are not in spec.cpuDetail")
    reserved = _mapping(spec.get("resReserved"), "spec.resReserved").get("cpu")
    milli = to_units("cpu", reserved) if reserved is not None else 0
    return NumaInfo(
        layout,
        str(policies.get(CPU_MANAGER) or ""),
        str(policies.get(TOPOLOGY_MANAGER) or ""),
        allocatable,
        -(-milli // 1000),
        frozenset(_given(spec.get("podAllocations") or ())),
    )


@lru_cache(maxsize=1024)
def _layout(places: tuple[tuple[int, Place], ...]) -> Layout:
    """One layout for all machines of a make: what is kept of layouts is kept once, whoever tells of his anew."""
    return Layout(dict(places))


def _given(pods: Any) -> Iterable[str]:
    for pod in pods:
        found = _mapping(pod, "spec.podAllocations")
        if found.get("uid"):
            yield str(found["uid"])
        if found.get("name"):
            yield f"{found.get('namespace') or ''}/{found['name']}"


def promised(annotations: Mapping[str, str]) -> int:
    """The CPUs that a pod's annotations say it was promised; what cannot be read is nothing."""
    text = annotations.get(CPUS)
    try:
        return parse_cpus(text) if text else 0
    except ValueError:
        return 0


def marks(layout: Layout, cpus: int) -> dict[str, str]:
    """The annotations that tell a pod's CPUs: which, and how many of each NUMA node in the words of Volcano."""
    counts = {node: (cpus & of_node).bit_count() for node, of_node in layout.numa_nodes.items()}
    listed = ",".join(f'"{node}":{{"cpu":"{count}"}}' for node, count in counts.items() if count)
    return {CPUS: format_cpus(cpus), DECISION: f'{{"numa":{{{listed}}}}}'}


def _mapping(value: Any, where: str) -> Mapping[str, Any]:
    if value is not None and not isinstance(value, Mapping):
        raise ValueError(f"{where} must be a mapping")
    return value or {}


def _bits(cpus: Iterable[int]) -> int:
    mask = 0
    for cpu in cpus:
        mask |= 1 << cpu
    return mask
