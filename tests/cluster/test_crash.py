"""A store that is killed at any moment keeps a prefix of what was written, and all of what was acknowledged."""

from __future__ import annotations

import os
import random
import signal
import sqlite3
import subprocess
import sys
import time
from pathlib import Path

import orjson
import pytest

ROOT = Path(__file__).resolve().parents[2]


def run_and_kill(folder: Path, seconds: float) -> list[list[str]]:
    """What the writer said before it was killed, that many seconds after its first write."""
    environment = {k: v for k, v in os.environ.items() if k != "DATABASE_URL"} | {
        "BASALT_DATA": str(folder),
        "DJANGO_SETTINGS_MODULE": "portal.settings",
    }
    command = [sys.executable, "-m", "tests.cluster.crash_writer"]
    said = folder / "said.txt"
    with said.open("wb") as out:
        process = subprocess.Popen(command, cwd=ROOT, env=environment, stdout=out)
        try:
            until = time.monotonic() + 60
            while said.stat().st_size == 0 and process.poll() is None and time.monotonic() < until:
                time.sleep(0.02)
            assert process.poll() is None, "the writer ended by itself"
            time.sleep(seconds)
        finally:
            process.send_signal(signal.SIGKILL)
            process.wait()
    return [line.split() for line in said.read_text().splitlines()]


def stored(folder: Path) -> tuple[dict[tuple[str, str, str], dict], int]:
    """The objects in the table, and the highest version that it knows."""
    with sqlite3.connect(folder / "cluster.sqlite3") as connection:
        rows = connection.execute("SELECT kind, namespace, name, resource_version, body FROM cluster_storedobject").fetchall()
    objects = {(kind, namespace, name): orjson.loads(body) for kind, namespace, name, _, body in rows if kind}
    return objects, max((row[3] for row in rows), default=0)


@pytest.mark.parametrize("seed", range(2))
def test_nothing_acknowledged_is_lost_and_what_is_kept_is_a_prefix(tmp_path: Path, seed: int) -> None:
    chance = random.Random(seed)
    highest = 0
    for _ in range(3):
        said = run_and_kill(tmp_path, chance.uniform(0.05, 0.5))
        objects, version = stored(tmp_path)
        start = int(next(words[2] for words in said if words[0] == "start"))
        assert start >= highest, "a resourceVersion would have been used twice"
        for thread in ("0", "1", "2"):
            kept = sorted(int(name[1:]) for kind, namespace, name in objects if (kind, namespace) == ("configmaps", f"t{thread}"))
            assert kept == list(range(len(kept)))
            assert len(kept) > max((int(words[1]) for words in said if words[0] == thread), default=-1)
        counts = [
            objects["pods", "twins", name]["status"].get("count", 0)
            for name in ("left", "right")
            if ("pods", "twins", name) in objects
        ]
        assert len(set(counts)) <= 1, "a step was kept in half"
        assert max(counts, default=0) >= max((int(words[1]) for words in said if words[0] == "twins"), default=0)
        acknowledged = max(int(words[2]) for words in said)
        assert version >= acknowledged
        assert len({obj["metadata"]["uid"] for obj in objects.values()}) == len(objects)
        versions = [int(obj["metadata"]["resourceVersion"]) for obj in objects.values()]
        assert len(set(versions)) == len(versions)
        highest = version
