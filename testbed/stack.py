"""Basalt's own processes over a real API server: as in production, each by the command that users run."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import requests
from websockets.sync.client import ClientConnection, connect

from testbed.server import ApiServer, free_port

ROOT = Path(__file__).parents[1]
PASSWORD = "only-for-tests-1"
WAIT = 60.0


def eventually(holds: Callable[[], Any], seconds: float = WAIT, *, why: Callable[[], str] = str, pause: float = 0.05) -> Any:
    """What `holds` returns once it is true. What it looks for may not be there yet: a missing field or item is waited for."""
    end = time.monotonic() + seconds
    missing: LookupError | None = None
    while True:
        try:
            if found := holds():
                return found
        except LookupError as error:
            missing = error
        if time.monotonic() > end:
            raise AssertionError(f"not within {seconds:g} s{': ' + why() if why() else ''}") from missing
        time.sleep(pause)


@contextlib.contextmanager
def at_work(run: Callable[[threading.Event], None]) -> Iterator[None]:
    """A part in a thread for as long as the block lasts."""
    stop = threading.Event()
    thread = threading.Thread(target=run, args=(stop,), daemon=True)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join(15)
        assert not thread.is_alive()


class Stack:
    """Processes by name, over one database; `more` are further settings."""

    def __init__(self, server: ApiServer, folder: Path, **more: str) -> None:
        self.folder = folder
        self._processes: dict[str, subprocess.Popen[bytes]] = {}
        self.ports: dict[str, int] = {}
        self.environment = {
            **{key: value for key, value in os.environ.items() if key not in ("DATABASE_URL", "REDIS_URL")},
            "KUBECONFIG": str(server.kubeconfig),
            "BASALT_DATA": str(folder),
            "BASALT_CLUSTER": "kubernetes",
            "DJANGO_SUPERUSER_PASSWORD": PASSWORD,
            **more,
        }
        self._session = requests.Session()

    def manage(self, *arguments: str) -> str:
        """What a command of manage.py says."""
        command = [sys.executable, "manage.py", *arguments]
        done = subprocess.run(command, cwd=ROOT, env=self.environment, text=True, capture_output=True, timeout=120)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def prepare(self) -> None:
        """Databases, a user and the definitions of our kinds."""
        self.manage("migrate", "-v0")
        self.manage("migrate", "-v0", "--database", "cluster")
        self.manage("createsuperuser", "--noinput", "--username", "admin", "--email", "admin@tests.example")
        self.manage("install-crds")

    def start(self, name: str, *arguments: str, part: str = "") -> None:
        """Start a part; `name` is its process's, where there are two of one part."""
        self.ports[name] = free_port()
        listen = ("--listen", f"127.0.0.1:{self.ports[name]}")
        self._spawn(name, [sys.executable, "manage.py", part or name, *listen, *arguments])

    def serve(self) -> None:
        """Start the pages and REST, and sign in."""
        self.ports["web"] = free_port()
        self._spawn(
            "web",
            [
                sys.executable,
                "-m",
                "uvicorn",
                "portal.asgi:application",
                "--port",
                str(self.ports["web"]),
                "--log-level",
                "error",
            ],
        )
        self.wait_ready("web")
        signed = self._session.post(self.url("web", "/api/v1/auth/login"), auth=("admin", PASSWORD), timeout=10)
        self._session.headers["Authorization"] = f"Token {signed.json()['token']}"

    def wait_ready(self, *names: str) -> None:
        """Wait until processes say that they can work."""
        for name in names:
            eventually(lambda name=name: self._is_ready(name), why=lambda name=name: self.log(name)[-3000:])

    def _is_ready(self, name: str) -> bool:
        try:
            return requests.get(self.url(name, "/readyz"), timeout=2).ok
        except requests.RequestException:
            return False

    def url(self, name: str, path: str) -> str:
        """Where a process answers."""
        return f"http://127.0.0.1:{self.ports[name]}{path}"

    def metric(self, name: str, line: str) -> float:
        """The value of a line of a process's metrics; 0 for one that is not there."""
        text = requests.get(self.url(name, "/metrics"), timeout=5).text
        return next((float(each.rpartition(" ")[2]) for each in text.splitlines() if each.startswith(f"{line} ")), 0.0)

    def rest(self, method: str, path: str, **what: Any) -> requests.Response:
        """One request to REST."""
        return self._session.request(method, self.url("web", f"/api/v1/{path}"), **{"timeout": 10, **what})

    def page(self) -> ClientConnection:
        """A live channel, as a page has one."""
        address = self.url("web", "/ws/live/").replace("http", "ws", 1)
        return connect(address, additional_headers={"Authorization": str(self._session.headers["Authorization"])})

    def log(self, name: str) -> str:
        """What a process logged until now."""
        return (self.folder / f"{name}.log").read_text()

    def end(self, name: str, number: int = signal.SIGTERM) -> int:
        """Signal a process and wait for its end; its exit code."""
        process = self._processes.pop(name)
        process.send_signal(number)
        return process.wait(20)

    def hold(self, name: str) -> None:
        """Stop a process where it is, as a machine does that swaps or sleeps."""
        self._processes[name].send_signal(signal.SIGSTOP)

    def release(self, name: str) -> None:
        """Let it go on."""
        self._processes[name].send_signal(signal.SIGCONT)

    def stop(self) -> None:
        """End everything."""
        for process in self._processes.values():
            process.kill()
        for process in self._processes.values():
            process.wait(10)

    def _spawn(self, name: str, command: list[str]) -> None:
        with (self.folder / f"{name}.log").open("ab") as log:
            self._processes[name] = subprocess.Popen(command, cwd=ROOT, env=self.environment, stdout=log, stderr=log)
