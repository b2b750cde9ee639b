"""What can be simulated, read from files: traces (CSV, also gzipped), snapshots of Kubernetes objects, and scenario files."""

from __future__ import annotations

import gzip
import hashlib
import io
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import orjson

from cluster import objects
from cluster.documents import Document
from cluster.kinds import JOB, NODE, PRIORITY_CLASS, QUEUE, by_api
from cluster.objects import GPU_PRODUCT_LABEL
from cluster.port import Obj
from cluster.said import said
from jobs.schedulers import scheduler_names
from portal.dryrun.expand import Controllers
from portal.dryrun.reading import Files, FilesError, Source
from portal.dryrun.reading import read as read_objects
from portal.simulations import standing
from scheduler.model.build import GROUP
from scheduler.simulation.traces import Choice, Trace
from scheduler.simulation.traces import nodes as node_lists
from scheduler.simulation.traces import read as read_trace
from scheduler.simulation.workload import GPU, GPU_SHARE, Job, Workload, WorkloadError, gpus_of, queue

MOST_BYTES = 1 << 30
"""A trace is at most so large, also when it is unpacked."""
NODES: dict[str, tuple[str, str]] = {
    "philly": ("philly_vc_nodes.csv", "32x8"),
    "pollux": ("", "16x4"),
    "tiresias": ("cluster_spec.csv", "16x4"),
    "openb": ("openb_node_list_all_node.csv", "1213x8"),
    "openb sizes": ("openb_node_list_all_node.csv", "1213x8"),
}
"""Nodes by the shape of a trace, where none are given: the file beside it that lists them, else so many."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """What to simulate. `nodes`: a size like `32x8` or a file; `part`, `limit`: of a trace; `load`: what the jobs ask on average,
    as a share of the cluster, reached by longer or shorter run times (0: as they are); `run_time`: seconds of jobs that do
    not say theirs; `saves`: seconds between checkpoints of jobs; `case`: of a scenario file."""

    nodes: str = ""
    part: str = ""
    limit: int = 0
    load: float = 0.0
    seed: int = 0
    run_time: float = 3600.0
    saves: float = 0.0
    case: str = ""


def read(paths: Sequence[Path], wanted: Wanted, name: str = "", most: int = MOST_BYTES) -> Workload:
    """The workload of one file, or of several files of objects, of at most so many bytes each when they are unpacked.

    Raises WorkloadError with everything that is wrong.
    """
    path, name = paths[0], name or paths[0].name
    content = b"".join(_content(each, name if each is path else each.name, most) for each in paths)
    if len(paths) > 1 or path.suffix in (".yaml", ".yml", ".json"):
        found = _scenario(content, name, wanted) if len(paths) == 1 and _is_scenario(content) else _snapshot(paths, wanted)
    else:
        found = _trace(content, path, name, wanted)
    if wanted.saves:
        found.jobs = [replace(job, saves=wanted.saves) for job in found.jobs]
    if wanted.load:
        _reach(found, wanted.load)
    given = Path(wanted.nodes)
    content += given.read_bytes() if given.suffix and given.is_file() else b""
    found.digest = hashlib.sha256(content + orjson.dumps(asdict(wanted), option=orjson.OPT_SORT_KEYS)).hexdigest()
    return found


def _content(path: Path, name: str, most: int = MOST_BYTES) -> bytes:
    try:
        raw = path.read_bytes()
    except OSError as error:
        raise WorkloadError([said("%(path)s: %(why)s", path=path, why=error.strerror)]) from None
    if raw[:2] == b"\x1f\x8b":
        try:
            with gzip.open(io.BytesIO(raw)) as packed:
                raw = packed.read(most + 1)
        except (OSError, EOFError, zlib.error) as error:
            raise WorkloadError([said("%(name)s: it is no whole gzip file: %(error)s", name=name, error=error)]) from None
    if len(raw) > most:
        raise WorkloadError(
            [said("%(name)s: it has more than %(most)s MiB; cut it, or choose a part of it", name=name, most=most >> 20)]
        )
    return raw


def _lines(content: bytes, name: str) -> Iterator[str]:
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise WorkloadError(
            [said("%(name)s, line %(line)s: it is no UTF-8 text; save the table as CSV in UTF-8", name=name, line=line)]
        ) from None
    return iter(io.StringIO(text, newline="\n"))


# -- traces ----------------------------------------------------------------------------------------------------------------


def _trace(content: bytes, path: Path, name: str, wanted: Wanted) -> Workload:
    choice = Choice(part=wanted.part, limit=wanted.limit, seed=wanted.seed)
    given = wanted.nodes or _beside(read_trace(name, _lines(content, name), replace(choice, part="", limit=1)).shape, path)
    shares = b"gpu_milli" in content.partition(b"\n")[0]
    nodes = _nodes(given, wanted.part, shares)
    models = {node["metadata"]["labels"].get(GPU_PRODUCT_LABEL, "") for node in nodes} - {""}
    per_node = max((int(gpus_of(node["status"]["allocatable"])) for node in nodes), default=0) or 8
    known = frozenset(models) if models or Path(given).suffix else None
    trace = read_trace(name, _lines(content, name), replace(choice, per_node=per_node, models=known))
    return Workload(name, [*nodes, *_queues(trace.jobs)], trace.jobs, notes=_notes(trace, nodes))


def _beside(shape: str, path: Path) -> str:
    """The nodes of a shape's own cluster, where nobody says others."""
    file, size = NODES[shape]
    return str(path.parent / file) if file and (path.parent / file).is_file() else size


def _nodes(given: str, part: str, shares: bool) -> list[Obj]:
    found = node_lists.of_size(given)
    if found is None:
        return node_lists.read(given, _lines(_content(Path(given), given), given), part=part, shares=shares)
    if shares:
        for node in found:
            amounts = node["status"]["allocatable"]
            if GPU in amounts:
                amounts[GPU_SHARE] = str(1000 * int(amounts.pop(GPU)))
    return found


def _queues(jobs: list[Job]) -> list[Obj]:
    return [queue(name) for name in sorted({job.queue for job in jobs} - {"default"})]


def _notes(trace: Trace, nodes: list[Obj]) -> list[str]:
    gpus = sum(gpus_of(node["status"]["allocatable"]) for node in nodes)
    return [*trace.notes, said(
        "%(shape)s: %(jobs)s jobs on %(nodes)s nodes with %(gpus)s GPUs",
        shape=trace.shape, jobs=f"{len(trace.jobs):,}", nodes=f"{len(nodes):,}", gpus=f"{gpus:,.0f}",
    )]  # fmt: skip


def _reach(workload: Workload, load: float) -> None:
    """Stretch run times so that the jobs ask a share of the cluster's GPUs (CPUs, where there are none) on average."""
    per_node = [objects.resource_units(obj["status"]["allocatable"]) for obj in workload.objects if obj["kind"] == "Node"]
    gpus = [
        name for name in {name for each in per_node for name in each} if objects.is_gpu(name) or name == "basalt.dev/gpu-milli"
    ]
    main = gpus[0] if gpus else "cpu"
    capacity = sum(each.get(main, 0) for each in per_node)
    span = max((job.arrival for job in workload.jobs), default=0.0) - min((job.arrival for job in workload.jobs), default=0.0)
    work = sum(job.duration * job.units.get(main, 0) for job in workload.jobs)
    if not (capacity and span and work):
        raise WorkloadError([said("the load cannot be set: the jobs ask nothing of what nodes have, or all arrive at once")])
    factor = load * capacity * span / work
    workload.jobs = [replace(job, duration=job.duration * factor) for job in workload.jobs]
    workload.notes.append(
        said(
            "run times are multiplied by %(factor)s, so that the jobs ask %(load)s of the cluster on average",
            factor=f"{factor:.4g}",
            load=f"{load:.0%}",
        )
    )


# -- snapshots -------------------------------------------------------------------------------------------------------------


def _snapshot(paths: Sequence[Path], wanted: Wanted) -> Workload:
    try:
        files = read_objects(paths)
    except FilesError as error:
        raise WorkloadError(error.faults) from None
    return of_files(files, paths[0].name, wanted)


def of_files(files: Files, name: str, wanted: Wanted) -> Workload:
    """Objects of files as a cluster that stands, with what controllers would add; it goes on from its latest time stamp."""
    names = scheduler_names()
    controllers = Controllers(files, names)
    made = [obj for _, obj in (*controllers.groups(files), *controllers.services(files))]
    there = [controllers.bound_for(pod) for pod in files.of(by_api("v1", "Pod"))]  # type: ignore[arg-type]
    pods = [*there, *(pod for _, pod in controllers.pods(there))]
    others = [source.obj for source in files.known if source.obj["kind"] not in ("Pod", JOB.kind)]
    if not any(obj["kind"] == NODE.kind for obj in others):
        raise WorkloadError([said("%(name)s: there is no Node in it: a cluster to simulate has at least one", name=name)])
    objs = [*others, *made, *pods]
    now = max((objects.parse_time(stamp) for obj in objs if (stamp := obj["metadata"].get("creationTimestamp"))), default=0.0)
    by_group: dict[str, list[Obj]] = {}
    for pod in pods:
        by_group.setdefault(f"{objects.namespace(pod)}/{objects.annotations(pod).get(GROUP)}", []).append(pod)

    def run_time(group: Obj, ran: float) -> float:
        told = standing.stated(by_group.get(objects.key(group), ()))
        return told if told is not None else ran + wanted.run_time

    found = standing.workload(name, objs, now, run_time, names)
    if not found.jobs:
        raise WorkloadError([said("%(name)s: there is no job in it that runs or waits", name=name)])
    found.notes.append(
        said(
            "%(jobs)s jobs; one that does not state its run time (%(key)s) runs %(seconds)s s",
            jobs=f"{len(found.jobs):,}",
            key=objects.SIM_DURATION,
            seconds=f"{wanted.run_time:g}",
        )
    )
    return found


# -- scenarios -------------------------------------------------------------------------------------------------------------


def _is_scenario(content: bytes) -> bool:
    """A scenario file is a list of cases; a file of objects is none."""
    head = content[: 1 << 16].lstrip()
    while head.startswith((b"#", b"---")):
        head = head.partition(b"\n")[2].lstrip()
    return head.startswith(b"- id:") or (head.startswith(b"-") and b"\n  setup:" in head)


def _scenario(content: bytes, name: str, wanted: Wanted) -> Workload:
    """The cluster of a case and the jobs that its steps submit, each at its moment; what else its steps do is left out."""
    from portal.scenario import FileError, load
    from portal.scenario.errors import Failed

    try:
        cases = load(content.decode("utf-8"))
    except FileError as error:
        raise WorkloadError([said("%(file)s, %(fault)s", file=name, fault=fault) for fault in error.faults]) from None
    except UnicodeDecodeError:
        raise WorkloadError([said("%(name)s: it is no UTF-8 text", name=name)]) from None
    chosen = next((case for case in cases if case.id == wanted.case or not wanted.case), None)
    if chosen is None:
        raise WorkloadError(
            [
                said(
                    "%(name)s: there is no case %(case)r; there are %(cases)s",
                    name=name,
                    case=wanted.case,
                    cases=", ".join(case.id for case in cases),
                )
            ]
        )
    try:
        objs = _submitted(chosen)
    except Failed as error:
        raise WorkloadError([said("%(name)s: case %(id)s: %(error)s", name=name, id=chosen.id, error=error)]) from None
    sources = [Source(name, Document(i, obj), by_api(str(obj["apiVersion"]), str(obj["kind"]))) for i, obj in enumerate(objs)]
    found = of_files(Files(known=sources), name, wanted)
    first = min(job.arrival for job in found.jobs)
    found.begin = min(found.begin, first)
    found.name = f"{name}: {chosen.id}"
    return found


def _submitted(case: Any) -> list[Obj]:
    from portal.scenario.steps import STEPS, set_up
    from portal.scenario.world import World

    world = World(case.setup)
    try:
        set_up(world, case.setup)
        for step in case.steps:
            if step.word.startswith("submit") or step.word == "clock":
                STEPS[step.word](world, step.value)
        kinds = (NODE, QUEUE, PRIORITY_CLASS, JOB)
        found = [objects.clone(obj) for kind in kinds for obj in world.cluster.list(kind).items]
        for obj in found:
            obj.setdefault("spec", {})
            obj.setdefault("status", {})
        return found
    finally:
        world.close()
