"""The nodes of a simulated cluster: `32x8`, a node list of openb, a cluster shape of Tiresias, nodes of Philly's clusters."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from itertools import chain

from cluster.objects import RACK_LABEL
from cluster.port import Obj
from cluster.said import said
from scheduler.simulation.traces.table import Faults, Row, header_of, rows
from scheduler.simulation.workload import GPU, GPU_SHARE, WorkloadError, equal_nodes, node

_SIZE = re.compile(r"([0-9]{1,5})x([0-9]{1,2})(?::(\S+))?", re.ASCII)
_OPENB = ("sn", "cpu_milli", "memory_mib", "gpu", "model")
_TIRESIAS = ("num_switch", "num_node_p_switch", "num_gpu_p_node", "num_cpu_p_node", "mem_p_node")
_PHILLY = ("vc", "node num")
MOST_NODES = 50_000


def of_size(text: str) -> list[Obj] | None:
    """`32x8`, or `32x8:A100`: so many equal nodes with so many GPUs of a model; None when the text is no size."""
    found = _SIZE.fullmatch(text)
    if found is None:
        return None
    count, gpus, model = int(found[1]), int(found[2]), found[3] or ""
    if not 1 <= count <= MOST_NODES:
        raise WorkloadError([said("%(text)s: a cluster has from 1 to %(most)s nodes", text=text, most=f"{MOST_NODES:,}")])
    return equal_nodes(count, gpus, cpu=str(max(16, 8 * gpus)), memory=f"{max(64, 64 * gpus)}Gi", model=model)


def read(file: str, lines: Iterable[str], *, part: str = "", shares: bool = False) -> list[Obj]:
    """Nodes of a table. `part`: the virtual cluster, for Philly's; `shares`: GPUs as shares, for openb's pods.

    Raises WorkloadError with everything that is wrong with it.
    """
    faults, source = Faults(file), iter(lines)
    first = next(source, "")
    header = header_of(first, faults)
    for needs, make in ((_OPENB, _openb), (_TIRESIAS, _tiresias), (_PHILLY, _philly)):
        if all(name in header for name in needs):
            found = [each for row in rows(file, chain([first], source), needs, faults) for each in make(row, part, shares)]
            break
    else:
        known = "; ".join(", ".join(needs) for needs in (_OPENB, _TIRESIAS, _PHILLY))
        faults.add(said("the columns are of no known list of nodes. Known are %(known)s", known=known), 1)
        found = []
    if not found:
        faults.add(said("there is no node for %(part)s in it", part=part) if part else said("there is no node in it"))
    if len(found) > MOST_NODES:
        faults.add(said("a cluster has at most %(most)s nodes, not %(count)s", most=f"{MOST_NODES:,}", count=f"{len(found):,}"))
    names: set[str] = set()
    for each in found:
        if (name := each["metadata"]["name"]) in names:
            faults.add(said("the node %(name)s is given twice", name=name))
        names.add(name)
    faults.check()
    return found


def _openb(row: Row, part: str, shares: bool) -> Iterator[Obj]:
    gpus = row.whole("gpu", most=64, empty=0)
    allocatable = {"cpu": f"{row.whole('cpu_milli')}m", "memory": f"{row.whole('memory_mib')}Mi"}
    if gpus:
        allocatable |= {GPU_SHARE: str(1000 * gpus)} if shares else {GPU: str(gpus)}
    name = row.text("sn")
    if not name:
        row.faults.add(said("an empty cell is no name of a node"), row.line, "sn")
    yield node(name, allocatable, model=row.text("model") if gpus else "")


def _tiresias(row: Row, part: str, shares: bool) -> Iterator[Obj]:
    allocatable = {"cpu": str(row.whole("num_cpu_p_node", least=1)), "memory": f"{row.whole('mem_p_node', least=1)}Gi"}
    gpus = row.whole("num_gpu_p_node", most=64)
    allocatable |= {GPU: str(gpus)} if gpus else {}
    for switch in range(row.whole("num_switch", least=1, most=1000)):
        for number in range(row.whole("num_node_p_switch", least=1, most=1000)):
            yield node(f"node-{switch:03}-{number:03}", allocatable, labels={RACK_LABEL: f"switch-{switch:03}"})


def _philly(row: Row, part: str, shares: bool) -> Iterator[Obj]:
    """Nodes of eight GPUs, which is what most of Philly's were."""
    count = row.whole("node num", least=1, most=10_000)
    if not part or row.text("vc") == part:
        allocatable = {"cpu": "64", "memory": "512Gi", GPU: "8"}
        yield from (node(f"{row.text('vc')}-{number:04}", allocatable) for number in range(count))
