"""GPU sets against trying every set: every machine on record, and 16-GPU shapes that no record has.

Run it as `python -m bench.gpus [--data DIR] [--masks N]`. For each mask of free GPUs and each k the set that the scheduler
gives is compared with the best of all sets, judged by the rule in `docs/gpus.md` worked out here on its own. Machines of up
to 8 GPUs are compared under every mask; 16 GPUs have 65,536 masks with up to 12,870 sets each, of which N are drawn (seeded).
"""

from __future__ import annotations

import argparse
import random
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from bench.table import show
from cluster.topology import parse_topology
from scheduler.topology.gpu import LinkMatrix, best_set

DATA = Path(__file__).parents[2] / "shared" / "data" / "topologies"
Numbers = NDArray[np.int64]
_NOTHING = -1


class Brute:
    """What every subset of a machine's GPUs is worth, and what every mask offers of each size.

    A worth is one number: the rank of the slowest link, then the bandwidth of all links together.
    """

    def __init__(self, links: LinkMatrix) -> None:
        self.size = size = links.size
        masks = np.arange(1 << size)
        self.counts = np.bitwise_count(masks).astype(np.int64)
        slowest, bandwidth = np.full(1 << size, 1 << 20), np.zeros(1 << size, np.int64)
        for a in range(size):
            for b in range(a):
                both = (masks >> a & masks >> b & 1).astype(np.bool_)
                slowest[both] = np.minimum(slowest[both], int(links.rank[a, b]))
                bandwidth[both] += int(links.strength[a, b])
        self.worth: Numbers = (slowest << 32) + bandwidth
        self.offers: Numbers = np.full((size + 1, 1 << size), _NOTHING)
        self.offers[self.counts, masks] = self.worth
        for bit in range(size):
            with_bit = masks[masks >> bit & 1 == 1]
            self.offers[:, with_bit] = np.maximum(self.offers[:, with_bit], self.offers[:, with_bit ^ 1 << bit])
        # Of two sets the one with the lower GPU where they first differ: its bits read backwards are the larger number.
        self.backwards: Numbers = sum((masks >> bit & 1) << (size - 1 - bit) for bit in range(size))  # type: ignore[assignment]

    def best(self, free: int, within: Numbers, k: int) -> int:
        """The best set of k among the subsets `within` of a mask."""
        sets = within[self.counts[within] == k]
        sets = _largest(sets, self.worth[sets])
        for left in range(free.bit_count() - k, 0, -1):
            if len(sets) == 1:
                break
            sets = _largest(sets, self.offers[left, free ^ sets])
        return int(sets[self.backwards[sets].argmax()])


def _largest(sets: Numbers, values: Numbers) -> Numbers:
    return sets[values == values.max()]


def subsets(free: int) -> Numbers:
    """All subsets of a mask."""
    found = np.zeros(1, np.int64)
    for bit in range(free.bit_length()):
        if free >> bit & 1:
            found = np.concatenate([found, found | 1 << bit])
    return found


def compared(links: LinkMatrix, masks: list[int]) -> tuple[int, int, float]:
    """How many choices were compared, how many differ, and the seconds that the scheduler's took."""
    brute, choices, wrong, seconds = Brute(links), 0, 0, 0.0
    for free in masks:
        within = subsets(free)
        for k in range(1, free.bit_count() + 1):
            begin = time.perf_counter()
            found = best_set(links, free, k)
            seconds += time.perf_counter() - begin
            choices += 1
            wrong += sum(1 << gpu for gpu in found) != brute.best(free, within, k)
    return choices, wrong, seconds


def machines(data: Path) -> Iterator[tuple[str, LinkMatrix]]:
    """Those on record, then shapes of 16 GPUs, then links drawn by chance."""
    for path in sorted(data.glob("*.txt")):
        yield path.stem, LinkMatrix.of(parse_topology(path.read_text("utf-8")).links)
    yield "16 in two boards of 8", _grid(lambda a, b: "NV6" if a // 8 == b // 8 else "NODE")
    yield "16 in four islands of 4", _grid(lambda a, b: "NV4" if a // 4 == b // 4 else "PHB" if a // 8 == b // 8 else "SYS")
    yield "16 in pairs", _grid(lambda a, b: "NV2" if a // 2 == b // 2 else "PXB" if a // 4 == b // 4 else "SYS")
    chance = random.Random(16)
    names = ["NV1", "NV2", "NV4", "PIX", "PXB", "PHB", "NODE", "SYS"]
    drawn = {(a, b): chance.choice(names) for a in range(16) for b in range(a)}
    yield "16 by chance", _grid(lambda a, b: drawn[max(a, b), min(a, b)])


def _grid(name: object, size: int = 16) -> LinkMatrix:
    assert callable(name)
    return LinkMatrix.of([["X" if a == b else name(a, b) for b in range(size)] for a in range(size)])


def main() -> None:
    """Compare and print; the exit status says whether all agree."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--data", type=Path, default=DATA, help="folder with the recorded topologies")
    parser.add_argument("--masks", type=int, default=1500, help="how many masks of a machine of more than 8 GPUs")
    given = parser.parse_args()
    if given.masks < 1:
        parser.error("--masks is a whole number from 1 on")
    rows, all_wrong, chance = [], 0, random.Random(0)
    for name, links in machines(given.data):
        every = 1 << links.size
        whole = every <= 1 << 8 or given.masks >= every
        masks = list(range(every)) if whole else [every - 1, *chance.sample(range(1, every - 1), given.masks - 1)]
        choices, wrong, seconds = compared(links, masks)
        all_wrong += wrong
        tried = "all" if whole else f"{len(masks):,} of {every:,}"
        rows.append((name, [str(links.size), tried, f"{choices:,}", f"{1e6 * seconds / max(choices, 1):,.0f}", str(wrong)]))
    show(
        "gpus: the set that the scheduler gives, against trying every set",
        rows,
        ["GPUs", "masks", "choices", "µs each", "differ"],
    )
    sys.exit(min(all_wrong, 1))


if __name__ == "__main__":
    main()
