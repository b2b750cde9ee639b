"""The process from which the pods' supervisors are forked. It was loaded once, so that a fork is all that a pod costs."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
from typing import Any, NoReturn

from cluster.embedded.processes.supervisor import kernel, limits, pod, rooms


def main(number: int, name: str) -> None:
    """Serve the kubelet over the socket of this number: one message a pod, its own socket with it. Ends with the kubelet.

    `name` is what the control groups of this run are called.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the kubelet, which ends its pods with their grace
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    kernel.die_with_parent(signal.SIGKILL)
    line = socket.socket(fileno=number)
    groups, version = limits.parents(name)
    abilities = _probe() | {"limits": limits.describe(groups, version), "root": os.geteuid() == 0}
    line.sendall(json.dumps(abilities).encode() + b"\n")
    signal.signal(signal.SIGCHLD, lambda *_: _bury())
    while True:
        try:
            data, descriptors, _, _ = socket.recv_fds(line, 65_536, 1)
        except InterruptedError:
            continue
        if not data:
            break
        if descriptors:
            _fork(line, descriptors[0], data.decode(), groups, version, bool(abilities["pids"]))
    _clear(groups)


def _fork(line: socket.socket, descriptor: int, path: str, groups: dict[str, str], version: int, pids: bool) -> None:
    """One supervisor; `path` is where its plan lies, which is read once and taken away."""
    parent = os.getpid()
    if os.fork() != 0:
        os.close(descriptor)
        return
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    kernel.die_with_parent(signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(1)
    line.close()
    control = socket.socket(fileno=descriptor)
    try:
        with open(path) as file:
            plan = json.load(file)
        os.unlink(path)
    except (OSError, ValueError):
        os._exit(1)
    pod.run(control, plan | {"groups": groups, "groupVersion": version, "pids": pids})


def _bury() -> None:
    with contextlib.suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass


def _clear(groups: dict[str, str]) -> None:
    for folder in set(groups.values()):
        with contextlib.suppress(OSError):
            os.rmdir(folder)


def _probe() -> dict[str, Any]:
    """What this kernel allows here: tried in a child, with a folder of its own."""
    import tempfile

    folder = tempfile.mkdtemp(prefix="basalt-probe-")
    open(f"{folder}/hosts", "w").close()
    moved = _tried(lambda: rooms.enter({"folder": folder, "host": "probe", "hidden": []}))
    pids = _tried(_new_pids)
    _remove(folder)
    return {"moved": not moved, "why": moved, "pids": not pids}


def _new_pids() -> str:
    try:
        kernel.unshare(kernel.NEWPID if os.geteuid() == 0 else kernel.NEWUSER | kernel.NEWPID)
    except OSError as error:
        return f"{error.filename}: {error.strerror}"
    return ""


def _tried(attempt: Any) -> str:
    """What an attempt says, made in a child that then ends."""
    read, write = os.pipe()
    pid = os.fork()
    if pid == 0:
        _answer(write, attempt)
    os.close(write)
    with os.fdopen(read) as answer:
        said = answer.read()
    os.waitpid(pid, 0)
    return said


def _answer(write: int, attempt: Any) -> NoReturn:
    said = "it ended while it tried"
    try:
        said = attempt()
    finally:
        os.write(write, said.encode())
        os._exit(0)


def _remove(folder: str) -> None:
    import shutil

    shutil.rmtree(folder, ignore_errors=True)
