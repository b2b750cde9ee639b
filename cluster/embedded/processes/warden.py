"""The kubelet's side of what runs outside: the zygote, and a line to each pod's supervisor."""

from __future__ import annotations

import contextlib
import json
import os
import selectors
import signal
import socket
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from cluster.embedded.processes.supervisor import kernel

_ROOT = str(Path(__file__).resolve().parents[3])
_CODE = (
    "import sys; sys.path.insert(0, {root!r}); "
    "from cluster.embedded.processes.supervisor.zygote import main; main({number}, {name!r})"
)
_ANSWER = 20.0

Lack = tuple[str, str]
"""What is missing on this machine: `mounts` (and why), `pids`, `limits` (and which)."""

Hear = Callable[[dict[str, Any]], None]


@dataclass(frozen=True, slots=True)
class Abilities:
    """What this machine allows: mount namespaces (else why not), process ids of one's own, limits by control groups."""

    mounts: bool
    why: str
    pids: bool
    limits: tuple[str, ...]
    root: bool

    def missing(self) -> list[Lack]:
        """What pods have to do without."""
        found = [] if self.mounts else [("mounts", self.why)]
        if not self.pids:
            found.append(("pids", ""))
        if lacking := sorted({"memory", "cpu", "pids"} - set(self.limits)):
            found.append(("limits", ", ".join(lacking)))
        return found


@dataclass
class Line:
    """To the supervisor of one pod. `hear` gets its messages; an empty one says that it has ended."""

    socket: socket.socket
    hear: Hear
    inbox: bytes = b""
    open: bool = field(default=True)

    def say(self, order: dict[str, Any]) -> None:
        """Send an order; a supervisor that has ended is heard of soon."""
        with contextlib.suppress(OSError):
            self.socket.sendall(json.dumps(order).encode() + b"\n")


class Warden:
    """Starts the zygote, and supervisors through it. One thread's."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._selector = selectors.DefaultSelector()
        self._bell, self._ring = os.pipe()
        os.set_blocking(self._ring, False)
        os.set_blocking(self._bell, False)
        self._selector.register(self._bell, selectors.EVENT_READ, None)
        self._process: subprocess.Popen[bytes] | None = None
        self._zygote: socket.socket | None = None
        self.abilities = self._start()

    def _start(self) -> Abilities:
        ours, theirs = socket.socketpair()
        code = _CODE.format(root=_ROOT, number=theirs.fileno(), name=self._name)
        keep = {key: os.environ[key] for key in ("PATH", "LANG", "LC_ALL", "TZ", "HOME") if key in os.environ}
        self._process = subprocess.Popen(  # noqa: S603 - our own interpreter and our own code
            [sys.executable, "-I", "-S", "-c", code], pass_fds=[theirs.fileno()], stdin=subprocess.DEVNULL, cwd="/", env=keep
        )
        theirs.close()
        ours.settimeout(_ANSWER)
        answer = b""
        while not answer.endswith(b"\n"):
            piece = ours.recv(65_536)
            if not piece:
                raise OSError("the process runtime's helper ended before it began")
            answer += piece
        told = json.loads(answer)
        self._zygote = ours
        return Abilities(told["moved"], told["why"], told["pids"], tuple(told["limits"]["controllers"]), told["root"])

    @property
    def pid(self) -> int:
        """The zygote's."""
        assert self._process is not None
        return self._process.pid

    def open(self, plan: dict[str, Any], hear: Hear) -> Line:
        """A supervisor for a pod. A zygote that somebody ended is started anew. Raises OSError."""
        assert self._process is not None
        if self._process.poll() is not None:
            self._start()
        path = Path(plan["folder"]) / "plan.json"
        with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as file:
            json.dump(plan, file)
        ours, theirs = socket.socketpair()
        assert self._zygote is not None
        with theirs:
            socket.send_fds(self._zygote, [str(path).encode()], [theirs.fileno()])
        ours.settimeout(_ANSWER)
        line = Line(ours, hear)
        self._selector.register(ours, selectors.EVENT_READ, line)
        return line

    def close_line(self, line: Line) -> None:
        """Hang up: the supervisor ends, and everything of its pod."""
        if line.open:
            line.open = False
            self._selector.unregister(line.socket)
            line.socket.close()

    def wake(self) -> None:
        """From any thread: end the wait."""
        with contextlib.suppress(BlockingIOError, OSError):
            os.write(self._ring, b"!")

    def listen(self, seconds: float) -> None:
        """Hand out messages as they come; return when some came, when woken, or when time is up."""
        for key, _ in self._selector.select(seconds):
            if key.data is None:
                with contextlib.suppress(BlockingIOError):
                    os.read(self._bell, 65_536)
            else:
                self._receive(key.data)

    def _receive(self, line: Line) -> None:
        if not line.open:
            return
        try:
            data = line.socket.recv(65_536)
        except OSError:
            data = b""
        *messages, line.inbox = (line.inbox + data).split(b"\n")
        for message in messages:
            line.hear(json.loads(message))
        if not data:
            self.close_line(line)
            line.hear({})

    def close(self) -> None:
        """End everything."""
        for key in list(self._selector.get_map().values()):
            if key.data is not None:
                self.close_line(key.data)
        if self._zygote is not None:
            self._zygote.close()
            self._zygote = None
        if self._process is not None:
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(2)
            self._process.kill()
            self._process.wait()
        for descriptor in (self._bell, self._ring):
            with contextlib.suppress(OSError):
                os.close(descriptor)


def end_left_over(record: Path) -> bool:
    """End the helper of an earlier run, if it is still there: known by its pid and the time of its start."""
    try:
        told = json.loads(record.read_text())
        pid, start = int(told["pid"]), str(told["start"])
    except (OSError, ValueError, KeyError, TypeError):
        return False
    found = start != "" and kernel.start_of(pid) == start
    if found:
        with contextlib.suppress(OSError):
            os.kill(pid, signal.SIGKILL)
    record.unlink(missing_ok=True)
    return found


def remember(record: Path, pid: int) -> None:
    """Write down who the helper is."""
    record.write_text(json.dumps({"pid": pid, "start": kernel.start_of(pid)}))
