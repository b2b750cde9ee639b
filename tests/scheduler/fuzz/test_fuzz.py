"""Whatever the cluster, the configuration and what happens meanwhile: nothing crashes, and what must hold holds."""

from __future__ import annotations

from random import Random

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.scheduler.fuzz.clusters import random_cluster
from tests.scheduler.fuzz.confs import random_conf
from tests.scheduler.fuzz.play import play, random_events


@settings(deadline=None, max_examples=12)
@given(st.integers(0, 1_000_000))
def test_any_cluster_under_any_configuration(seed: int) -> None:
    random = Random(seed)
    conf = random_conf(random)
    parts, later = random_cluster(random)
    play(parts, later, conf, random_events(random), seed=seed)
