"""`pip install ./cli` on a machine that has nothing of Basalt."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.program import NAMES
from tests.e2e.server import ROOT, Server


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A fresh environment with the command line alone; its folder of programs."""
    folder = tmp_path_factory.mktemp("installed")
    shutil.copytree(ROOT / "cli", folder / "cli", ignore=shutil.ignore_patterns("*.egg-info", "build", "__pycache__"))
    subprocess.run([sys.executable, "-m", "venv", str(folder / "venv")], check=True)
    pip = [str(folder / "venv/bin/python"), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", str(folder / "cli")]
    done = subprocess.run(pip, capture_output=True, text=True, timeout=300)
    if "connection" in done.stderr.lower() and done.returncode:
        pytest.skip("no package index to install from")
    assert done.returncode == 0, done.stderr
    return folder / "venv/bin"


def outside(program: Path, *args: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run an installed program where nothing of Basalt is on the path."""
    kept = {key: value for key, value in os.environ.items() if not key.startswith(("PYTHON", "BASALT", "DJANGO"))}
    return subprocess.run([str(program), *args], capture_output=True, text=True, timeout=60, cwd="/", env=kept | environment)


def test_every_name_is_there_and_works_without_django(installed, server: Server, token):
    for name in sorted(NAMES):
        assert outside(installed / name, "--help").returncode == 0
    packages = outside(installed / "python", "-m", "pip", "list").stdout.lower()
    assert "basalt-cli" in packages
    assert "django" not in packages
    said = outside(installed / "vcctl", "queue", "list", BASALT_SERVER=server.url, BASALT_TOKEN=token)
    assert said.stdout.startswith("Name                     Weight  State   Parent")
    assert (said.returncode, said.stderr) == (0, "")


def test_its_types_are_there(installed):
    script = "import basalt, pathlib; print(*sorted(path.name for path in pathlib.Path(basalt.__file__).parent.glob('py.typed')))"
    assert outside(installed / "python", "-c", script).stdout == "py.typed\n"
