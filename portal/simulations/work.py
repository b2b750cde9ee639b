"""Works on simulations that people started: in a Celery worker, or in a thread of this process where there are none.

What it needs and what comes of it are in its row, so that any process can work on it; a checkpoint is on the disk of the process
that does, and without one the work begins anew.
"""

from __future__ import annotations

import base64
import gzip
import shutil
import threading
import time
from datetime import timedelta
from pathlib import Path
from typing import Any

import orjson
import structlog
from django.conf import settings
from django.db import connections
from django.db.models import Q
from django.utils import timezone

from cluster import runtime
from cluster.said import packed as as_kept
from cluster.said import said
from portal.models import SchedulerConfiguration, Simulation, SimulationKind, State
from portal.simulations import outputs, present, sources
from portal.simulations.history import run_times
from portal.simulations.runner import Progress, Runner, Stopped, write
from scheduler import conf as configuration
from scheduler.simulation import experiment
from scheduler.simulation.engine import GoesRound
from scheduler.simulation.experiment import Setting
from scheduler.simulation.options import Options
from scheduler.simulation.workload import Workload, WorkloadError

log = structlog.get_logger(__name__)
LOST = timedelta(seconds=60)
"""A running simulation of which nothing was heard for so long has nobody who works on it."""
BEAT = 1.0
MOST_UPLOADED = 64 << 20
"""Bytes of an upload when it is unpacked: a server reads it, for whoever sends it."""
_turn = threading.Lock()
"""One simulation at a time in a process: the others wait."""


def folder(simulation: Simulation) -> Path:
    """Where a simulation's checkpoint and input are while it runs."""
    return Path(settings.DATA_DIR) / "simulations" / str(simulation.pk)


def start(simulation: Simulation) -> None:
    """Have it worked on."""
    if settings.BASALT_CONTROLLERS == "workers":
        from portal.celery import simulate

        simulate.delay(simulation.pk)
    else:
        threading.Thread(target=_in_thread, args=(simulation.pk,), name=f"simulation-{simulation.pk}", daemon=True).start()


def take_up_lost() -> int:
    """Start those again that nobody works on any more; how many."""
    long_ago = timezone.now() - LOST
    lost = Simulation.objects.filter(Q(state=State.RUNNING) | Q(state=State.WAITING), Q(seen_at__lt=long_ago) | Q(seen_at=None))
    count = 0
    for simulation in lost:
        # whoever is first to move the sign of life has it; it waits again, so that of several who come to it one begins
        mine = Simulation.objects.filter(pk=simulation.pk, state=simulation.state, seen_at=simulation.seen_at)
        if mine.update(state=State.WAITING, seen_at=timezone.now()):
            start(simulation)
            count += 1
    return count


def _in_thread(pk: int) -> None:
    try:
        with _turn:
            play(pk, pause=0.5)
    except Exception:
        log.exception("simulation failed", simulation=pk)
    finally:
        connections.close_all()


def play(pk: int, *, pause: float = 0.0) -> None:
    """Work on a simulation until it has a result, fails or is cancelled. `pause`: rest so long for each second of work."""
    taken = Simulation.objects.filter(pk=pk, state=State.WAITING, cancel=False)
    if not taken.update(state=State.RUNNING, started_at=runtime.now(), seen_at=timezone.now()):
        Simulation.objects.filter(pk=pk, state=State.WAITING, cancel=True).update(state=State.CANCELLED, ended_at=runtime.now())
        return
    simulation = Simulation.objects.get(pk=pk)
    watch = _Watch(simulation, pause)
    try:
        result = _efficiency(simulation, watch) if simulation.kind == SimulationKind.EFFICIENCY else _replay(simulation, watch)
    except Stopped:
        _end(simulation, State.CANCELLED)
        return
    except (WorkloadError, GoesRound) as error:
        _end(simulation, State.FAILED, error=str(error))
        return
    except Exception as error:
        _end(simulation, State.FAILED, error=f"{type(error).__name__}: {error}")
        raise
    _end(simulation, State.DONE, result=result, share=1.0)


def _end(simulation: Simulation, state: State, **changes: Any) -> None:
    Simulation.objects.filter(pk=simulation.pk).update(state=state, ended_at=runtime.now(), **changes)


class _Watch:
    """Tells how far it is, hears of a cancellation, and rests."""

    def __init__(self, simulation: Simulation, pause: float) -> None:
        self._simulation, self._pause = simulation, pause
        self._told = self._rested = time.monotonic()
        self._cancelled = False

    def stop(self) -> bool:
        """Asked between two steps."""
        now = time.monotonic()
        if self._pause and now - self._rested >= 0.02:
            time.sleep((now - self._rested) * self._pause)
            self._rested = time.monotonic()
        if now - self._told >= BEAT:
            self._beat()
        return self._cancelled

    def tell(self, progress: Progress) -> None:
        """How far a replay is."""
        self._note = {
            "name": progress.name, "number": progress.number, "of": progress.of, "arrived": progress.arrived,
            "finished": progress.finished, "jobs": progress.jobs, "simulated": progress.simulated,
        }  # fmt: skip
        self._share = progress.share

    _note: dict[str, Any] = {}  # noqa: RUF012 - replaced, never changed
    _share = 0.0

    def count(self, done: int, of: int) -> bool:
        """How far an experiment is; whether it may go on."""
        self._note, self._share = {"done": done, "of": of}, done / of
        return not self.stop()

    def _beat(self) -> None:
        self._told = time.monotonic()
        rows = Simulation.objects.filter(pk=self._simulation.pk)
        rows.update(seen_at=timezone.now(), share=self._share, progress=self._note)
        self._cancelled = not rows.filter(cancel=False).exists()


def _replay(simulation: Simulation, watch: _Watch) -> dict[str, Any]:
    params, here = simulation.params, folder(simulation)
    workload = read(params, here)
    options = Options(seed=int(params.get("seed", 0)), mtbf=float(params.get("mtbf", 0)))
    confs = [(str(name), str(text)) for name, text in params["confs"]]
    runner = Runner(workload, confs, options, here, watch.tell, watch.stop)
    results = runner.run()
    clear(here)
    table = packed(outputs.as_csv(results).encode())
    return {
        "notes": workload.notes,
        "said": [as_kept(note) for note in workload.notes],
        "results": [{**result, "jobs": []} for result in results],
        "csv": table,
    }


def packed(content: bytes) -> str:
    """Bytes as a text for a row."""
    return base64.b64encode(gzip.compress(content, mtime=0)).decode()


def unpacked(text: str) -> bytes:
    """What was packed."""
    return gzip.decompress(base64.b64decode(text))


def read(params: dict[str, Any], here: Path) -> Workload:
    """The workload that parameters name. Raises WorkloadError."""
    names = ("nodes", "part", "limit", "load", "seed", "run_time", "saves", "case")
    wanted = sources.Wanted(**{name: params[name] for name in names if name in params})
    if params["source"] == "now":
        kept = orjson.loads(unpacked(params["content"]))
        found = present.workload(kept["objects"], kept["now"], run_times(), wanted.seed)
        if not found.jobs:
            raise WorkloadError([said("nothing runs or waits in the cluster")])
        found.notes.append(
            said("a job that does not state its run time runs as long as ended jobs like it did, drawn by the seed")
        )
        found.digest = f"now/{here.name}"
        return found
    if params["source"] == "trace":
        return sources.read([trace_path(params["file"])], wanted, name=params["file"])
    path = here / f"input{_suffix(params['file'])}"
    write(path, unpacked(params["content"]))
    return sources.read([path], wanted, name=params["file"], most=MOST_UPLOADED)


def _suffix(name: str) -> str:
    """By what a file's name tells its kind; nothing else of the name is used."""
    return next((suffix for suffix in (".yaml", ".yml", ".json") if name.lower().endswith(suffix)), ".csv")


def trace_path(name: str) -> Path:
    """A trace of the folder that administrators gave. Raises WorkloadError."""
    if name not in traces():
        raise WorkloadError([said("there is no trace %(name)r here", name=name)])
    return Path(settings.BASALT_TRACES) / name


def traces() -> list[str]:
    """Traces in the folder that administrators gave, by their paths below it."""
    if not settings.BASALT_TRACES:
        return []
    root = Path(settings.BASALT_TRACES)
    found = (path for path in sorted(root.rglob("*")) if path.name.endswith((".csv", ".csv.gz", ".yaml", ".yml", ".json")))
    return [str(path.relative_to(root)) for path in found if path.is_file()][:500]


def _efficiency(simulation: Simulation, watch: _Watch) -> dict[str, Any]:
    given = simulation.params
    names = ("nodes", "gpus", "work", "patience", "repetitions", "seed")
    setting = Setting(jobs=tuple(given["jobs"]), **{name: given[name] for name in names})
    rows = experiment.run(setting, watch.count)
    if len(rows) < len(setting.jobs) * len(experiment.WAYS):
        raise Stopped
    result = experiment.as_dict(rows, setting)
    for row in result["rows"]:
        row.pop("trials")
    return result


def cancelled(pk: int) -> None:
    """Settle a cancelled simulation on which nobody works yet."""
    Simulation.objects.filter(pk=pk, state=State.WAITING).update(state=State.CANCELLED, ended_at=runtime.now())


def conf_in_force() -> str:
    """The text of the configuration that the scheduler told last; Volcano's default before it did."""
    return SchedulerConfiguration.objects.values_list("text", flat=True).first() or configuration.DEFAULT


def clear(here: Path) -> None:
    """Delete a folder of a simulation."""
    shutil.rmtree(here, ignore_errors=True)


def forget(simulation: Simulation) -> None:
    """Delete a simulation that has ended, with its files."""
    clear(folder(simulation))
    simulation.delete()
