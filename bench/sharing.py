"""GPU packing on a real trace: which part of the GPUs ends up allocated, and how much of what is left is of no use.

Run it as `python -m bench.sharing [--data DIR] [--seeds N]`. The pods of openb arrive in the trace's order on its nodes, with
shares of single cards (deviceshare). Our scheduler is compared with three policies written out here on their own: each pod goes
to the node, and on it to the cards, with the least free GPU that fits (best-fit), the most (worst-fit), or any (random).

Fragmentation is the expected free GPU that a pod drawn from the trace could not use: on a node that it does not fit all
of it, else what is free on cards too full for it; as a part of all GPUs.
"""

from __future__ import annotations

import argparse
import random
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from bench.openb import DATA, read
from bench.table import show
from cluster.objects import HOSTNAME_LABEL, stamp
from cluster.port import Obj
from scheduler.snapshot import Offline, Snapshot

CARD = 1000
"""Thousandths of a card."""
_MIB, _SHARERS = 16384, 10
CONF = """\
# Fill cards and nodes by their GPUs alone: pods without GPUs then stay on nodes without any as long as they can.
actions: "enqueue, allocate, backfill"
tiers:
- plugins:
  - name: priority
  - name: gang
- plugins:
  - name: predicates
  - name: binpack
    arguments:
      binpack.weight: 1
      binpack.cpu: 0
      binpack.memory: 0
      binpack.resources: volcano.sh/vgpu-cores
      binpack.resources.volcano.sh/vgpu-cores: 10
  - name: deviceshare
    arguments:
      deviceshare.VGPUEnable: true
      deviceshare.SchedulePolicy: binpack
      deviceshare.ScheduleWeight: 10
"""


@dataclass(frozen=True, slots=True)
class Pod:
    """What a pod of the trace asks: `cards` cards with `share` thousandths of each."""

    name: str
    cpu: int
    memory: int
    cards: int
    share: int
    created: float

    @property
    def shape(self) -> tuple[int, int, int, int]:
        """Pods of one shape are one kind of work."""
        return self.cpu, self.memory, self.cards, self.share


@dataclass(slots=True)
class Node:
    """What is free on a node: milli-CPU, MiB, and thousandths of each card."""

    name: str
    cpu: int
    memory: int
    cards: list[int]

    def fits(self, pod: Pod) -> bool:
        """Whether a pod finds room."""
        return self.cpu >= pod.cpu and self.memory >= pod.memory and self.usable(pod.share) >= pod.cards

    def usable(self, share: int) -> int:
        """Cards with so much free."""
        return sum(free >= share for free in self.cards)

    def place(self, pod: Pod, cards: Sequence[int]) -> None:
        """Put a pod on some cards."""
        self.cpu, self.memory = self.cpu - pod.cpu, self.memory - pod.memory
        for card in cards:
            self.cards[card] -= pod.share


Choice = Callable[[list[Node], Pod], tuple[Node, list[int]]]
"""(nodes that fit, pod) → the node and its cards."""


def best_fit(nodes: list[Node], pod: Pod) -> tuple[Node, list[int]]:
    """Least free GPU, on node and card; CPU decides for pods without."""
    node = min(nodes, key=lambda each: (sum(each.cards), each.cpu))
    return node, _cards(node, pod, lambda card: node.cards[card])


def worst_fit(nodes: list[Node], pod: Pod) -> tuple[Node, list[int]]:
    """Most free GPU."""
    node = max(nodes, key=lambda each: (sum(each.cards), each.cpu))
    return node, _cards(node, pod, lambda card: -node.cards[card])


def by_chance(chance: random.Random) -> Choice:
    """Any node, any cards."""

    def choose(nodes: list[Node], pod: Pod) -> tuple[Node, list[int]]:
        node = chance.choice(nodes)
        return node, _cards(node, pod, lambda card: chance.random())

    return choose


def _cards(node: Node, pod: Pod, key: Callable[[int], float]) -> list[int]:
    fitting = [card for card, free in enumerate(node.cards) if free >= pod.share]
    return sorted(fitting, key=key)[: pod.cards]


def placed_by(choose: Choice, nodes: list[Node], pods: list[Pod]) -> list[Node]:
    """The nodes after every pod that fits was placed, in order."""
    for pod in pods:
        fitting = [node for node in nodes if node.fits(pod)]
        if fitting:
            node, cards = choose(fitting, pod)
            node.place(pod, cards)
    return nodes


# --- our scheduler ------------------------------------------------------------------------------------------------


def placed_by_us(nodes: list[Node], pods: list[Pod]) -> list[Node]:
    """The same, decided by the scheduler: cycles until one places nothing."""
    objs = [_node(node) for node in nodes]
    for pod in pods:
        objs += _pod_and_group(pod)
    offline = Offline(Snapshot.of(objs, CONF))
    by_name, by_pod = {node.name: node for node in nodes}, {pod.name: pod for pod in pods}
    while binds := offline.cycle().binds:
        for bind in binds:
            by_name[bind.node].place(by_pod[bind.name], _held(bind.annotations.get("volcano.sh/vgpu-ids-new", "")))
    return nodes


def _held(text: str) -> list[int]:
    """The numbers of the cards that a binding names."""
    return [int(entry.split(",")[0].rpartition("-")[2]) for part in text.split(";") for entry in part.split(":") if entry]


def _node(node: Node) -> Obj:
    amounts = {"cpu": f"{node.cpu}m", "memory": f"{node.memory}Mi", "pods": "110"}
    annotations = {}
    if cards := len(node.cards):
        annotations["volcano.sh/node-vgpu-register"] = "".join(
            f"{node.name}-card-{card},{_SHARERS},{_MIB},NVIDIA-openb,true,hami-core:" for card in range(cards)
        )
        shared = {"number": _SHARERS * cards, "memory": _MIB * cards, "cores": 100 * cards}
        amounts |= {f"volcano.sh/vgpu-{word}": str(amount) for word, amount in shared.items()}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": node.name, "uid": node.name, "labels": {HOSTNAME_LABEL: node.name}, "annotations": annotations},
        "status": {"allocatable": amounts, "conditions": [{"type": "Ready", "status": "True"}]},
    }


def _pod_and_group(pod: Pod) -> Iterator[Obj]:
    requests = {"cpu": f"{pod.cpu}m", "memory": f"{pod.memory}Mi"}
    if pod.cards:
        percent = str(pod.share // 10)
        asked = {"number": str(pod.cards), "cores": percent, "memory-percentage": percent}
        requests |= {f"volcano.sh/vgpu-{word}": amount for word, amount in asked.items()}
    container = {"name": "main", "image": "job", "resources": {"requests": requests, "limits": requests}}
    meta = {"name": pod.name, "namespace": "default", "uid": pod.name, "creationTimestamp": stamp(pod.created)}
    yield {
        "apiVersion": "scheduling.volcano.sh/v1beta1",
        "kind": "PodGroup",
        "metadata": meta,
        "spec": {"minMember": 1, "queue": "default"},
        "status": {"phase": "Pending"},
    }
    yield {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {**meta, "annotations": {"scheduling.k8s.io/group-name": pod.name}},
        "spec": {"schedulerName": "volcano", "containers": [container]},
        "status": {"phase": "Pending"},
    }


# --- the trace, and what is measured on it ------------------------------------------------------------------------


def trace(data: Path) -> tuple[list[Node], list[Pod]]:
    """Nodes and pods of the default lists."""
    nodes = [
        Node(row["sn"], int(row["cpu_milli"]), int(row["memory_mib"]), [CARD] * int(row["gpu"]))
        for row in read(data / "openb_node_list_all_node.csv")
    ]
    pods = [
        Pod(
            row["name"], int(row["cpu_milli"]), int(row["memory_mib"]), int(row["num_gpu"]), int(row["gpu_milli"] or 0),
            float(row["creation_time"]),
        )
        for row in read(data / "openb_pod_list_default.csv")
    ]  # fmt: skip
    return nodes, pods


def fragmentation(nodes: list[Node], pods: list[Pod]) -> float:
    """Thousandths of cards that a pod drawn from `pods` can be expected to find free and useless."""
    shapes = Counter(pod.shape for pod in pods)
    by_shape = {pod.shape: pod for pod in pods}
    total = 0.0
    for node in nodes:
        free = sum(node.cards)
        if free:
            for shape, count in shapes.items():
                pod = by_shape[shape]
                if not pod.cards or not node.fits(pod):
                    total += free * count
                else:
                    total += sum(left for left in node.cards if left < pod.share) * count
    return total / len(pods)


def figures(nodes: list[Node], pods: list[Pod], all_gpus: int) -> list[float]:
    """Percent of all GPUs that is allocated, and that is fragmented."""
    free = sum(sum(node.cards) for node in nodes)
    return [100 * (1 - free / all_gpus), 100 * fragmentation(nodes, pods) / all_gpus]


def parts(data: Path, seeds: int) -> dict[str, list[float]]:
    """The figures of each policy; of the random one the mean of so many plays."""
    pods = trace(data)[1]
    all_gpus = sum(sum(node.cards) for node in trace(data)[0])
    found = {"ours": figures(placed_by_us(trace(data)[0], pods), pods, all_gpus)}
    for name, choose in (("best-fit", best_fit), ("worst-fit", worst_fit)):
        found[name] = figures(placed_by(choose, trace(data)[0], pods), pods, all_gpus)
    runs = [figures(placed_by(by_chance(random.Random(seed)), trace(data)[0], pods), pods, all_gpus) for seed in range(seeds)]
    found["random"] = [sum(column) / len(runs) for column in zip(*runs, strict=True)]
    return found


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--data", type=Path, default=DATA, help="folder with the CSV files of openb")
    parser.add_argument("--seeds", type=int, default=5, help="how often to play the random policy; the mean is shown")
    given = parser.parse_args()
    if not given.data.is_dir():
        sys.exit(f"{given.data} is no folder: name the one with openb_node_list_all_node.csv by --data")
    if given.seeds < 1:
        parser.error("--seeds is a whole number from 1 on")
    pods = trace(given.data)[1]
    all_gpus = sum(sum(node.cards) for node in trace(given.data)[0])
    found = parts(given.data, given.seeds)
    asked = sum(pod.cards * pod.share for pod in pods)
    rows = [
        (title, [f"{values[at]:.2f}" for values in found.values()])
        for at, title in enumerate(("allocated, % of all GPUs", "fragmented, % of all GPUs"))
    ]
    show(f"sharing: {len(pods):,} pods ask {100 * asked / all_gpus:.1f} % of {all_gpus // CARD:,} GPUs", rows, list(found))


if __name__ == "__main__":
    main()
