"""Tables of measures, and the timing of scheduling cycles over a snapshot."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from scheduler.snapshot import Offline, Snapshot

PACKING = """\
actions: "enqueue, allocate, backfill"
tiers:
- plugins:
  - name: priority
  - name: gang
  - name: conformance
- plugins:
  - name: overcommit
  - name: drf
  - name: predicates
  - name: proportion
  - name: nodeorder
  - name: binpack
    arguments:
      binpack.weight: 5
      binpack.resources: "{resources}"
"""
"""The default configuration and binpack over it; `resources` are those beside cpu and memory."""


@dataclass(slots=True)
class Run:
    """Cycles until nothing more is placed. `build` is reading the objects into the model; `busy` is processor time,
    which is what to compare on a machine that does other things too. `last` is the cycle that placed nothing."""

    build: float = 0.0
    seconds: float = 0.0
    busy: float = 0.0
    last: float = 0.0
    cycles: int = 0
    placed: int = 0
    phases: dict[str, float] = field(default_factory=dict)


def place_all(snapshot: Snapshot, profile: Callable[[Offline], None] | None = None) -> Run:
    """Run cycles over a snapshot until one places nothing. What the binds change is taken in outside of the timing."""
    gc.collect()
    begin = time.perf_counter()
    offline = Offline(snapshot)
    run = Run(build=time.perf_counter() - begin)
    if profile is not None:
        profile(offline)
        return run
    while True:
        busy = time.process_time()
        done = offline.decide()
        busy = time.process_time() - busy
        if not done.binds:
            run.last = busy
            return run
        offline.take_in(done)
        run.cycles += 1
        run.busy += busy
        run.seconds += done.record.milliseconds / 1000
        for phase, milliseconds in done.record.actions.items():
            run.phases[phase] = run.phases.get(phase, 0.0) + milliseconds / 1000
        run.placed += len(done.binds)


def best_of(runs: int, snapshot: Snapshot) -> Run:
    """The quickest of some runs by processor time: what another process takes away is no property of the scheduler."""
    return min((place_all(snapshot) for _ in range(runs)), key=lambda run: run.busy)


def show(title: str, rows: Sequence[tuple[str, Sequence[str]]], heads: Sequence[str]) -> None:
    """Print a table: a head, and a row a measure with one cell a column."""
    left = max(len(name) for name, _ in rows)
    widths = [max(len(head), *(len(cells[i]) for _, cells in rows)) for i, head in enumerate(heads)]
    print(title)
    print("  ".join([" " * left, *(head.rjust(width) for head, width in zip(heads, widths, strict=True))]))
    for name, cells in rows:
        print("  ".join([name.ljust(left), *(cell.rjust(width) for cell, width in zip(cells, widths, strict=True))]))


def rows_of(runs: Sequence[Run], pods: int) -> list[tuple[str, list[str]]]:
    """The common measures of some runs over the same pods."""
    phases = list(dict.fromkeys(phase for run in runs for phase in run.phases))
    rows = [
        ("pods placed", [f"{run.placed:,}" for run in runs]),
        ("pods not placed", [f"{pods - run.placed:,}" for run in runs]),
        ("cycles that placed", [str(run.cycles) for run in runs]),
        ("reading objects, s", [f"{run.build:.2f}" for run in runs]),
        ("scheduling, s", [f"{run.seconds:.2f}" for run in runs]),
    ]
    rows += [(f"  {phase}, s", [f"{run.phases.get(phase, 0.0):.2f}" for run in runs]) for phase in phases]
    rows.append(("pods/s", [_rate(run.placed, run.seconds) for run in runs]))
    rows.append(("processor time, s", [f"{run.busy:.2f}" for run in runs]))
    rows.append(("pods/s of processor time", [_rate(run.placed, run.busy) for run in runs]))
    rows.append(("a cycle after that, processor s", [f"{run.last:.2f}" for run in runs]))
    return rows


def _rate(pods: int, seconds: float) -> str:
    return f"{pods / seconds:,.0f}" if seconds else "–"
