"""The shapes of traces that are known, told apart by their columns, and what their rows mean as jobs.

openb (Alibaba 2023), Philly by virtual cluster (Microsoft 2017), Pollux (Petuum 2021), Tiresias (Michigan 2019).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from itertools import chain
from random import Random

from cluster.objects import GPU_PRODUCT_LABEL
from cluster.port import Obj
from cluster.said import said
from scheduler.simulation.traces.table import Faults, Row, header_of, rows
from scheduler.simulation.workload import GPU, GPU_SHARE, Job, Role, over_nodes

CPUS_PER_GPU, MEMORY_PER_GPU = 4, 16
"""What a pod asks beside its GPUs where a trace does not say: CPUs, and GiB."""
POLLUX_HOURS: dict[str, tuple[float, float]] = {
    "cifar10": (0.1, 1.0), "ncf": (0.1, 1.0), "deepspeech2": (1.0, 10.0), "bert": (1.0, 10.0), "yolov3": (10.0, 100.0),
    "imagenet": (100.0, 1000.0),
}  # fmt: skip
"""GPU-hours of an application, from and to: the classes of table 1 in Qiao et al. (OSDI 2021). The trace has no run times."""
OPENB_NAMES = "name", "cpu_milli", "memory_mib", "num_gpu", "gpu_milli"
SHARES = said("a share of a GPU is a plain amount of its node: which card a pod had is not in the trace")
UNTIMED = said("it has no times: one pod comes a second, and runs 30 days")
STAYS = 30 * 86_400.0
"""Seconds for which a pod runs of which no time is known."""


@dataclass(frozen=True, slots=True)
class Choice:
    """Which part of a trace to take. `part`: a virtual cluster of Philly, a set or `set/workload` of Pollux.

    `models` are GPU models that the nodes have, where a trace names models (None: any is taken). `per_node`: GPUs of a node.
    """

    part: str = ""
    limit: int = 0
    seed: int = 0
    per_node: int = 8
    models: frozenset[str] | None = None


@dataclass(slots=True)
class Trace:
    """Jobs of a trace, in the order of its rows. `parts` are those that it has, with how many jobs each."""

    shape: str
    jobs: list[Job]
    parts: dict[str, int] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Shape:
    """One known shape: its columns, and a function that turns a row into a job, or None when it is not chosen."""

    name: str
    needs: tuple[str, ...]
    job: Callable[[Row, Choice], Job | None]
    part: Callable[[Row], str] | None = None
    notes: tuple[str, ...] = ()


def read(file: str, lines: Iterable[str], choice: Choice) -> Trace:
    """Read a table of any known shape. Raises WorkloadError with everything that is wrong with it."""
    faults, source = Faults(file), iter(lines)
    first = next(source, "")
    if not first.strip():
        faults.add(said("the file is empty: a trace is a CSV table with a header"))
        faults.check()
    header = header_of(first, faults)
    shape = _shape_of(header, faults)
    trace, ids, line = Trace(shape.name, [], notes=list(shape.notes)), dict[str, int](), 1
    for row in rows(file, chain([first], source), shape.needs, faults):
        part = shape.part(row) if shape.part is not None else ""
        if part:
            trace.parts[part] = trace.parts.get(part, 0) + 1
        if choice.part and not _is_in(part, choice.part):
            continue
        job = shape.job(row, choice)
        line = row.line
        if job is None:
            continue
        if job.name in ids:
            faults.add(said("the job %(name)s is given twice; first in line %(ids)s", name=job.name, ids=ids[job.name]), row.line)
        ids[job.name] = row.line
        trace.jobs.append(job)
    _complete(trace, choice, faults, line)
    faults.check()
    trace.jobs.sort(key=lambda job: job.arrival)
    if choice.limit:
        del trace.jobs[choice.limit :]
    return trace


def _shape_of(header: list[str], faults: Faults) -> Shape:
    """The shape that all columns of are there; else that of which most are, whose missing columns are told then."""
    best = max(SHAPES, key=lambda shape: sum(name in header for name in shape.needs) / len(shape.needs))
    if not any(name in header for name in best.needs):
        known = "; ".join(f"{shape.name}: {', '.join(shape.needs)}" for shape in SHAPES)
        faults.add(said("the columns are of no known trace. Known are %(known)s", known=known), 1)
        faults.check()
    return best


def _is_in(part: str, chosen: str) -> bool:
    return part == chosen or part.startswith(f"{chosen}/")


def _complete(trace: Trace, choice: Choice, faults: Faults, line: int) -> None:
    if choice.part and not trace.jobs and not faults.found:
        known = ", ".join(f"{name} ({count} jobs)" for name, count in sorted(trace.parts.items()))
        faults.add(said("there is no part %(part)r in it; there are %(known)s", part=choice.part, known=known or "none"))
    elif not trace.jobs and not faults.found:
        faults.add(said("no row is a job"), line)


# -- rows ------------------------------------------------------------------------------------------------------------------


def gang(
    name: str,
    arrival: float,
    duration: float,
    gpus: int,
    choice: Choice,
    *,
    queue: str = "default",
    owner: str = "",
    kind: str = "",
) -> Job:
    """A gang over nodes: pods as large as a node while they fill it. A job without GPUs is one pod of a CPU."""
    pods, each = over_nodes(gpus, choice.per_node) if gpus else (1, 0)
    requests = {"cpu": str(max(1, CPUS_PER_GPU * each)), "memory": f"{max(4, MEMORY_PER_GPU * each)}Gi"}
    role = Role("w", pods, {**requests, **({GPU: str(each)} if each else {})})
    return Job(name, arrival, duration, (role,), pods, queue=queue, owner=owner, kind=kind)


def _philly(row: Row, choice: Choice) -> Job | None:
    vc, number = row.text("vc"), row.whole("job")
    arrival, duration = row.number("arrival_s"), row.number("duration_s")
    name = f"{vc}-{number:06}" if not choice.part else f"job-{number:06}"
    queue = "default" if choice.part else f"vc-{vc}"
    gpus = row.whole("gpus", most=10_000)
    return gang(name, arrival, duration, gpus, choice, queue=queue, owner=vc, kind=row.text("job_type"))


def _tiresias(row: Row, choice: Choice) -> Job | None:
    number, gpus = row.whole("job_id"), row.whole("num_gpu", most=10_000)
    arrival, duration = row.number("submit_time"), row.number("duration")
    return gang(f"job-{number:06}", arrival, duration, gpus, choice, kind=row.text("model_name"))


def _pollux(row: Row, choice: Choice) -> Job | None:
    kind, gpus = row.text("application"), row.whole("num_replicas", least=1, most=10_000)
    hours = POLLUX_HOURS.get(kind)
    if hours is None:
        known = ", ".join(POLLUX_HOURS)
        row.faults.add(
            said("the run time of an application %(kind)r is not known; known are %(known)s", kind=kind, known=known),
            row.line,
            "application",
        )
        return None
    name = f"{row.text('set')}-{row.text('workload')}-{row.text('name')}".replace("_", "-").lower()
    chance = Random(f"{choice.seed}/{name}")  # noqa: S311 - run times, nothing secret
    drawn = math.exp(chance.uniform(math.log(hours[0]), math.log(hours[1])))
    return gang(name, row.number("time"), drawn * 3600 / max(gpus, 1), gpus, choice, kind=kind)


def _untimed(row: Row, choice: Choice) -> Job | None:
    """A pod of which only its size is known: one comes a second, and stays."""
    return _pod(row, choice, float(row.line - 2), STAYS)


def _openb(row: Row, choice: Choice) -> Job | None:
    """A pod of its own; that one was deleted before it was scheduled is a fault of the trace."""
    arrival = row.number("creation_time")
    end = row.number("deletion_time", empty=-1.0, least=-1.0)
    begin = row.number("scheduled_time", empty=arrival)
    if 0 <= end < begin:
        row.faults.add(
            said("%(end)s is before the pod was scheduled, at %(begin)s", end=f"{end:g}", begin=f"{begin:g}"),
            row.line,
            "deletion_time",
        )
    return _pod(row, choice, arrival, max(0.0, end - begin))


def _pod(row: Row, choice: Choice, arrival: float, duration: float) -> Job:
    share = row.whole("num_gpu", empty=0, most=64) * row.whole("gpu_milli", empty=0, most=1000)
    requests = {"cpu": f"{row.whole('cpu_milli')}m", "memory": f"{row.whole('memory_mib')}Mi"}
    wanted = [model for model in row.text("gpu_spec").split("|") if model]
    if choice.models is not None and (unknown := [model for model in wanted if model not in choice.models]):
        have = ", ".join(sorted(choice.models)) or "none"
        row.faults.add(
            said("no node has the GPU model %(unknown)s; there are %(have)s", unknown=", ".join(unknown), have=have),
            row.line,
            "gpu_spec",
        )
    spec: Obj = {}
    if wanted:
        terms = [{"matchExpressions": [{"key": GPU_PRODUCT_LABEL, "operator": "In", "values": wanted}]}]
        spec["affinity"] = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}}
    role = Role("w", 1, {**requests, **({GPU_SHARE: str(share)} if share else {})}, spec)
    return Job(row.text("name"), arrival, duration, (role,), 1, kind=row.text("qos"))


SHAPES: tuple[Shape, ...] = (
    Shape("philly", ("vc", "job", "arrival_s", "gpus", "duration_s"), _philly, lambda row: row.text("vc")),
    Shape(
        "pollux", ("set", "workload", "name", "time", "application", "num_replicas"), _pollux,
        lambda row: f"{row.text('set')}/{row.text('workload')}",
        ("the trace has no run times: they are drawn from the GPU-hours that its paper gives for each application",),
    ),
    Shape("tiresias", ("job_id", "num_gpu", "submit_time", "duration"), _tiresias),
    Shape("openb", (*OPENB_NAMES, "creation_time", "deletion_time", "scheduled_time"), _openb, notes=(SHARES,)),
    Shape("openb sizes", OPENB_NAMES, _untimed, notes=(SHARES, UNTIMED)),
)  # fmt: skip
