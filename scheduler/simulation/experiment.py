"""Does it pay to schedule gangs? Jobs that need all their pods at once, with a scheduler of gangs and one of single pods.

Both are the same core. `GANGS` is Volcano's default; `PODS` has no gang plugin and every pod is a group of its own, so that
pods are served in the order of their arrival, whoever their peers are: what a scheduler does that knows nothing of jobs.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from random import Random
from statistics import mean
from typing import Any

from scheduler import conf as configuration
from scheduler.simulation.accounts import Outcome
from scheduler.simulation.engine import Simulation
from scheduler.simulation.options import Options
from scheduler.simulation.workload import GPU, Job, Role, Workload, equal_nodes

GANGS = configuration.DEFAULT
PODS = """\
actions: "allocate"
tiers:
- plugins:
  - name: predicates
  - name: nodeorder
"""
WAYS: tuple[str, ...] = ("gangs", "pods", "pods-in-order")
"""Gangs; single pods, those of all jobs mixed; single pods, those of one job before those of the next."""
SPREAD = 0.5
"""Seconds in which the pods of jobs that are submitted together are made."""


@dataclass(frozen=True, slots=True)
class Setting:
    """What is run: jobs of `ps` + `workers` pods of one GPU each, on `nodes` nodes of `gpus`; times in seconds.

    `work` is what a job does while all its pods run, `patience` how long a pod waits for its peers (0: for ever).
    """

    jobs: Sequence[int] = (1, 2, 5)
    ps: int = 2
    workers: int = 4
    nodes: int = 2
    gpus: int = 4
    work: float = 600.0
    patience: float = 600.0
    pause: float = 60.0
    limit: float = 86_400.0
    repetitions: int = 10
    seed: int = 0


@dataclass(slots=True)
class Trial:
    """One run: when each job was done (None: never), and what the pods held in GPU-hours, of which `useful` was work."""

    way: str
    jobs: int
    seed: int
    done: list[float | None]
    makespan: float | None
    deadlocks: int
    locked: float
    gave_up: int
    held: float
    useful: float


@dataclass(slots=True)
class Row:
    """Several runs of one way with so many jobs. Times in seconds; None: a job was never done in any of them."""

    way: str
    jobs: int
    runs: int
    done: list[float | None]
    makespan: float | None
    longest: float | None
    unfinished: float
    deadlocked: int
    deadlocks: float
    held: float
    useful: float
    trials: list[Trial] = field(default_factory=list)


def run(setting: Setting, tell: Callable[[int, int], bool] = lambda done, of: True) -> list[Row]:
    """Every way with every number of jobs. `tell` hears of progress, and ends the experiment early by False."""
    rows, count = list[Row](), 0
    of = len(setting.jobs) * len(WAYS) * setting.repetitions
    for jobs in setting.jobs:
        for way in WAYS:
            trials = []
            for repetition in range(setting.repetitions):
                trials.append(trial(setting, way, jobs, setting.seed + repetition))
                count += 1
                if not tell(count, of):
                    return rows
            rows.append(_row(way, jobs, trials))
    return rows


def trial(setting: Setting, way: str, jobs: int, seed: int) -> Trial:
    """One run."""
    conf = GANGS if way == "gangs" else PODS
    options = Options(seed=seed, period=0.1, patience=setting.patience, pause=setting.pause, until=setting.limit)
    simulation = Simulation(workload(setting, way, jobs, seed), conf, options)
    simulation.run()
    outcomes = simulation.outcomes()
    done = sorted((outcome.finish for outcome in outcomes), key=lambda at: (at is None, at))
    return Trial(
        way, jobs, seed, done, _last(done), simulation.totals.deadlocks, simulation.totals.locked,
        sum(outcome.gave_up for outcome in outcomes),
        sum(outcome.held for outcome in outcomes) / 3600, sum(_useful(outcome) for outcome in outcomes) / 3600,
    )  # fmt: skip


def workload(setting: Setting, way: str, jobs: int, seed: int) -> Workload:
    """The jobs, submitted at once; their pods come within half a second, mixed or job by job."""
    chance = Random(seed)  # noqa: S311 - an order, nothing secret
    asked = {"cpu": "1", "memory": "1Gi", GPU: "1"}
    roles = (Role("ps", setting.ps, asked), Role("worker", setting.workers, asked))
    pods, found = setting.ps + setting.workers, []
    for number in range(jobs):
        job = Job(f"tf-{number + 1}", 0.0, setting.work, roles, pods)
        if way != "gangs":
            first = SPREAD * number if way == "pods-in-order" else 0.0
            job = replace(job, apart=True, delays=tuple(first + chance.uniform(0, SPREAD) for _ in range(pods)))
        found.append(job)
    return Workload("efficiency", equal_nodes(setting.nodes, setting.gpus), found)


def _useful(outcome: Outcome) -> float:
    return outcome.worked - outcome.lost


def _last(done: Sequence[float | None]) -> float | None:
    return None if any(at is None for at in done) else max((at for at in done if at is not None), default=0.0)


def _row(way: str, jobs: int, trials: list[Trial]) -> Row:
    spans = [each.makespan for each in trials if each.makespan is not None]
    by_place = [[each.done[place] for each in trials] for place in range(jobs)]
    return Row(
        way, jobs, len(trials),
        [_mean(times) for times in by_place],
        mean(spans) if len(spans) == len(trials) else None,
        max(spans) if len(spans) == len(trials) else None,
        mean(sum(at is None for at in each.done) for each in trials),
        sum(each.deadlocks > 0 for each in trials), mean(each.deadlocks for each in trials),
        mean(each.held for each in trials), mean(each.useful for each in trials), trials,
    )  # fmt: skip


def _mean(times: Sequence[float | None]) -> float | None:
    """The mean of a place's times; None when in some run that many jobs were never done."""
    found = [at for at in times if at is not None]
    return mean(found) if len(found) == len(times) else None


def as_dict(rows: Sequence[Row], setting: Setting) -> dict[str, Any]:
    """JSON-ready."""
    from dataclasses import asdict

    return {"setting": {**asdict(setting), "jobs": list(setting.jobs)}, "rows": [asdict(row) for row in rows]}
