"""The demo fleet: 32 machines in eight racks on two spines, with queues and priority classes to try things in."""

from __future__ import annotations

from collections.abc import Iterator

from cluster.embedded.machines import A100, CPU_ONLY, GPU, H100, L40S, V100, Machine
from cluster.kinds import HYPER_NODE, PRIORITY_CLASS, QUEUE
from cluster.objects import RACK_LABEL, SPINE_LABEL
from cluster.port import Obj

# Racks of four machines of one type, in the order of their numbers; four racks hang on one spine switch.
_RACKS = (
    (H100, "h100"),
    (H100, "h100"),
    (A100, "a100"),
    (A100, "a100"),
    (V100, "v100"),
    (L40S, "l40s"),
    (L40S, "l40s"),
    (CPU_ONLY, "cpu"),
)
_PER_RACK, _RACKS_PER_SPINE = 4, 4


def demo_objects() -> Iterator[Obj]:
    """Everything of the demo fleet, in the order in which it is made."""
    yield from _nodes()
    yield from _hypernodes()
    yield from _queues()
    yield from _priorities()


def _layout() -> Iterator[tuple[str, Machine, int]]:
    """(node name, machine, rack number) of each node."""
    numbers: dict[str, int] = {}
    for rack, (machine, prefix) in enumerate(_RACKS, 1):
        for _ in range(_PER_RACK):
            numbers[prefix] = numbers.get(prefix, 0) + 1
            yield f"{prefix}-{numbers[prefix]:02}", machine, rack


def _spine(rack: int) -> int:
    return (rack - 1) // _RACKS_PER_SPINE + 1


def _nodes() -> Iterator[Obj]:
    for name, machine, rack in _layout():
        yield machine.node(name, {RACK_LABEL: f"rack-{rack}", SPINE_LABEL: f"spine-{_spine(rack)}"})


def _hypernodes() -> Iterator[Obj]:
    racks: dict[int, list[str]] = {}
    for name, _, rack in _layout():
        racks.setdefault(rack, []).append(name)
    for rack, members in racks.items():
        yield hypernode(f"rack-{rack}", 1, "rack", "Node", members)
    spines: dict[int, list[str]] = {}
    for rack in racks:
        spines.setdefault(_spine(rack), []).append(f"rack-{rack}")
    for spine, members in spines.items():
        yield hypernode(f"spine-{spine}", 2, "spine", "HyperNode", members)


def hypernode(name: str, tier: int, tier_name: str, member_type: str, members: list[str]) -> Obj:
    """A network domain of exactly these members (nodes, or smaller domains)."""
    return {
        "apiVersion": HYPER_NODE.api_version,
        "kind": HYPER_NODE.kind,
        "metadata": {"name": name},
        "spec": {
            "tier": tier,
            "tierName": tier_name,
            "members": [{"type": member_type, "selector": {"exactMatch": {"name": member}}} for member in members],
        },
    }


def _queues() -> Iterator[Obj]:
    yield _queue("root", "", 1, reclaimable=False)
    yield _queue("default", "root", 1)
    yield _queue("prod", "root", 3, {GPU: "96"}, priority=100)
    yield _queue("research", "root", 4, {GPU: "144"})
    yield _queue("nlp", "research", 3, {GPU: "96"})
    yield _queue("vision", "research", 2, {GPU: "64"})
    yield _queue("speech", "research", 1, {GPU: "32"})
    yield _queue("teaching", "root", 1, {"cpu": "128", "memory": "512Gi", GPU: "16"})


def _queue(
    name: str,
    parent: str,
    weight: int,
    capability: dict[str, str] | None = None,
    *,
    reclaimable: bool = True,
    priority: int = 0,
) -> Obj:
    spec: Obj = {"weight": weight, "reclaimable": reclaimable}
    if parent:
        spec["parent"] = parent
    if capability:
        spec["capability"] = capability
    if priority:
        spec["priority"] = priority
    return {"apiVersion": QUEUE.api_version, "kind": QUEUE.kind, "metadata": {"name": name}, "spec": spec}


def _priorities() -> Iterator[Obj]:
    for name, value, meaning in (
        ("low", -100, "runs on what is left over"),
        ("normal", 0, "the same as saying nothing"),
        ("high", 1000, "goes before the others"),
    ):
        yield {
            "apiVersion": PRIORITY_CLASS.api_version,
            "kind": PRIORITY_CLASS.kind,
            "metadata": {"name": name},
            "value": value,
            "description": meaning,
        }
