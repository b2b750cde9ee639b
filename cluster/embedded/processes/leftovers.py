"""What an earlier run left behind: processes, found by pid and start time or by their mark; control groups; folders."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import time
from pathlib import Path

from cluster.embedded.processes import warden
from cluster.embedded.processes.supervisor import limits

MARK = "BASALT_POD"
"""In the environment of every container: the run's name and the pod's uid."""


def end_all(folder: Path, name: str) -> int:
    """End every process of an earlier run of this data folder; how many there were."""
    ended = int(warden.end_left_over(folder / "helper.json"))
    groups, _ = limits.parents(name)
    for _ in range(50):
        found = {pid for group in set(groups.values()) for pid in _members(group)} | set(_marked(f"{MARK}={name}/"))
        if not found:
            break
        ended += len(found)
        for pid in found:
            with contextlib.suppress(OSError):
                os.kill(pid, signal.SIGKILL)
        time.sleep(0.02)
    for group in set(groups.values()):
        for child in _folders(group):
            with contextlib.suppress(OSError):
                child.rmdir()
        with contextlib.suppress(OSError):
            os.rmdir(group)
    return ended


def remove(folder: Path) -> None:
    """Take a pod's folder away, also what its layers locked."""
    for locked in folder.glob("*/work/work"):
        with contextlib.suppress(OSError):
            locked.chmod(0o700)
    shutil.rmtree(folder, ignore_errors=True)


def forget_folders(pods: Path, kept: set[str]) -> None:
    """Take away the folders of pods that are not there any more."""
    for folder in pods.iterdir() if pods.is_dir() else ():
        if folder.is_dir() and folder.name not in kept:
            remove(folder)


def _folders(group: str) -> list[Path]:
    with contextlib.suppress(OSError):
        return [child for child in Path(group).iterdir() if child.is_dir()]
    return []


def _members(group: str) -> list[int]:
    found = []
    for child in _folders(group):
        with contextlib.suppress(OSError):
            found += [int(line) for line in (child / "cgroup.procs").read_text().split()]
    return [pid for pid in found if pid]


def _marked(mark: str) -> list[int]:
    """Processes of our own user with the mark in their environment."""
    found = []
    wanted = mark.encode()
    for entry in os.listdir("/proc"):
        if entry.isdigit() and int(entry) != os.getpid():
            with contextlib.suppress(OSError), open(f"/proc/{entry}/environ", "rb") as file:
                if any(word.startswith(wanted) for word in file.read().split(b"\0")):
                    found.append(int(entry))
    return found
