"""The settings of a machine on which nothing was set, and of one behind https."""

from __future__ import annotations

import json
import os
import stat
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
SAID = (
    "ALLOWED_HOSTS", "BASALT_SCHEDULER_NAMES", "CHANNEL_LAYERS", "DEBUG", "SECURE_SSL_REDIRECT", "SESSION_COOKIE_SECURE",
    "CSRF_COOKIE_SECURE", "STORE_DATABASE",
)  # fmt: skip


def settings(folder: Path, **environment: str) -> dict[str, Any]:
    """The settings of a fresh process with this environment alone."""
    code = f"import json, portal.settings as s; print(json.dumps({{name: getattr(s, name) for name in {SAID}}}))"
    env = {"PATH": os.environ["PATH"], "BASALT_DATA": str(folder), **environment}
    return json.loads(subprocess.run([sys.executable, "-c", code], cwd=ROOT, env=env, check=True, capture_output=True).stdout)


def test_a_fresh_machine_is_safe(tmp_path: Path):
    said = settings(tmp_path / "var")
    assert said["DEBUG"] is False
    assert "*" not in said["ALLOWED_HOSTS"]
    assert said["STORE_DATABASE"] == "cluster"
    assert stat.S_IMODE((tmp_path / "var").stat().st_mode) == 0o700
    assert stat.S_IMODE((tmp_path / "var" / "secret-key").stat().st_mode) == 0o600


def test_https_makes_cookies_secure_and_redirects(tmp_path: Path):
    said = settings(tmp_path, BASALT_HTTPS="1")
    assert said["SECURE_SSL_REDIRECT"] is said["SESSION_COOKIE_SECURE"] is said["CSRF_COOKIE_SECURE"] is True


def test_an_empty_address_counts_as_none_and_lists_may_have_spaces(tmp_path: Path):
    said = settings(tmp_path, DATABASE_URL="", REDIS_URL="", BASALT_HOSTS="a.example, b.example,", BASALT_SCHEDULER_NAMES="x")
    assert said["STORE_DATABASE"] == "cluster"
    assert said["CHANNEL_LAYERS"]["default"]["BACKEND"] == "channels.layers.InMemoryChannelLayer"
    assert said["ALLOWED_HOSTS"] == ["a.example", "b.example"]
    assert said["BASALT_SCHEDULER_NAMES"] == ["x"]


@pytest.mark.parametrize(
    ("url", "why"),
    [
        ("basalt", "names no PostgreSQL database"),
        ("mysql://u:hidden@db/basalt", "names no PostgreSQL database"),
        ("postgresql://u:hidden@db/", "names no PostgreSQL database"),
        ("postgresql://u:hidden@db:x/basalt", "has a port that is none"),
    ],
)
def test_a_database_that_is_none_is_refused_in_a_line_without_its_password(tmp_path: Path, url: str, why: str):
    env = {"PATH": os.environ["PATH"], "BASALT_DATA": str(tmp_path), "DATABASE_URL": url}
    done = subprocess.run([sys.executable, "-c", "import portal.settings"], cwd=ROOT, env=env, capture_output=True, text=True)
    assert done.returncode == 1
    assert done.stderr.startswith(f"DATABASE_URL {why}: ")
    assert done.stderr.count("\n") == 1
    assert "hidden" not in done.stderr


def test_what_a_database_address_asks_of_libpq_is_passed_on(tmp_path: Path):
    code = "import json, portal.settings as s; print(json.dumps(s.DATABASES['default']))"
    env = {"PATH": os.environ["PATH"], "BASALT_DATA": str(tmp_path)}
    env["DATABASE_URL"] = "postgresql://u:p%40ss@db:5433/basalt?sslmode=verify-full"
    said = json.loads(subprocess.run([sys.executable, "-c", code], cwd=ROOT, env=env, check=True, capture_output=True).stdout)
    assert (said["HOST"], said["PORT"], said["NAME"], said["PASSWORD"]) == ("db", "5433", "basalt", "p@ss")
    assert said["OPTIONS"] == {"sslmode": "verify-full"}
