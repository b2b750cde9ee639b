"""Replay traces in simulated time, calibrate start estimates on them, and run the efficiency experiment.

Run it as `python -m bench.simulation [--data DIR] [--calibrate N]`. Seconds are processor time. Philly's longest virtual
cluster is played on its own 32 nodes, and on so few that jobs wait.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from pathlib import Path

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "portal.settings")

import django

django.setup()

from bench.table import show  # noqa: E402
from portal.simulations import efficiency, sources  # noqa: E402
from portal.simulations.sources import Wanted  # noqa: E402
from scheduler.conf import DEFAULT  # noqa: E402
from scheduler.simulation import experiment  # noqa: E402
from scheduler.simulation.calibration import calibrate  # noqa: E402
from scheduler.simulation.engine import Simulation  # noqa: E402

DATA = Path(__file__).parents[2] / "shared" / "data" / "traces"
PHILLY = "philly/philly_jobs_by_vc.csv.gz"
REPLAYS: tuple[tuple[str, str, Wanted], ...] = (
    ("Philly 7f04ca, 32 nodes", PHILLY, Wanted(part="7f04ca")),
    ("Philly 7f04ca, 8 nodes", PHILLY, Wanted(part="7f04ca", nodes="8x8")),
    ("Tiresias, 16 nodes", "tiresias/60_job.csv", Wanted()),
    ("openb, 1,523 nodes", "openb/openb_pod_list_default.csv", Wanted()),
)
CALIBRATED: tuple[tuple[str, Wanted], ...] = (
    ("Philly 2869ce, 4 nodes", Wanted(part="2869ce", nodes="4x8")),
    ("Philly 103959, 3 nodes", Wanted(part="103959", nodes="3x8")),
    ("Philly ed69ec, 3 nodes", Wanted(part="ed69ec", nodes="3x8")),
)


def replays(data: Path) -> None:
    """How fast traces are played."""
    heads, cells = [], []
    for name, file, wanted in REPLAYS:
        simulation = Simulation(sources.read([data / file], wanted))
        begin = time.process_time()
        simulation.run()
        busy, totals = time.process_time() - begin, simulation.totals
        heads.append(name)
        days = (simulation.now - min(job.arrival for job in simulation.workload.jobs)) / 86_400
        cells.append([
            f"{len(simulation.workload.jobs):,}", f"{days:.0f}", f"{totals.cycles:,}", f"{busy:.1f}",
            f"{totals.events / busy:,.0f}", f"{totals.bound / busy:,.0f}",
        ])  # fmt: skip
    names = ("jobs", "simulated days", "cycles", "processor seconds", "events/s", "pods/s")
    show("Replay", [(name, [column[i] for column in cells]) for i, name in enumerate(names)], heads)


def calibrations(data: Path, most: int) -> None:
    """Of the starts in a replay with true run times, how many fell within what was foretold."""
    heads, cells = [], []
    for name, wanted in CALIBRATED:
        begin = time.process_time()
        found = calibrate(sources.read([data / PHILLY], wanted), DEFAULT, every=4, most=most, futures=12)
        heads.append(name)
        shares = [
            f"{100 * share:.0f} %" if share is not None else "–" for share in (found.p90, found.raw, found.p50, found.middle)
        ]
        cells.append([f"{len(found.foretold)}", *shares, f"{time.process_time() - begin:.0f}"])
    names = (
        "starts foretold",
        "within the P90 band",
        "the same before past misses are heeded",
        "by P50",
        "by P50 before",
        "processor seconds",
    )
    show("Start estimates", [(name, [column[i] for column in cells]) for i, name in enumerate(names)], heads)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--data", type=Path, default=DATA, help="folder with the traces")
    parser.add_argument("--calibrate", type=int, default=150, metavar="N", help="how many starts to foretell a trace (150)")
    given = parser.parse_args()
    if not given.data.is_dir():
        sys.exit(f"{given.data} is no folder: name the one with the traces by --data")
    replays(given.data)
    print()
    calibrations(given.data, given.calibrate)
    print()
    setting = experiment.Setting(repetitions=5)
    print("Efficiency: jobs of 2 ps + 4 workers on 2 nodes of 4 GPUs")
    for line in efficiency.lines(experiment.as_dict(experiment.run(setting), setting)["rows"]):
        print(line)


if __name__ == "__main__":
    main()
