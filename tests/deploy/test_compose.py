"""The compose file: what `docker compose config` makes of it, and that it hardens what it starts."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from portal import settings
from tests.deploy.rendered import DEPLOY, KUSTOMIZE, processes, render

GIVEN = {"BASALT_SECRET_KEY": "k" * 50, "POSTGRES_PASSWORD": "p", "KUBECONFIG": "/etc/hostname"}
OURS = {"web", "worker", "beat", "migrate", "scheduler", "controller", "mirror"}


@pytest.fixture(scope="module")
def services() -> dict[str, Any]:
    """The services as written, anchors resolved."""
    found: dict[str, Any] = yaml.safe_load((DEPLOY / "compose.yaml").read_text())["services"]
    return found


def installed(name: str) -> str | None:
    """A program, of this environment or of the machine."""
    return shutil.which(name, path=str(Path(sys.executable).parent)) or shutil.which(name)


def compose(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    program = installed("docker-compose")
    if program is None:
        pytest.skip("no docker-compose")
    command = [program, "-f", str(DEPLOY / "compose.yaml"), *arguments]
    given = {"PATH": os.environ["PATH"], "HOME": "/nonexistent", **environment}
    return subprocess.run(command, env=given, capture_output=True, text=True, timeout=60)


def test_compose_takes_it() -> None:
    done = compose("--profile", "cluster", "config", **GIVEN)
    assert done.returncode == 0, done.stderr
    assert set(yaml.safe_load(done.stdout)["services"]) == OURS | {"postgres", "redis"}


@pytest.mark.parametrize(
    ("profile", "more"), [("", set()), ("mirror", {"mirror"}), ("cluster", {"scheduler", "controller", "mirror"})]
)
def test_profiles_add_parts(profile: str, more: set[str]) -> None:
    done = compose(*(("--profile", profile) if profile else ()), "config", "--services", **GIVEN)
    assert set(done.stdout.split()) == {"web", "worker", "beat", "migrate", "postgres", "redis"} | more


@pytest.mark.parametrize("missing", sorted(GIVEN))
def test_what_must_be_given_is_asked_for(missing: str) -> None:
    done = compose("config", **{name: value for name, value in GIVEN.items() if name != missing})
    assert done.returncode != 0
    assert missing in done.stderr


def test_our_containers_are_hardened(services: dict[str, Any]) -> None:
    assert services.keys() == OURS | {"postgres", "redis"}
    for name in OURS:
        service = services[name]
        assert (service["read_only"], service["cap_drop"], service["security_opt"]) == (True, ["ALL"], ["no-new-privileges:true"])
        assert service["user"] == "${BASALT_USER:-10001:10001}"
        assert [mount.partition(":")[0] for mount in service["tmpfs"]] == ["/tmp", "/var/lib/basalt"]
        assert "volumes" not in service
    assert services["web"]["ports"] == ["${BASALT_LISTEN:-127.0.0.1:8000}:8000"]
    assert not any("ports" in services[name] for name in services.keys() - {"web"})


def test_commands_are_the_manifests(services: dict[str, Any]) -> None:
    base = {title.rpartition("basalt-")[2]: process.command for title, process in processes(render(KUSTOMIZE / "base")).items()}
    for name in OURS - {"web"}:
        command = services[name]["command"]
        assert list(base[name])[: min(3, len(command))] == command[:3], name


def test_every_setting_is_one(services: dict[str, Any]) -> None:
    known = set(re.findall(r"^([A-Z_]{5,}) ", settings.__doc__ or "", re.MULTILINE)) | {"KUBECONFIG"}
    for name in OURS:
        assert services[name]["environment"].keys() <= known


def test_the_dockerfile_passes_hadolint() -> None:
    program = installed("hadolint")
    if program is None:
        pytest.skip("no hadolint")
    done = subprocess.run([program, str(DEPLOY / "Dockerfile")], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout) == (0, "")
