"""Runs a workload under several configurations, one after the other: with progress, checkpoints, and an orderly stop."""

from __future__ import annotations

import fcntl
import hashlib
import os
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from math import isfinite
from pathlib import Path
from typing import Any

import orjson

from cluster.said import said
from scheduler.simulation import measures
from scheduler.simulation.engine import Simulation
from scheduler.simulation.options import Options
from scheduler.simulation.workload import Workload, WorkloadError

CHECKPOINT = "checkpoint.json"
EVERY = 20.0
"""Wall seconds between two checkpoints."""
BREATH = 0.2
"""Wall seconds between two reports of progress."""


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a run is: configuration `number` of `of`, its jobs, simulated seconds, and the share of everything, 0 to 1."""

    name: str
    number: int
    of: int
    arrived: int
    finished: int
    jobs: int
    simulated: float
    share: float


class Stopped(Exception):
    """The run was asked to stop, and left a checkpoint."""


@dataclass(slots=True)
class Runner:
    """`folder` keeps checkpoints; without one a run that is stopped is lost. `stop` is asked between two steps."""

    workload: Workload
    confs: Sequence[tuple[str, str]]
    options: Options
    folder: Path | None = None
    tell: Callable[[Progress], None] = lambda progress: None
    stop: Callable[[], bool] = lambda: False
    every: float = EVERY
    resumed: bool = field(default=False, init=False)

    @property
    def digest(self) -> str:
        """Of everything that decides the course."""
        limits = {name: value if isfinite(value) else None for name, value in asdict(self.options).items()}
        told = [self.workload.digest, list(self.confs), limits, VERSION]
        return hashlib.sha256(orjson.dumps(told, option=orjson.OPT_SORT_KEYS)).hexdigest()

    def run(self) -> list[dict[str, Any]]:
        """The results by configuration. Raises Stopped, WorkloadError for a checkpoint of something else, GoesRound."""
        kept = self._kept()
        results: list[dict[str, Any]] = list(kept.get("results") or ())
        state = kept.get("state")
        self.resumed = bool(kept)
        for number in range(len(results), len(self.confs)):
            name, conf = self.confs[number]
            simulation = Simulation(self.workload, conf, self.options, state=state)
            state = None
            self._play(simulation, name, number, results)
            results.append(measures.result(name, simulation))
            self._keep(results, None)
        return results

    def forget(self) -> None:
        """The result is safe elsewhere: no checkpoint is needed."""
        if self.folder is not None:
            (self.folder / CHECKPOINT).unlink(missing_ok=True)

    def _play(self, simulation: Simulation, name: str, number: int, results: list[dict[str, Any]]) -> None:
        saved = told = time.monotonic()
        spent = 0.0
        while simulation.step():
            now = time.monotonic()
            if self.stop():
                self._keep(results, simulation)
                raise Stopped
            if now - told >= BREATH:
                told = now
                self.tell(self._progress(simulation, name, number))
            if self.folder is not None and now - saved >= max(self.every, 20 * spent):
                self._keep(results, simulation)
                saved = time.monotonic()
                spent = saved - now
        self.tell(self._progress(simulation, name, number))

    def _progress(self, simulation: Simulation, name: str, number: int) -> Progress:
        jobs, arrived, finished = len(self.workload.jobs), simulation.arrived, len(simulation.jobs.finished)
        share = (number + (arrived + finished) / (2 * max(jobs, 1))) / len(self.confs)
        return Progress(name, number + 1, len(self.confs), arrived, finished, jobs, simulation.now - self.workload.begin, share)

    def _kept(self) -> Mapping[str, Any]:
        path = self.folder / CHECKPOINT if self.folder is not None else None
        if path is None or not path.exists():
            return {}
        try:
            kept = orjson.loads(path.read_bytes())
            digest = kept["digest"]
        except (orjson.JSONDecodeError, KeyError, TypeError):
            raise WorkloadError([said("%(path)s: it is no checkpoint; delete it to begin anew", path=path)]) from None
        if digest != self.digest:
            raise WorkloadError(
                [said("%(path)s: it is of another simulation; delete it, or name another folder, to begin anew", path=path)]
            )
        found: Mapping[str, Any] = kept
        return found

    def _keep(self, results: list[dict[str, Any]], simulation: Simulation | None) -> None:
        if self.folder is not None:
            state = simulation.state() if simulation is not None else None
            write(self.folder / CHECKPOINT, orjson.dumps({"digest": self.digest, "results": results, "state": state}))


VERSION = 1
"""Of checkpoints: one of another version is not gone on with."""


@contextmanager
def alone(folder: Path | None) -> Iterator[None]:
    """Make a folder and hold it, so that no other process mixes its files in. Raises WorkloadError when one is at work there.

    The folder itself is locked: nothing is left behind, whatever becomes of the process.
    """
    if folder is None:
        yield
        return
    folder.mkdir(parents=True, exist_ok=True)
    handle = os.open(folder, os.O_RDONLY)
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise WorkloadError(
                [said("%(folder)s: another simulation is at work there; wait for it, or name another folder", folder=folder)]
            ) from None
        yield
    finally:
        os.close(handle)


def write(path: Path, content: bytes) -> None:
    """Write a file whole or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.chmod(name, 0o644)
        os.replace(name, path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise
