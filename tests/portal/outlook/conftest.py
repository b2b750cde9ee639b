"""A small cluster in which jobs wait, and what the projection knows of it."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from cluster import runtime
from cluster.kinds import JOB, NODE, POD, POD_GROUP, QUEUE
from cluster.projection import Batch
from portal.mirror import PROJECTIONS
from portal.scenario import objects as make
from portal.simulations import work
from portal.unblock import copy
from scheduler import conf
from scheduler.framework import registry
from tests import factories
from tests.portal.unblock.test_trial import DEPLOYED
from tests.portal.unblock.world import Stage, manifest


@pytest.fixture
def stage(monkeypatch: pytest.MonkeyPatch) -> Any:
    """A node of 8 GPUs that `first` holds; `second` and `third` wait for all of it, one after the other."""
    registry.load_builtin()
    text = make.configuration(DEPLOYED)
    loaded = conf.load(text)
    monkeypatch.setattr(copy, "conf_in_force", lambda: loaded)
    monkeypatch.setattr(work, "conf_in_force", lambda: text)
    made = Stage(nodes=[{"name": "n0", "cpu": 64, "memory": "256Gi", "gpu": 8}], setup=DEPLOYED)
    runtime.use(made.cluster)
    made.class_("high", 1000)
    for name in ("first", "second", "third"):
        made.submit(manifest(name, 1, cpu=4, gpu=8))
        made.rest()
    hour = runtime.now()
    factories.job("past", phase="Completed", started_at=hour - timedelta(hours=3), finished_at=hour - timedelta(hours=2)).save()
    for kind in (QUEUE, NODE, JOB, POD_GROUP, POD):
        PROJECTIONS[kind].project(Batch(made.cluster.list(kind).items))
    yield made
    runtime.use(None)
