"""One process owns a store."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from cluster.embedded.lock import OwnerLock, StoreLocked


def test_a_second_owner_is_told_who_the_first_is(tmp_path: Path) -> None:
    path = tmp_path / "cluster.lock"
    with OwnerLock(path), pytest.raises(StoreLocked, match=f"run by process {os.getpid()} already"):
        OwnerLock(path).take()
    with OwnerLock(path):
        pass


def test_the_lock_of_a_dead_owner_is_taken_over(tmp_path: Path) -> None:
    path = tmp_path / "cluster.lock"
    program = (
        "import os, pathlib, sys; from cluster.embedded.lock import OwnerLock; "
        "OwnerLock(pathlib.Path(sys.argv[1])).take(); os.kill(os.getpid(), 9)"
    )
    subprocess.run([sys.executable, "-c", program, str(path)], check=False, cwd=Path(__file__).resolve().parents[2])
    assert b"pid" in path.read_bytes()
    with OwnerLock(path):
        pass


def test_a_lock_file_without_a_name_in_it_still_locks(tmp_path: Path) -> None:
    path = tmp_path / "cluster.lock"
    with OwnerLock(path):
        path.write_bytes(b"")
        with pytest.raises(StoreLocked, match="another process"):
            OwnerLock(path).take()
