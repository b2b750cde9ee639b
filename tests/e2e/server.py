"""A whole Basalt in a process of its own, as `make run` starts it, with a REST client that knows its password."""

from __future__ import annotations

import logging
import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx

from testbed.server import free_port
from testbed.stack import eventually

logging.getLogger("httpx").setLevel(logging.WARNING)
ROOT = Path(__file__).resolve().parents[2]


def wait_for(condition: Callable[[], Any], seconds: float = 60, what: str = "", pause: float = 0.05) -> Any:
    """What the condition gives once it is true; a missing field or item is waited for. Raises AssertionError when time is up."""
    return eventually(condition, seconds, why=lambda: what or str(condition), pause=pause)


class Server:
    """`manage.py run` on a folder of its own; it can be killed and started again over what it left."""

    def __init__(self, data: Path, *options: str, environment: dict[str, str] | None = None) -> None:
        self.data = data
        self.options = options
        self.environment = environment or {}
        self.password = ""
        self.port = free_port()
        self.log = data / "server.log"
        self._process: subprocess.Popen[bytes] | None = None
        self._token = ""

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def start(self) -> None:
        """Start, and return once it answers."""
        environment = os.environ | {"BASALT_DATA": str(self.data), "PYTHONUNBUFFERED": "1"}
        environment.pop("DATABASE_URL", None)
        environment.pop("REDIS_URL", None)
        environment |= self.environment
        command = [sys.executable, "manage.py", "run", "--port", str(self.port), *self.options]
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(command, cwd=ROOT, env=environment, stdout=log, stderr=subprocess.STDOUT)
        wait_for(self._answers, 240, f"an answer from {self.url}")
        if not self.password:
            found = re.search(r"password: +(\S+)", self.output())
            assert found, self.output()
            self.password = found.group(1)

    def output(self) -> str:
        """All that it has printed."""
        return self.log.read_text(errors="replace")

    def _answers(self) -> bool:
        assert self._process is not None
        assert self._process.poll() is None, self.output()
        try:
            return httpx.get(f"{self.url}/readyz", timeout=2).status_code == 200
        except httpx.TransportError:
            return False

    def kill(self) -> None:
        """End it as a power cut would (SIGKILL)."""
        assert self._process is not None
        self._process.kill()
        self._process.wait(10)

    def stop(self) -> int:
        """Ask it to end as Ctrl-C does; its exit status."""
        assert self._process is not None
        self._process.send_signal(signal.SIGINT)
        return self._process.wait(20)

    def client(self) -> httpx.Client:
        """A REST client with the first user's token."""
        if not self._token:
            answer = httpx.post(f"{self.url}/api/v1/auth/login", auth=("admin", self.password), timeout=20)
            answer.raise_for_status()
            self._token = answer.json()["token"]
        return httpx.Client(base_url=f"{self.url}/api/v1", headers={"Authorization": f"Token {self._token}"}, timeout=20)
