"""Keeping logs within bounds: what will not change is compressed; the oldest pods' logs go, by age and by size."""

from __future__ import annotations

import contextlib
import gzip
import logging
import os
import shutil
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from cluster.logs.store import ENDED, LogStore

log = logging.getLogger(__name__)
EVERY = 60.0


@dataclass(frozen=True, slots=True)
class Bounds:
    """How long logs are kept after their pod's end, and how many bytes all of them may take."""

    seconds: float
    bytes: int


@dataclass(frozen=True, slots=True)
class Swept:
    """What a pass did."""

    compressed: int = 0
    removed: int = 0


def sweep(store: LogStore, bounds: Bounds, now: float) -> Swept:
    """One pass. Logs of pods that still print are compressed behind the file that is written, and never removed."""
    compressed = removed = 0
    ended: list[tuple[float, int, Path]] = []
    total = 0
    for pod in sorted(store.root.iterdir()) if store.root.is_dir() else ():
        if not pod.is_dir():
            continue
        mark = pod / ENDED
        over = mark.stat().st_mtime if mark.exists() else None
        if over is not None and now - over > bounds.seconds:
            shutil.rmtree(pod, ignore_errors=True)
            removed += 1
            continue
        compressed += sum(_compress(attempt, whole=over is not None) for attempt in pod.glob("*/*") if attempt.is_dir())
        size = sum(file.stat().st_size for file in pod.rglob("*.log*") if file.exists())
        total += size
        if over is not None:
            ended.append((over, size, pod))
    for _, size, pod in sorted(ended):
        if total <= bounds.bytes:
            break
        shutil.rmtree(pod, ignore_errors=True)
        total -= size
        removed += 1
    return Swept(compressed, removed)


def _compress(attempt: Path, *, whole: bool) -> int:
    """Compress an attempt's files, all but the last one while it is still written; how many."""
    files = sorted(attempt.glob("*.log"))
    done = 0
    for path in files if whole else files[:-1]:
        packed = path.with_name(f"{path.name}.gz")
        new = path.with_name(f"{path.name}.part")
        with contextlib.suppress(FileNotFoundError):  # the writer lets its oldest files go by itself
            raw = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
            with path.open("rb") as plain, open(raw, "wb") as file, gzip.GzipFile("", "wb", 5, file, 0) as out:
                shutil.copyfileobj(plain, out)
            new.replace(packed)
            path.unlink()
            done += 1
    return done


def keeper(store: LogStore, bounds: Bounds, now: Callable[[], float] = time.time) -> Callable[[threading.Event], None]:
    """A part that sweeps once a minute until it is told to stop."""

    def run(stop: threading.Event) -> None:
        while not stop.wait(EVERY):
            swept = sweep(store, bounds, now())
            if swept.removed:
                log.info("logs of %d pods were let go", swept.removed)

    return run
