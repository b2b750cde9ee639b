"""The supervisor of one pod: it starts and stops the containers that the kubelet names, keeps what they print, and tells.

Lines of JSON come in by the socket and go out by it. It ends when the socket does, and its containers with it.

In:  {"do": "start", "container": spec}  {"do": "stop", "name": …, "grace": s, "hook": [words]|null}  {"do": "end"}
     {"do": "mask", "secrets": [text]}
Out: {"is": "room", "moved": …, "missing": …}  {"is": "started", "name": …, "at": …}
     {"is": "ended", "name": …, "code": …, "signal": …, "reason": …, "message": …, "at": …}
"""

from __future__ import annotations

import contextlib
import json
import os
import selectors
import signal
import socket
import time
from dataclasses import dataclass, field
from typing import Any, NoReturn

from cluster.embedded.processes.supervisor import kernel, limits, rooms
from cluster.embedded.processes.supervisor.output import LogWriter
from cluster.embedded.processes.supervisor.start import START_ERROR, start
from cluster.logs.masking import patterns

_CHUNK = 262_144
_DRAIN = 2.0
_MESSAGE = 4096


@dataclass
class _Container:
    """One attempt that runs or is ending."""

    spec: dict[str, Any]
    group: limits.Group
    log: LogWriter
    pid: int = 0
    pipes: dict[str, int] = field(default_factory=dict)
    said: str = ""
    gone: bool = False
    kill_at: float | None = None
    hook: int = 0
    ended_at: float | None = None


class Supervisor:
    """One pod's; `run` does not return."""

    def __init__(self, control: socket.socket, plan: dict[str, Any]) -> None:
        self._control, self._plan = control, plan
        self._selector = selectors.DefaultSelector()
        self._containers: dict[str, _Container] = {}
        self._inbox = b""
        lifeline, self._held = os.pipe()
        why = rooms.enter(plan)
        self._room = {"moved": not why, "pids": plan["pids"], "lifeline": lifeline}
        self._logs = (rooms.OLD if not why else "") + plan["logs"]
        kernel.adopt_orphans()
        self._say({"is": "room", "moved": not why, "missing": why})

    def run(self) -> NoReturn:
        """Until the kubelet hangs up."""
        self._selector.register(self._control, selectors.EVENT_READ, None)
        while True:
            for key, _ in self._selector.select(self._wait()):
                if key.data is None:
                    self._hear()
                else:
                    self._take(*key.data)
            self._look()

    def _wait(self) -> float | None:
        if any(c.gone or c.hook or c.kill_at is not None for c in self._containers.values()):
            return 0.02
        return None

    # --- the kubelet ---

    def _hear(self) -> None:
        data = self._control.recv(65_536)
        if not data:
            self._leave()
        *lines, self._inbox = (self._inbox + data).split(b"\n")
        for line in lines:
            order = json.loads(line)
            match order["do"]:
                case "start":
                    self._start(order["container"])
                case "stop":
                    self._stop(order["name"], order["grace"], order.get("hook"))
                case "mask":
                    for container in self._containers.values():
                        container.log.learn(_patterns(order["secrets"]))
                case "end":
                    self._leave()

    def _say(self, message: dict[str, Any]) -> None:
        try:
            self._control.sendall(json.dumps(message).encode() + b"\n")
        except OSError:
            self._leave()

    def _leave(self) -> NoReturn:
        """End every container and this process."""
        for container in self._containers.values():
            self._kill(container)
        for container in self._containers.values():
            with contextlib.suppress(ChildProcessError):
                os.waitpid(container.pid, 0)
            container.group.remove()
        os._exit(0)

    # --- containers ---

    def _start(self, spec: dict[str, Any]) -> None:
        name = spec["name"]
        group = limits.group(self._plan["groups"], self._plan["groupVersion"], f"{self._plan['uid']}-{name}")
        group.limit(spec["limits"])
        log = LogWriter(f"{self._logs}/{name}/{spec['attempt']}", _patterns(spec["secrets"]), self._plan["logBytes"])
        container = self._containers[name] = _Container(spec, group, log)
        ends = {}
        for pipe in ("stdout", "stderr", "status"):
            container.pipes[pipe], ends[pipe] = os.pipe()
        with contextlib.suppress(OSError):
            os.truncate(self._message_file(spec), 0)
        container.pid = start(spec, group, self._room, ends)
        for end in ends.values():
            os.close(end)
        for pipe, descriptor in container.pipes.items():
            self._selector.register(descriptor, selectors.EVENT_READ, (container, pipe))

    def _stop(self, name: str, grace: float, hook: list[str] | None) -> None:
        """Ask a container to end: its hook first, then its signal; after the grace it is killed."""
        container = self._containers.get(name)
        if container is None or container.gone:
            return
        until = time.monotonic() + grace
        first = container.kill_at is None
        container.kill_at = until if first else min(until, container.kill_at or until)
        if not first or grace <= 0:
            return
        if hook and container.pid:
            container.hook = self._run_hook(container, hook)
        else:
            self._signal(container)

    def _signal(self, container: _Container) -> None:
        if container.pid and not container.gone:
            with contextlib.suppress(ProcessLookupError):
                os.kill(container.pid, getattr(signal, container.spec["stopSignal"], signal.SIGTERM))

    def _run_hook(self, container: _Container, words: list[str]) -> int:
        """The hook's process, in the container's mount namespace where it has one; it prints nowhere."""
        pid = os.fork()
        if pid:
            return pid
        with contextlib.suppress(BaseException):
            kernel.die_with_parent(signal.SIGKILL)
            container.group.enter()
            if self._room["moved"]:
                kernel.join(f"/proc/{container.pid}/ns/mnt")
            null = os.open("/dev/null", os.O_RDWR)
            for number in range(3):
                os.dup2(null, number)
            os.closerange(3, 65_536)
            os.chdir(container.spec["cwd"])
            os.execvpe(words[0], words, container.spec["env"])
        os._exit(START_ERROR)

    def _kill(self, container: _Container) -> None:
        if container.pid:
            with contextlib.suppress(ProcessLookupError):
                os.kill(container.pid, signal.SIGKILL)
        if not self._room["pids"]:
            container.group.kill()

    def _take(self, container: _Container, pipe: str) -> None:
        """Something came by a pipe, or its last writer is gone."""
        data = os.read(container.pipes[pipe], _CHUNK)
        if not data:
            self._close(container, pipe)
        elif pipe != "status":
            container.log.write(pipe, data)
        else:
            container.said += data.decode(errors="replace")
            if container.said.startswith("started\n"):
                container.said = container.said[8:]
                self._say({"is": "started", "name": container.spec["name"], "at": time.time()})

    def _close(self, container: _Container, pipe: str) -> None:
        descriptor = container.pipes.pop(pipe)
        self._selector.unregister(descriptor)
        os.close(descriptor)
        if pipe == "status":
            container.gone = True
            container.ended_at = time.time()
            if not self._room["pids"]:
                container.group.kill()

    def _look(self) -> None:
        """Timers, hooks that ended, containers whose processes are all gone."""
        now = time.monotonic()
        for name, container in list(self._containers.items()):
            if container.hook and os.waitpid(container.hook, os.WNOHANG)[0]:
                container.hook = 0
                self._signal(container)
            if container.kill_at is not None and now >= container.kill_at and not container.gone:
                self._kill(container)
            if container.gone and self._is_over(container):
                del self._containers[name]
                self._report(container)
        if not self._containers and not self._room["pids"]:
            self._bury_strays()

    def _is_over(self, container: _Container) -> bool:
        """The init is buried, and all that was printed has been read."""
        if container.pid:
            try:
                if not os.waitpid(container.pid, os.WNOHANG)[0]:
                    return False
            except ChildProcessError:
                pass
            container.pid = 0
        late = time.time() - (container.ended_at or 0) > _DRAIN
        if not late and any(pipe in container.pipes for pipe in ("stdout", "stderr")):
            return False
        for pipe in list(container.pipes):
            self._close(container, pipe)
        if container.hook:
            with contextlib.suppress(ProcessLookupError):
                os.kill(container.hook, signal.SIGKILL)
            os.waitpid(container.hook, 0)
        return True

    def _report(self, container: _Container) -> None:
        word, _, rest = container.said.partition(" ")
        code, number, reason, message = 137, 9, "", ""
        if word == "exit":
            code, number = int(rest), 0
        elif word == "signal":
            number = int(rest)
            code = 128 + number
        elif word == "error":
            code, number, reason = START_ERROR, 0, "StartError"
            message = rest.partition(" ")[2]
            container.log.say(f"basalt: cannot start: {message}")
        if code == 137 and container.group.out_of_memory():
            reason = "OOMKilled"
        container.log.close()
        container.group.remove()
        self._say(
            {
                "is": "ended",
                "name": container.spec["name"],
                "code": code,
                "signal": number,
                "reason": reason,
                "message": message or self._message(container, code),
                "at": container.ended_at,
            }
        )

    def _message_file(self, spec: dict[str, Any]) -> str:
        return (rooms.OLD if self._room["moved"] else "") + str(spec["messageFile"])

    def _message(self, container: _Container, code: int) -> str:
        """The termination message; with that policy the last lines of the log, where the program failed without one."""
        text = b""
        with contextlib.suppress(OSError), open(self._message_file(container.spec), "rb") as file:
            text = container.log.masked(file.read(_MESSAGE))
        if not text and code and container.spec["messagePolicy"] == "FallbackToLogsOnError":
            text = container.log.last(80, 2048)
        return text.decode(errors="replace")

    def _bury_strays(self) -> None:
        with contextlib.suppress(OSError), open(f"/proc/self/task/{os.getpid()}/children") as file:
            for word in file.read().split():
                with contextlib.suppress(OSError):
                    os.kill(int(word), signal.SIGKILL)
                    os.waitpid(int(word), 0)


def _patterns(secrets: list[str]) -> list[bytes]:
    return patterns(secret.encode(errors="surrogateescape") for secret in secrets)


def run(control: socket.socket, plan: dict[str, Any]) -> NoReturn:
    """Be the supervisor of a pod."""
    try:
        Supervisor(control, plan).run()
    except BaseException as error:  # noqa: BLE001 - a forked child never returns into its parent's code
        with contextlib.suppress(OSError):
            control.sendall(json.dumps({"is": "failed", "message": f"{type(error).__name__}: {error}"}).encode() + b"\n")
        os._exit(1)
