"""What a simulated course comes to: waiting, slowdown, use, fragmentation, preemption and fairness, as data."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict
from math import inf
from typing import Any

import numpy as np

from scheduler.simulation.accounts import Outcome
from scheduler.simulation.engine import Simulation

SIZES: tuple[tuple[str, float], ...] = (
    ("0", 0.0), ("≤ 1", 1.0), ("2–4", 4.0), ("5–8", 8.0), ("9–16", 16.0), ("17–64", 64.0), ("> 64", inf),
)  # fmt: skip
"""Classes of jobs by how much of the main resource they ask, each with its largest."""
SHORTEST = 10.0
"""Seconds that count as a job's run time at least in its slowdown, so that those of moments do not decide it."""


def summary(simulation: Simulation) -> dict[str, Any]:
    """Everything that is measured of a course, JSON-ready; times in seconds, amounts in the main resource's units."""
    outcomes, totals, scale = simulation.outcomes(), simulation.totals, simulation.gauges.scale
    finished = [outcome for outcome in outcomes if outcome.finish is not None]
    first = min((outcome.arrival for outcome in outcomes), default=0.0)
    last = max((outcome.finish for outcome in finished if outcome.finish is not None), default=first)
    lost = sum(outcome.lost for outcome in outcomes)
    held = totals.used_area / scale
    return {
        "unit": simulation.gauges.unit,
        "jobs": len(outcomes),
        "started": sum(outcome.start is not None for outcome in outcomes),
        "finished": len(finished),
        "pods": sum(outcome.pods for outcome in outcomes),
        "wait": spread(waits(outcomes)),
        "wait_by_size": by_size(outcomes),
        "slowdown": spread(slowdowns(finished)),
        "makespan": last - first,
        "utilisation": ratio(totals.used_area, totals.capacity_area),
        "held": held,
        "useful": sum(outcome.worked for outcome in outcomes) - lost,
        "lost": lost,
        "preempted": sum(outcome.preempted for outcome in outcomes),
        "failed": sum(outcome.failed for outcome in outcomes),
        "gave_up": sum(outcome.gave_up for outcome in outcomes),
        "deadlocks": totals.deadlocks,
        "locked": totals.locked,
        "fragmentation": fragmentation(simulation),
        "fairness": jain([queue["served"] for queue in queues(outcomes, simulation.now).values()]),
        "queues": queues(outcomes, simulation.now),
        "cycles": totals.cycles,
        "events": totals.events,
        "bound": totals.bound,
        "evicted": totals.evicted,
    }


def waits(outcomes: Iterable[Outcome]) -> list[float]:
    """Seconds from a job's arrival to its first start, of those that started."""
    return [outcome.start - outcome.arrival for outcome in outcomes if outcome.start is not None]


def slowdowns(finished: Iterable[Outcome]) -> list[float]:
    """How many times longer than its work a job was there."""
    return [
        max(1.0, (outcome.finish - outcome.arrival) / max(outcome.duration, SHORTEST))
        for outcome in finished
        if outcome.finish is not None
    ]


def spread(values: Sequence[float]) -> dict[str, float | int | None]:
    """Mean, median and so on; None for each where there are no values."""
    if not values:
        return {"count": 0, "mean": None, "median": None, "p95": None, "max": None}
    array = np.array(values, np.float64)
    return {
        "count": len(values),
        "mean": float(array.mean()),
        "median": float(np.percentile(array, 50)),
        "p95": float(np.percentile(array, 95)),
        "max": float(array.max()),
    }


def by_size(outcomes: Iterable[Outcome]) -> dict[str, dict[str, float | int | None]]:
    """Waiting times by size; sizes without jobs are left out."""
    found: dict[str, list[Outcome]] = {}
    for outcome in outcomes:
        found.setdefault(next(name for name, most in SIZES if outcome.size <= most), []).append(outcome)
    return {name: {**spread(waits(found[name])), "jobs": len(found[name])} for name, _ in SIZES if name in found}


def queues(outcomes: Iterable[Outcome], now: float) -> dict[str, dict[str, Any]]:
    """By queue: jobs, mean wait, what it held (unit-seconds), and `served`: of what its jobs asked for while they were there, the
    share that they held."""
    found: dict[str, dict[str, Any]] = {}
    by_queue: dict[str, list[Outcome]] = {}
    for outcome in outcomes:
        by_queue.setdefault(outcome.queue, []).append(outcome)
    for name, members in sorted(by_queue.items()):
        asked = sum(o.size * ((now if o.finish is None else o.finish) - o.arrival) for o in members)
        held = sum(o.held for o in members)
        found[name] = {
            "jobs": len(members),
            "wait": spread(waits(members)),
            "asked": asked,
            "held": held,
            "served": min(1.0, held / asked) if asked > 0 else None,
            "preempted": sum(o.preempted for o in members),
        }
    return found


def jain(values: Iterable[float | None]) -> float | None:
    """Jain's index of fairness: 1 when all are equal, 1/n when one has everything; None of nothing."""
    array = np.array([value for value in values if value is not None], np.float64)
    if not len(array) or not array.any():
        return None
    return float(array.sum() ** 2 / (len(array) * (array**2).sum()))


def fragmentation(simulation: Simulation) -> float | None:
    """Of what was free, the share that a pod drawn at random could not use: over the samples, by what was free in each."""
    free = sum(max(0.0, sample.capacity - sample.used) for sample in simulation.course.samples)
    stranded = sum(sample.stranded for sample in simulation.course.samples)
    return stranded / free if free > 0 else None


def ratio(part: float, whole: float) -> float | None:
    """None where there is no whole."""
    return part / whole if whole > 0 else None


def result(name: str, simulation: Simulation, chosen: Callable[[Outcome], bool] = lambda outcome: True) -> dict[str, Any]:
    """A configuration's whole result, JSON-ready: `summary`, the `course` of the load, and the `jobs`."""
    return {
        "name": name,
        "over": simulation.is_over,
        "now": simulation.now,
        "summary": summary(simulation),
        "course": [asdict(sample) for sample in simulation.course.samples],
        "jobs": [outcome.as_dict() for outcome in simulation.outcomes() if chosen(outcome)],
    }
