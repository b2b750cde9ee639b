"""Who may write no more finds every write refused, also in the middle of a batch; reading goes on."""

from __future__ import annotations

import pytest

from cluster.embedded.store import EmbeddedCluster
from cluster.errors import Unavailable
from cluster.fenced import A_PART, fenced
from cluster.kinds import CONFIG_MAP
from cluster.port import Victim


def test_every_write_asks_first_and_reading_does_not() -> None:
    inner, allowed = EmbeddedCluster(), True

    def check() -> None:
        if not allowed:
            raise Unavailable("no more")

    cluster = fenced(inner, check)
    made = cluster.create(CONFIG_MAP, {"metadata": {"name": "a", "namespace": "default"}, "data": {}})
    victim = Victim("default", "a", made["metadata"]["uid"])
    allowed = False
    for write in (
        lambda: cluster.create(CONFIG_MAP, {"metadata": {"name": "b", "namespace": "default"}}),
        lambda: cluster.replace(CONFIG_MAP, made),
        lambda: cluster.patch(CONFIG_MAP, "a", "default", {"data": {"x": "y"}}),
        lambda: cluster.patch_status(CONFIG_MAP, "a", "default", {}),
        lambda: cluster.delete(CONFIG_MAP, "a", "default"),
        lambda: cluster.create_many(CONFIG_MAP, [{"metadata": {"name": "b", "namespace": "default"}}]),
        lambda: cluster.patch_many(CONFIG_MAP, [(victim, {"data": {"x": "y"}})]),
        lambda: cluster.delete_many(CONFIG_MAP, [victim]),
    ):
        with pytest.raises(Unavailable, match="no more"):
            write()
    assert cluster.list(CONFIG_MAP).items == [made]


def test_a_batch_ends_between_two_of_its_parts() -> None:
    inner, asked = EmbeddedCluster(), []

    def check() -> None:
        asked.append(len(inner.list(CONFIG_MAP).items))
        if len(asked) == 3:
            raise Unavailable("no more")

    maps = [{"metadata": {"name": f"m-{number:03}", "namespace": "default"}} for number in range(3 * A_PART)]
    with pytest.raises(Unavailable):
        fenced(inner, check).create_many(CONFIG_MAP, maps)
    assert asked == [0, A_PART, 2 * A_PART]
    outcomes = fenced(inner, lambda: None).create_many(CONFIG_MAP, maps)
    assert [outcome.error is None for outcome in outcomes] == [False] * 2 * A_PART + [True] * A_PART
