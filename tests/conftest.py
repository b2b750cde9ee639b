"""Fixtures that every room's tests share."""

import random
from pathlib import Path

import pytest

from cluster.admission import admission
from cluster.clock import ManualClock
from cluster.embedded.store import EmbeddedCluster

SHARED = Path(__file__).resolve().parents[2] / "shared"


@pytest.fixture(scope="session")
def shared_dir() -> Path:
    """The folder of real manifests, traces and topologies beside the project; tests that need it skip without it."""
    if not (SHARED / "data").is_dir():
        pytest.skip("no folder of shared data beside the project")
    return SHARED


@pytest.fixture
def clock() -> ManualClock:
    """Simulated time, from a fixed instant; it moves when a test says so."""
    return ManualClock(1_900_000_000.0)


@pytest.fixture
def cluster(clock: ManualClock) -> EmbeddedCluster:
    """A fresh cluster in memory with every app's admission rules; uids and generated names repeat from run to run."""
    return EmbeddedCluster(clock=clock, admission=admission.copy(), random=random.Random(1))
