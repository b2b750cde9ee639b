"""Every measurement, one after the other, each in a process of its own: `python -m bench [NAME…]`."""

from __future__ import annotations

import subprocess
import sys

MEASURES = (
    "scheduler", "sharing", "openb", "gangs", "start", "joblist", "queues", "whatif", "jobs", "gpus", "heatmap",
    "live", "pages", "submit", "kubernetes", "kubernetes_jobs", "kubernetes_large", "simulation", "stopwatches",
)  # fmt: skip


def main(names: list[str]) -> int:
    """Run the named measures, or all; the number of those that failed."""
    if unknown := set(names) - set(MEASURES):
        sys.stderr.write(f"no measure named {', '.join(sorted(unknown))}; there are {', '.join(MEASURES)}\n")
        return 2
    failed = 0
    for name in names or MEASURES:
        print(f"\n== {name}", flush=True)
        failed += subprocess.run([sys.executable, "-m", f"bench.{name}"], check=False).returncode != 0
    return failed


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
