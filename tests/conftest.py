"""Fixtures that every room's tests share."""

import random
import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import orjson
import pytest
from hypothesis import settings

from cluster.admission import admission
from cluster.clock import ManualClock
from cluster.embedded.memory import Change
from cluster.embedded.store import EmbeddedCluster
from cluster.port import Obj
from testbed.server import binary

settings.register_profile("untimed", deadline=None)  # a busy machine is no fault
settings.load_profile("untimed")

SHARED = Path(__file__).resolve().parents[2] / "shared"


@pytest.fixture(scope="session")
def shared_dir() -> Path:
    """The folder of real manifests, traces and topologies beside the project; tests that need it skip without it."""
    if not (SHARED / "data").is_dir():
        pytest.skip("no folder of shared data beside the project")
    return SHARED


@pytest.fixture(scope="session")
def api_server_binaries() -> None:
    """What starts a real API server; tests that need it skip without it."""
    for program in ("kube-apiserver", "etcd", "kubectl"):
        if binary(program) is None:
            pytest.skip(f"no {program}: set KUBEBUILDER_ASSETS to a folder that has it")


@pytest.fixture
def clock() -> ManualClock:
    """Simulated time, from a fixed instant; it moves when a test says so."""
    return ManualClock(1_900_000_000.0)


class UntouchedCheck:
    """In the place of a table: sees that nobody changes an object that the cluster has handed out."""

    def __init__(self) -> None:
        self._seen: list[tuple[Obj, bytes]] = []

    def write(self, changes: Sequence[Change], version: int) -> None:
        self._seen.extend((change.obj, orjson.dumps(change.obj)) for change in changes)

    def check(self) -> None:
        for obj, before in self._seen:
            assert orjson.dumps(obj) == before, f"{obj['kind']} {obj['metadata']['name']} was changed in place: copy it first"


@pytest.fixture
def cluster(clock: ManualClock) -> Iterator[EmbeddedCluster]:
    """A fresh cluster in memory with every app's admission rules; uids and generated names repeat from run to run."""
    check = UntouchedCheck()
    yield EmbeddedCluster(table=check, clock=clock, admission=admission.copy(), random=random.Random(1))
    check.check()


@pytest.fixture(scope="session")
def browser_type_launch_args(browser_type_launch_args: dict[str, Any]) -> dict[str, Any]:
    """The machine's own Chromium, for every test that opens pages."""
    return browser_type_launch_args | {"executable_path": shutil.which("chromium"), "args": ["--no-sandbox"]}
