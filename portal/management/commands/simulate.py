"""`manage.py simulate`: play a trace, a snapshot or a scenario in simulated time, under several configurations side by side."""

from __future__ import annotations

import argparse
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management import BaseCommand, CommandError

from cluster.durations import parse_duration
from portal.simulations import outputs, picture, sources
from portal.simulations.runner import Progress, Runner, Stopped, alone, write
from scheduler import conf as configuration
from scheduler.conf import ConfError
from scheduler.simulation.engine import GoesRound
from scheduler.simulation.options import Options
from scheduler.simulation.workload import WorkloadError

_BAD_FILE, _STOPPED = 2, 130


class Command(BaseCommand):
    help = (
        "Play a workload through the real scheduler in simulated time: a trace (CSV, also gzipped), a snapshot of Kubernetes "
        "objects, or a scenario file. No cluster and no database are needed. Ctrl-C stops it; the same command goes on."
    )
    requires_system_checks = ()

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        add, times = parser.add_argument, {"metavar": "T", "type": _seconds}
        add("trace", nargs="+", metavar="TRACE", type=Path, help="CSV of openb, Philly, Pollux, Tiresias; objects in YAML")
        add("--conf", action="append", metavar="[NAME=]FILE", help="a configuration; several are compared (the one in deploy/)")
        add("--nodes", metavar="SIZE|FILE", default="", help="nodes x GPUs, such as 32x8 or 32x8:A100, or a list of nodes")
        add("--part", default="", help="a virtual cluster of Philly, a set or set/workload of Pollux")
        add("--case", default="", help="of a scenario file (the first)")
        add("--limit", metavar="N", type=_whole, default=0, help="only the first N jobs")
        add("--load", metavar="SHARE", type=_share, default=0.0, help="stretch run times: 0.9 asks 90 %% of the cluster")
        add("--run-time", default=3600.0, help="of jobs that do not say theirs (1h)", **times)
        add("--saves", default=0.0, help="jobs keep their work every T (never)", **times)
        add("--period", default=1.0, help="events are joined in so long a time (1s)", **times)
        add("--grace", default=0.0, help="from an eviction to a pod's end (0s)", **times)
        add("--mtbf", default=0.0, help="a node fails after so long on average (never)", **times)
        add("--repair", default=3600.0, help="and is away for so long on average (1h)", **times)
        add("--seed", metavar="N", type=_whole, default=0, help="of chance (0)")
        add("--out", metavar="DIR", type=Path, help="write result.json, jobs.csv, picture.svg there; keeps checkpoints")
        add("-o", "--output", choices=["table", "json", "csv"], default="table", help="what to print (table)")
        add("--quiet", action="store_true", help="no progress")

    def handle(self, **given: Any) -> None:
        try:
            options = Options(
                seed=given["seed"], period=given["period"], grace=given["grace"], mtbf=given["mtbf"], repair=given["repair"]
            )
        except ValueError as error:
            raise CommandError(str(error), returncode=_BAD_FILE) from None
        confs = self._confs(given["conf"])
        wanted = sources.Wanted(
            **{name: given[name] for name in ("nodes", "part", "limit", "load", "seed", "run_time", "saves", "case")}
        )
        try:
            with alone(given["out"]):
                self._play(confs, wanted, options, given)
        except (WorkloadError, GoesRound) as error:
            raise CommandError(str(error), returncode=_BAD_FILE) from None
        except OSError as error:
            raise CommandError(f"{error.filename or given['out'] or 'standard output'}: {error.strerror}") from None

    def _play(self, confs: list[tuple[str, str]], wanted: sources.Wanted, options: Options, given: dict[str, Any]) -> None:
        shows = not given["quiet"] and sys.stderr.isatty()
        with _stopping() as stop:
            try:
                workload = sources.read(given["trace"], wanted)
                runner = Runner(workload, confs, options, given["out"], _bar if shows else lambda progress: None, stop)
                results = runner.run()
            except Stopped:
                kept = (
                    f"the same command goes on from {given['out']}" if given["out"] else "with --out DIR it could be gone on with"
                )
                raise CommandError(f"Stopped; {kept}.", returncode=_STOPPED) from None
            finally:
                if shows:
                    sys.stderr.write("\r\x1b[K")
        self._tell(workload.name, workload.notes, results, given, runner)

    def _confs(self, given: list[str] | None) -> list[tuple[str, str]]:
        found, wrong = list[tuple[str, str]](), list[str]()
        for text in given or [str(Path(settings.BASE_DIR) / "deploy" / "volcano-scheduler.conf")]:
            name, _, file = text.rpartition("=")
            path = Path(file)
            try:
                content = path.read_text("utf-8")
                configuration.load(content)
                found.append((name or path.stem, content))
            except (OSError, UnicodeError) as error:
                wrong.append(f"{path}: {getattr(error, 'strerror', None) or error}")
            except ConfError as error:
                wrong += [f"{path}, {fault}" for fault in error.faults]
        names = [name for name, _ in found]
        if twice := sorted({name for name in names if names.count(name) > 1}):
            wrong.append(f"--conf: the name {twice[0]!r} is given twice; write NAME=FILE")
        if wrong:
            raise CommandError("\n".join(wrong), returncode=_BAD_FILE)
        return found

    def _tell(self, name: str, notes: list[str], results: list[dict[str, Any]], given: dict[str, Any], runner: Runner) -> None:
        if given["out"]:
            write(given["out"] / "jobs.csv", outputs.as_csv(results).encode())
            write(given["out"] / "picture.svg", picture.comparison(name, results).encode())
            write(given["out"] / "result.json", outputs.as_json(name, results, notes))
            runner.forget()
        if given["output"] == "json":
            self.stdout.write(outputs.as_json(name, results, notes).decode())
        elif given["output"] == "csv":
            self.stdout.write(outputs.as_csv(results), ending="")
        else:
            for note in notes:
                self.stdout.write(f"# {note}")
            for line in outputs.lines(name, results):
                self.stdout.write(line)


@contextmanager
def _stopping() -> Iterator[Any]:
    """Ctrl-C is noted, and heeded between two steps; the second one ends the process as usual."""
    asked: list[int] = []

    def note(number: int, frame: Any) -> None:
        asked.append(number)
        signal.signal(number, signal.default_int_handler if number == signal.SIGINT else signal.SIG_DFL)

    before = {number: signal.signal(number, note) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield lambda: bool(asked)
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _bar(progress: Progress) -> None:
    done = round(30 * progress.share)
    where = f"{progress.name} ({progress.number}/{progress.of})" if progress.of > 1 else progress.name
    text = (
        f"{where} {'█' * done}{'·' * (30 - done)} {100 * progress.share:3.0f} %  {progress.finished:,} of {progress.jobs:,} jobs"
    )
    sys.stderr.write(f"\r\x1b[K{text}, {outputs.duration(progress.simulated)} simulated")
    sys.stderr.flush()


def _whole(text: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) <= 9):
        raise argparse.ArgumentTypeError(f"a whole number from 0 on, not {text}")
    return int(text)


def _share(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0 < value <= 10:
        raise argparse.ArgumentTypeError(f"a share is a number above 0 and up to 10, such as 0.9, not {text}")
    return value


def _seconds(text: str) -> float:
    """`90`, `90s`, `1h30m`."""
    try:
        value = float(text) if text.replace(".", "", 1).isdigit() and text.isascii() else parse_duration(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None
    if not 0 <= value < 1e10:
        raise argparse.ArgumentTypeError(f"a time is from 0 on, not {text}")
    return value
