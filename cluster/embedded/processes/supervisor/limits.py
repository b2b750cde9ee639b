"""What a container may use: control groups where they can be made, of either version; else the limits of a process."""

from __future__ import annotations

import contextlib
import os
import resource
import signal
from typing import Any

Limits = dict[str, int]
"""`memory` (bytes), `cpu` (milli), `shares` (milli asked for), `pids`; 0 is no limit."""

_PERIOD = 100_000


class Group:
    """The control groups of one container. `missing` names the limits that they cannot hold."""

    def __init__(self, folders: dict[str, str], version: int) -> None:
        self._folders, self._version = folders, version
        self.missing = sorted({"memory", "cpu", "pids"} - set(folders))

    def limit(self, limits: Limits) -> None:
        """Write the limits; one that the kernel refuses counts as missing."""
        writes = _version2(limits) if self._version == 2 else _version1(limits)
        for controller, file, text in writes:
            if controller not in self._folders:
                continue
            try:
                _write(f"{self._folders[controller]}/{file}", text)
            except OSError:
                if not file.endswith(("memsw.limit_in_bytes", "swap.max", "oom.group")):
                    self.missing = sorted({*self.missing, controller})

    def enter(self) -> None:
        """Put this process, and what it will start, into the groups."""
        for folder in set(self._folders.values()):
            _write(f"{folder}/cgroup.procs", str(os.getpid()))

    def out_of_memory(self) -> bool:
        """Whether the kernel ended a process of it for want of memory."""
        file = "memory.events" if self._version == 2 else "memory.oom_control"
        try:
            with open(f"{self._folders['memory']}/{file}") as lines:
                return any(line.startswith("oom_kill ") and line.split()[1] != "0" for line in lines)
        except (OSError, KeyError):
            return False

    def members(self) -> list[int]:
        """The pids in it, as this process sees them."""
        found: set[int] = set()
        for folder in set(self._folders.values()):
            with contextlib.suppress(OSError), open(f"{folder}/cgroup.procs") as file:
                found.update(int(line) for line in file)
        return sorted(found - {0})

    def kill(self) -> None:
        """End everything in it."""
        for pid in self.members():
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)

    def remove(self) -> bool:
        """Take the groups away; False while something is still in them."""
        done = True
        for folder in set(self._folders.values()):
            try:
                os.rmdir(folder)
            except FileNotFoundError:
                continue
            except OSError:
                done = False
        return done


def _version1(limits: Limits) -> list[tuple[str, str, str]]:
    writes = []
    if limits["memory"]:
        writes.append(("memory", "memory.limit_in_bytes", str(limits["memory"])))
        writes.append(("memory", "memory.memsw.limit_in_bytes", str(limits["memory"])))
    if limits["cpu"]:
        writes.append(("cpu", "cpu.cfs_period_us", str(_PERIOD)))
        writes.append(("cpu", "cpu.cfs_quota_us", str(max(1000, limits["cpu"] * _PERIOD // 1000))))
    if limits["shares"]:
        writes.append(("cpu", "cpu.shares", str(max(2, limits["shares"] * 1024 // 1000))))
    if limits["pids"]:
        writes.append(("pids", "pids.max", str(limits["pids"])))
    return writes


def _version2(limits: Limits) -> list[tuple[str, str, str]]:
    writes = [("memory", "memory.oom.group", "1")]
    if limits["memory"]:
        writes.append(("memory", "memory.max", str(limits["memory"])))
        writes.append(("memory", "memory.swap.max", "0"))
    if limits["cpu"]:
        writes.append(("cpu", "cpu.max", f"{max(1000, limits['cpu'] * _PERIOD // 1000)} {_PERIOD}"))
    if limits["shares"]:
        writes.append(("cpu", "cpu.weight", str(min(10_000, max(1, limits["shares"] // 10)))))
    if limits["pids"]:
        writes.append(("pids", "pids.max", str(limits["pids"])))
    return writes


def parents(name: str) -> tuple[dict[str, str], int]:
    """Folders by controller in which groups can be made for this run, and the version; none where nothing can be made."""
    own = {}
    with contextlib.suppress(OSError), open("/proc/self/cgroup") as file:
        for line in file:
            _, controllers, path = line.rstrip("\n").split(":", 2)
            own.update(dict.fromkeys(controllers.split(","), path))
    found: dict[str, str] = {}
    for controller in ("memory", "cpu", "pids"):
        base = f"/sys/fs/cgroup/{controller}"
        if controller in own and os.path.isdir(base):
            for path in (own[controller].rstrip("/"), ""):
                if _made(f"{base}{path}/{name}"):
                    found[controller] = f"{base}{path}/{name}"
                    break
    if found:
        return found, 1
    return _unified(own.get("", "/"), name), 2


def _unified(own: str, name: str) -> dict[str, str]:
    """Version 2: beside our own group or at the top, where controllers can be handed on."""
    base = "/sys/fs/cgroup"
    if not os.path.exists(f"{base}/cgroup.controllers"):
        return {}
    for path in (os.path.dirname(own.rstrip("/")).rstrip("/"), ""):
        folder = f"{base}{path}/{name}"
        if not _made(folder):
            continue
        handed = {}
        for controller in ("memory", "cpu", "pids"):
            try:
                with contextlib.suppress(OSError):
                    _write(f"{base}{path}/cgroup.subtree_control", f"+{controller}")
                _write(f"{folder}/cgroup.subtree_control", f"+{controller}")
                handed[controller] = folder
            except OSError:
                continue
        if handed:
            return handed
        with contextlib.suppress(OSError):
            os.rmdir(folder)
    return {}


def group(found: dict[str, str], version: int, name: str) -> Group:
    """The groups of one container below a run's."""
    folders = {controller: f"{parent}/{name}" for controller, parent in found.items()}
    return Group({c: folder for c, folder in folders.items() if _made(folder)}, version)


def set_resources(limits: Limits, missing: list[str]) -> None:
    """For what no group holds, the limits of a process: data and number of processes. To be called in the child."""
    if "memory" in missing and limits["memory"]:
        resource.setrlimit(resource.RLIMIT_DATA, (limits["memory"], limits["memory"]))
    if "pids" in missing and limits["pids"] and os.getuid() != 0:
        hard = resource.getrlimit(resource.RLIMIT_NPROC)[1]
        most = limits["pids"] if hard == resource.RLIM_INFINITY else min(hard, limits["pids"])
        resource.setrlimit(resource.RLIMIT_NPROC, (most, hard))
    resource.setrlimit(resource.RLIMIT_CORE, (0, resource.getrlimit(resource.RLIMIT_CORE)[1]))


def _made(folder: str) -> bool:
    try:
        os.makedirs(folder, exist_ok=True)
    except OSError:
        return False
    return os.access(f"{folder}/cgroup.procs", os.W_OK)


def _write(path: str, text: str) -> None:
    with open(path, "w") as file:
        file.write(text)


def describe(found: dict[str, str], version: int) -> dict[str, Any]:
    """What can be limited here, for people."""
    return {"version": version if found else 0, "controllers": sorted(found)}
