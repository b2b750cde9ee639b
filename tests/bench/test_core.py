"""The benches of the scheduling core do what they say, at a small size."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import numpy as np

from bench import gangs, openb
from bench.table import PACKING, place_all, rows_of
from scheduler.conf import DEFAULT
from scheduler.snapshot import Offline, Snapshot


def test_gangs_are_placed_whole_or_not_at_all() -> None:
    run = place_all(gangs.snapshot(5, 4, 10, DEFAULT))
    assert (run.placed, run.cycles) == (40, 1)
    names = [name for name, _ in rows_of([run], 40)]
    assert {"pods placed", "pods/s", "  allocate, s"} <= set(names)
    assert place_all(gangs.snapshot(1, 1, 9, DEFAULT)).placed == 0, "nine GPUs of eight"


def test_packing_fills_nodes_one_after_the_other() -> None:
    def nodes_used(conf: str) -> int:
        done = Offline(gangs.snapshot(10, 2, 8, conf)).cycle()
        return len(Counter(bind.node for bind in done.binds))

    assert nodes_used(DEFAULT) == 10
    assert nodes_used(PACKING.format(resources="nvidia.com/gpu")) == 2


def test_a_part_of_the_trace_is_placed_without_overcommitting_a_node(shared_dir: Path) -> None:
    whole = openb.snapshot(shared_dir / "data" / "traces" / "openb")
    # 20 nodes without GPUs and 20 with some, 300 pods: more than fit.
    nodes = whole.nodes[:20] + whole.nodes[-20:]
    names = [pod["metadata"]["name"] for pod in whole.pods[:300]]
    groups = [group for group in whole.pod_groups if group["metadata"]["name"] in names]
    offline = Offline(Snapshot(nodes=nodes, pods=whole.pods[:300], pod_groups=groups))
    bound = 0
    while binds := offline.cycle().binds:
        bound += len(binds)
    assert 0 < bound < 300
    table = offline.cache.nodes
    assert (table.used <= table.allocatable).all()
    assert int(np.sum(table.pod_count)) == bound
