"""What follows a server outlives it: killed and started again, nothing is lost and nothing is said twice."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.jobs import manifest
from tests.cli.program import basalt
from tests.e2e.server import Server, wait_for

PROGRAM = "from basalt.main import basalt; basalt()"


@pytest.fixture
def own(tmp_path: Path) -> Iterator[Server]:
    (tmp_path / "data").mkdir()
    server = Server(tmp_path / "data", "--speed", "20")
    server.start()
    yield server
    server.stop()


def started(*args: str, out: Path) -> subprocess.Popen[bytes]:
    with out.open("wb") as file:
        return subprocess.Popen(
            [sys.executable, "-c", "from basalt.main import basalt; basalt()", *args], stdout=file, stderr=file
        )


def is_connected(process: int) -> bool:
    """Whether a process holds a socket."""
    return any(os.readlink(file).startswith("socket:") for file in Path(f"/proc/{process}/fd").iterdir())


def test_logs_watch_and_wait_go_on_when_the_server_is_killed_and_comes_back(own: Server):
    basalt("login", own.url, "-u", "admin", "--password-stdin", stdin=f"{own.password}\n")
    basalt("submit", "-", stdin=manifest("steady", duration="8m"))
    assert basalt("wait", "steady", "--for=condition=Running", "--timeout", "60s").code == 0
    outs = {verb: Path(f"{verb}.out") for verb in ("logs", "watch", "wait")}
    running = {"wait": started("wait", "steady", out=outs["wait"])}
    wait_for(lambda: is_connected(running["wait"].pid), what="its connection")  # it says nothing meanwhile
    running |= {
        "logs": started("logs", "steady", "-f", out=outs["logs"]),
        "watch": started("watch", "steady", out=outs["watch"]),
    }
    wait_for(lambda: outs["logs"].read_text().count("\n") > 3 and outs["watch"].read_text(), what="lines")
    own.kill()
    wait_for(lambda: "trying again" in outs["logs"].read_text(), what="a word of it")
    own.start()
    assert {verb: process.wait(100) for verb, process in running.items()} == dict.fromkeys(running, 0)
    followed = [line for line in outs["logs"].read_text().splitlines() if line.startswith("[")]
    assert sorted(followed) == sorted(basalt("logs", "steady").lines)
    assert outs["wait"].read_text().endswith("job/steady is Completed\n")
    assert "job/steady Completed\n" in outs["watch"].read_text()
    assert outs["logs"].read_text().count("trying again") <= 2
