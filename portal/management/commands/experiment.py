"""`manage.py experiment efficiency`: what gang scheduling is worth, on jobs that need all their pods at once."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

import orjson
from django.core.management import BaseCommand, CommandError

from portal.management.commands.simulate import _seconds, _stopping, _whole
from portal.simulations import efficiency
from portal.simulations.runner import write
from scheduler.simulation import experiment
from scheduler.simulation.experiment import Setting

_BAD, _STOPPED = 2, 130


class Command(BaseCommand):
    help = (
        "Run an experiment in simulated time, without a cluster or a database. efficiency: jobs of 2 ps + 4 workers that make "
        "progress only while all six run, under Basalt and under a scheduler of single pods: the same core without the gang "
        "plugin, pods in the order of their arrival. A pod that waits for its peers holds its node until it gives up."
    )
    requires_system_checks = ()

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        add, times = parser.add_argument, {"metavar": "T", "type": _seconds}
        add("name", choices=["efficiency"], help="which experiment")
        add("--jobs", metavar="N", type=_whole, nargs="+", default=[1, 2, 5], help="how many jobs at once (1 2 5)")
        add("--nodes", metavar="N", type=_whole, default=2, help="nodes (2)")
        add("--gpus", metavar="N", type=_whole, default=4, help="GPUs of a node (4)")
        add("--work", default=600.0, help="of a job, with all its pods running (10m)", **times)
        add("--patience", default=600.0, help="how long a pod waits for its peers, 0 for ever (10m)", **times)
        add("--limit", default=86_400.0, help="when a run ends at the latest (24h)", **times)
        add("--repetitions", metavar="N", type=_whole, default=10, help="runs of each row, with seeds one after the other (10)")
        add("--seed", metavar="N", type=_whole, default=0, help="the first seed (0)")
        add("--svg", metavar="FILE", type=Path, help="write the picture there")
        add("-o", "--output", choices=["table", "json"], default="table", help="what to print (table)")

    def handle(self, **given: Any) -> None:
        for name, least, most in (("nodes", 1, 1000), ("gpus", 1, 64), ("repetitions", 1, 1000)):
            if not least <= given[name] <= most:
                raise CommandError(f"--{name} is from {least} to {most}, not {given[name]}", returncode=_BAD)
        if any(not 1 <= jobs <= 1000 for jobs in given["jobs"]):
            raise CommandError("--jobs are numbers from 1 to 1000", returncode=_BAD)
        if not given["work"] > 0:
            raise CommandError("--work is a time above 0", returncode=_BAD)
        names = ("nodes", "gpus", "work", "patience", "limit", "repetitions", "seed")
        setting = Setting(jobs=tuple(given["jobs"]), **{name: given[name] for name in names})
        shows = sys.stderr.isatty()
        with _stopping() as stop:
            rows = experiment.run(setting, lambda done, of: _tell(done, of, shows) and not stop())
            if shows:
                sys.stderr.write("\r\x1b[K")
            if stop():
                raise CommandError("Stopped; nothing was written.", returncode=_STOPPED)
        result = experiment.as_dict(rows, setting)
        if given["svg"]:
            write(given["svg"], efficiency.drawing(result).encode())
        if given["output"] == "json":
            self.stdout.write(orjson.dumps(result, option=orjson.OPT_INDENT_2).decode())
            return
        for line in efficiency.lines(result["rows"]):
            self.stdout.write(line)


def _tell(done: int, of: int, shows: bool) -> bool:
    if shows:
        sys.stderr.write(f"\r\x1b[K{'█' * (30 * done // of)}{'·' * (30 - 30 * done // of)} {done} of {of} runs")
        sys.stderr.flush()
    return True
