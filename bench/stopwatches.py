"""What it costs to know each plugin's time: the same cycles with stop watches and without, taking turns in one process.

Run it as `python -m bench.stopwatches [--runs N]`. Each run is over a model of its own; the quickest of each kind is compared, by
processor time.
"""

from __future__ import annotations

import argparse
import gc
from collections.abc import Callable
from typing import Any
from unittest.mock import patch

from bench.scenarios import SCENARIOS
from bench.table import show
from scheduler.framework.stopwatches import Stopwatches

NAMES = ("small", "singles", "reclaim", "preempt", "idle-1")
AIM = 0.02


def without(self: Stopwatches, plugin: str, item: Any) -> Any:
    """A function as it was registered."""
    return item


def compared(name: str, runs: int) -> tuple[float, float]:
    """Processor seconds of a scenario, without watches and with."""
    found: dict[bool, list[float]] = {False: [], True: []}
    for turn in range(2 * runs):
        is_on = bool(turn % 2)
        gc.unfreeze()
        gc.collect()
        play: Callable[[], Any] = lambda: SCENARIOS[name].play(None)  # noqa: E731
        if is_on:
            found[is_on].append(play().busy)
        else:
            with patch.object(Stopwatches, "watched", without):
                found[is_on].append(play().busy)
    return min(found[False]), min(found[True])


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("names", nargs="*", default=NAMES, metavar="NAME", help=f"of {', '.join(SCENARIOS)} ({', '.join(NAMES)})")
    parser.add_argument("--runs", type=int, default=3, help="how often to measure each way; the quickest counts")
    given = parser.parse_args()
    rows = []
    for name in given.names:
        plain, watched = compared(name, given.runs)
        more = watched / plain - 1
        said = [f"{plain * 1000:,.1f}", f"{watched * 1000:,.1f}", f"{more:+.1%}", "yes" if more < AIM else "NO"]
        rows.append((SCENARIOS[name].title, said))
    show("watches on plugins: processor time of a cycle", rows, ["without, ms", "with, ms", "more", "less than 2 %"])


if __name__ == "__main__":
    main()
