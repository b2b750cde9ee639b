"""A process that is killed while it saves the scheduler's configuration in a file: the next one knows what became of it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
TEXT = 'actions: "enqueue, allocate"\ntiers:\n- plugins:\n  - name: priority\n  - name: gang\n'
OTHER = TEXT.replace("allocate", "allocate, backfill")
BEGIN = """
import sys, django
django.setup()
from pathlib import Path
from types import SimpleNamespace
from cluster import runtime
from cluster.embedded.store import EmbeddedCluster
from portal import parts
from portal.cockpit import configuration, places, versions
from portal.decisions import Sink
from portal.models import ConfigurationVersion
from scheduler.source import ConfSource

def begin():
    source, sink = ConfSource(Path(sys.argv[1]), runtime.now().timestamp()), Sink()
    parts.use(SimpleNamespace(scheduler=SimpleNamespace(conf=source), is_running=lambda name: True))
    sink.configured(source.state)
    sink.write()
    return source
"""
DIES = """
import os, signal
begin()
kept = places.replace
def dies(path, text):
    if sys.argv[2] == "after":
        kept(path, text)
    os.kill(os.getpid(), signal.SIGKILL)
places.replace = dies
configuration.save(sys.argv[3], versions.newest().pk, "boss")
"""
LOOKS = """
source = begin()
configuration.standing()
for each in ConfigurationVersion.objects.all():
    print(each.who or "-", each.writing, "allocate, backfill" in each.text, each.text == source.state.text)
"""


@pytest.mark.parametrize(
    ("moment", "text", "versions"),
    [
        ("before", TEXT, ["boss lost True False", "- done False True"]),
        ("after", OTHER, ["boss done True True", "- done False False"]),
    ],
)
def test_it_is_settled_at_the_next_start(tmp_path: Path, moment: str, text: str, versions: list[str]) -> None:
    file = tmp_path / "volcano-scheduler.conf"
    file.write_text(TEXT)
    environment = {
        **{key: value for key, value in os.environ.items() if key not in ("DATABASE_URL", "REDIS_URL")},
        "BASALT_DATA": str(tmp_path), "DJANGO_SETTINGS_MODULE": "portal.settings",
    }  # fmt: skip

    def run(*arguments: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, *arguments]
        return subprocess.run(command, cwd=ROOT, env=environment, text=True, capture_output=True, timeout=120)

    assert run("manage.py", "migrate", "-v0").returncode == 0
    died = run("-c", BEGIN + DIES, str(file), moment, OTHER)
    assert died.returncode == -signal.SIGKILL, died.stderr
    assert file.read_text() == text
    looked = run("-c", BEGIN + LOOKS, str(file))
    assert looked.stdout.splitlines() == versions, looked.stderr
    assert [path.name for path in tmp_path.glob(".volcano-scheduler.conf.*")] == []
