"""The scheduler's speed and memory: every scenario in a process of its own, one table.

Run it as `python -m bench.scheduler [NAME…] [--runs N] [--profile FILE]`; the names are those of the table. Wall time is
what a user feels; on a machine that does other things too, compare processor time. Memory is the most that the process
ever held, the Kubernetes objects included.
"""

from __future__ import annotations

import argparse
import cProfile
import json
import resource
import subprocess
import sys
from dataclasses import asdict
from pathlib import Path

from bench.scenarios import SCENARIOS, Measure, Scenario
from bench.table import show
from bench.worlds import NODE

GIB = 2.0**30


def measured(name: str, runs: int) -> Measure:
    """The quickest of some runs by processor time, each in a fresh process."""
    found = []
    for _ in range(runs):
        command = [sys.executable, "-m", "bench.scheduler", name, "--json"]
        done = subprocess.run(command, check=True, capture_output=True, text=True)
        found.append(Measure(**json.loads(done.stdout)))
    return min(found, key=lambda each: each.busy)


def cells(scenario: Scenario, found: Measure) -> list[str]:
    """A row of the table."""
    rate = f"{found.pods / found.busy:,.0f}" if found.pods else ""
    memory = f"{found.memory / GIB:.2f}"
    verdict = "yes" if scenario.reached(found) else "NO"
    return [scenario.aim, f"{found.wall * 1000:,.0f}", f"{found.busy * 1000:,.0f}", rate, memory, verdict, found.said]


HEADS = ["aim", "wall, ms", "processor, ms", "pods/s", "GiB", "reached", "decided"]


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(SCENARIOS)} (all)")
    parser.add_argument("--runs", type=int, default=3, help="how often to measure; the quickest is shown")
    parser.add_argument("--profile", type=Path, help="write a profile of the first named one to this file instead")
    parser.add_argument("--json", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if unknown := set(given.names) - SCENARIOS.keys():
        parser.error(f"no scenario named {', '.join(sorted(unknown))}; there are {', '.join(SCENARIOS)}")
    if given.runs < 1:
        parser.error("--runs is a whole number from 1 on")
    names = given.names or list(SCENARIOS)
    if given.profile:
        profile = cProfile.Profile()
        SCENARIOS[names[0]].play(profile)
        profile.dump_stats(given.profile)
    elif given.json:
        found = SCENARIOS[names[0]].play(None)
        found.memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
        print(json.dumps(asdict(found)))
    else:
        rows = [(SCENARIOS[name].title, cells(SCENARIOS[name], measured(name, given.runs))) for name in names]
        show(f"scheduler: nodes of {NODE['cpu']} CPUs, {NODE['memory']} and 8 GPUs; one core", rows, HEADS)


if __name__ == "__main__":
    main()
