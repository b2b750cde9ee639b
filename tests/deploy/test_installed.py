"""What `deploy/install.sh` made, run as the image runs it: by a user who cannot write to it, with a data folder and nothing else.

`BASALT_PREFIX` says where it is. CI installs into a fresh folder first; elsewhere these tests are skipped.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import requests

from testbed.server import free_port

PREFIX = Path(os.environ.get("BASALT_PREFIX") or "/nonexistent")
pytestmark = [
    pytest.mark.services,
    pytest.mark.skipif(not PREFIX.is_dir(), reason="BASALT_PREFIX names no folder that deploy/install.sh filled"),
]
NOBODY = 65534
PRODUCTION = {
    "BASALT_PRODUCTION": "1",
    "BASALT_HTTPS": "1",
    "BASALT_HOSTS": "basalt.example.com",
    "BASALT_SECRET_KEY": "".join(chr(33 + number % 90) for number in range(64)),
    "DATABASE_URL": "postgresql://basalt@db.example/basalt",
}


class Installed:
    """Commands of the installed tree, by a user who owns only the data folder."""

    def __init__(self, data: Path) -> None:
        self.data = data
        self._who: dict[str, Any] = {"user": NOBODY, "group": NOBODY, "extra_groups": []} if os.getuid() == 0 else {}
        if self._who:
            os.chown(data, NOBODY, NOBODY)

    def start(self, *command: str, **environment: str) -> subprocess.Popen[str]:
        program, *arguments = command
        return subprocess.Popen(
            [str(PREFIX / ".venv" / "bin" / program), *arguments],
            cwd=PREFIX,
            env={"PATH": "/usr/bin:/bin", "HOME": "/nonexistent", "BASALT_DATA": str(self.data), **environment},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            **self._who,
        )

    def run(self, *command: str, **environment: str) -> tuple[int, str]:
        process = self.start(*command, **environment)
        said, _ = process.communicate(timeout=120)
        return process.returncode, said


@pytest.fixture(scope="module")
def installed() -> Iterator[Installed]:
    data = Path(tempfile.mkdtemp())  # not below pytest's own folder, which nobody else may enter
    before = listing()
    if os.getuid() != 0:
        subprocess.run(["chmod", "-R", "a-w", str(PREFIX)], check=True)
    yield Installed(data)
    if os.getuid() != 0:
        subprocess.run(["chmod", "-R", "u+w", str(PREFIX)], check=True)
    shutil.rmtree(data)
    assert listing() == before, "the installed tree was written to"


def listing() -> set[tuple[str, int]]:
    return {(str(path), path.lstat().st_mtime_ns) for path in PREFIX.rglob("*")}


def test_pages_and_their_files_are_served(installed: Installed) -> None:
    assert installed.run("python", "manage.py", "migrate", "-v0") == (0, "")
    port = free_port()
    server = installed.start("uvicorn", "portal.asgi:application", "--port", str(port), "--log-level", "warning")
    base = f"http://127.0.0.1:{port}"
    try:
        wait_for(f"{base}/healthz", server)
        page = requests.get(f"{base}/sign-in/", headers={"Accept-Language": "zh-hans"}, timeout=10)
        assert (page.status_code, '<html lang="zh-hans"' in page.text, "登录" in page.text) == (200, True, True)
        for name in ("vendor/tabler.min.css", "vendor/echarts.esm.min.mjs", "vendor/codemirror/view.js", "css/basalt.css"):
            file = requests.get(f"{base}/static/{name}", timeout=10)
            assert (name, file.status_code, file.headers.get("Content-Encoding")) == (name, 200, "gzip")
        assert requests.get(f"{base}/readyz", timeout=5).json()["checks"] == {"database": "ok", "cluster": "is not connected"}
    finally:
        server.terminate()
        server.communicate(timeout=20)


def test_every_command_of_the_manifests_is_there(installed: Installed) -> None:
    for command in ("scheduler", "controller", "mirror", "install-crds", "tidy"):
        status, said = installed.run("python", "manage.py", command, "--help")
        assert (command, status) == (command, 0), said
    assert installed.run("celery", "--version")[0] == 0


def test_production_passes_its_own_checks(installed: Installed) -> None:
    status, said = installed.run("python", "manage.py", "check", "--deploy", "--tag", "security", **PRODUCTION)
    assert (status, said) == (0, "System check identified no issues (2 silenced).\n")


@pytest.mark.parametrize("missing", ["BASALT_SECRET_KEY", "BASALT_HOSTS", "DATABASE_URL"])
def test_a_web_process_of_production_does_not_make_up_what_is_missing(installed: Installed, missing: str) -> None:
    given = {name: value for name, value in PRODUCTION.items() if name != missing}
    status, said = installed.run("uvicorn", "portal.asgi:application", "--port", str(free_port()), **given)
    assert status != 0
    assert missing in said
    assert "Traceback" not in said


def wait_for(url: str, process: subprocess.Popen[str]) -> None:
    """Until a server answers, whatever name it is called by."""
    end = time.monotonic() + 60
    while time.monotonic() < end:
        assert process.poll() is None, process.communicate()[0]
        try:
            if requests.get(url, headers={"Host": "10.1.2.3"}, timeout=2).ok:
                return
        except requests.RequestException:
            time.sleep(0.2)
    raise AssertionError("the server did not answer within a minute")
