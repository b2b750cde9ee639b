"""A node tells the links of its GPUs, from a tool's own output."""

import stat
import subprocess
import sys
from io import StringIO
from pathlib import Path

import pytest
import yaml
from django.core.management import CommandError, call_command

from cluster.gpu_usage import read
from cluster.topology import parse_topology
from testbed.server import ApiServer

ROOT = Path(__file__).parents[2]
TABLE = "        GPU0    GPU1    CPU Affinity\nGPU0     X      NV4     0-7\nGPU1    NV4      X      0-7\n"


@pytest.fixture
def table(tmp_path: Path) -> Path:
    path = tmp_path / "topo.txt"
    path.write_text(TABLE)
    return path


def _tool(folder: Path, script: str) -> None:
    tool = folder / "nvidia-smi"
    tool.write_text(f"#!/bin/sh\n{script}\n")
    tool.chmod(tool.stat().st_mode | stat.S_IXUSR)


def test_prints_what_it_understood(table: Path) -> None:
    out = StringIO()
    call_command("report-topology", "--print", file=str(table), stdout=out)
    assert parse_topology(out.getvalue()).links == (("X", "NV4"), ("NV4", "X"))


def test_asks_the_tool_when_no_file_is_given(tmp_path: Path, table: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _tool(tmp_path, f'[ "$1 $2" = "topo -m" ] && cat {table}')
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    out = StringIO()
    call_command("report-topology", "--print", stdout=out)
    assert parse_topology(out.getvalue()).gpus == 2


def test_a_tool_that_fails_is_quoted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _tool(tmp_path, "echo 'driver not loaded' >&2; exit 9")
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    with pytest.raises(CommandError, match="ended with 9 and said: driver not loaded"):
        call_command("report-topology", "--print")


def test_a_wrong_table_says_its_line(tmp_path: Path) -> None:
    (tmp_path / "bad").write_text(TABLE.replace("NV4      X", "NV9      X"))
    with pytest.raises(CommandError, match="cannot be read"):
        call_command("report-topology", "--print", file=str(tmp_path / "bad"))


def test_how_busy_gpus_are_is_told_in_the_words_that_pages_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _tool(tmp_path, "printf '0, 71, 20992\\n1, [N/A], 3\\n'")
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    out = StringIO()
    call_command("report-gpu-usage", "--print", stdout=out)
    assert (read(out.getvalue()).load, read(out.getvalue()).memory) == ((71, None), (20992, 3))
    with pytest.raises(CommandError, match="from 1 to 300 seconds"):
        call_command("report-gpu-usage", "--print", every=301)
    monkeypatch.delenv("NODE_NAME", raising=False)
    with pytest.raises(CommandError, match="which node is this"):
        call_command("report-gpu-usage", "--once")


def test_a_node_without_a_name_is_asked_for(table: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NODE_NAME", raising=False)
    with pytest.raises(CommandError, match="NODE_NAME"):
        call_command("report-topology", file=str(table))


def test_the_node_has_the_table(api_server: ApiServer, table: Path) -> None:
    node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "gpu-1"}}
    api_server.kubectl("create", "-f", "-", text=yaml.safe_dump(node), check=True)
    command = [sys.executable, "manage.py", "report-topology", "--file", str(table), "--node"]
    options = ["--kubeconfig", str(api_server.kubeconfig)]
    done = subprocess.run([*command, "gpu-1", *options], cwd=ROOT, text=True, capture_output=True, timeout=60)
    assert done.stdout == "node gpu-1: the links of 2 GPUs (NV4)\n", done.stderr
    kept = yaml.safe_load(api_server.kubectl("get", "node", "gpu-1", "-o", "yaml").stdout)
    assert kept["metadata"]["annotations"]["basalt.dev/gpu-topology"] == TABLE
    missing = subprocess.run([*command, "gpu-2", *options], cwd=ROOT, text=True, capture_output=True, timeout=60)
    assert missing.returncode == 3
    assert "404 Not Found" in missing.stderr
