"""The local copy: it follows the cluster, never behind what its own user wrote."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from cluster import objects
from cluster.admission import Admission
from cluster.clock import ManualClock
from cluster.embedded.store import EmbeddedCluster
from cluster.informer import Informer
from cluster.kinds import CONFIG_MAP, POD, QUEUE
from cluster.port import Obj


def team(obj: Obj) -> Iterator[str]:
    if found := objects.labels(obj).get("team"):
        yield found


def config(name: str, **labels: str) -> Obj:
    meta = {"name": name, "namespace": "default", "labels": labels}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta, "data": {}}


@pytest.fixture
def cluster() -> EmbeddedCluster:
    return EmbeddedCluster(clock=ManualClock(1e9), admission=Admission())


@pytest.fixture
def informer(cluster: EmbeddedCluster) -> Informer:
    made = Informer(cluster, (CONFIG_MAP, POD), {(CONFIG_MAP, "team"): team})
    made.start()
    made.pump()
    return made


def names(found: list[Obj]) -> list[str]:
    return [objects.name(obj) for obj in found]


def test_it_knows_what_was_there_before_it_began(cluster: EmbeddedCluster):
    cluster.create(CONFIG_MAP, config("a"))
    informer = Informer(cluster, (CONFIG_MAP,), {})
    informer.start()
    assert [change.old for change in informer.pump()] == [None]
    assert informer.synced
    assert names(informer.all(CONFIG_MAP)) == ["a"]


def test_indexes_follow_creation_change_and_deletion(cluster: EmbeddedCluster, informer: Informer):
    for name, label in (("a", "red"), ("b", "red"), ("c", "blue")):
        cluster.create(CONFIG_MAP, config(name, team=label))
    informer.pump()
    assert names(informer.by(CONFIG_MAP, "team", "red")) == ["a", "b"]
    cluster.patch(CONFIG_MAP, "a", "default", {"metadata": {"labels": {"team": "blue"}}})
    cluster.delete(CONFIG_MAP, "b", "default")
    informer.pump()
    assert informer.by(CONFIG_MAP, "team", "red") == []
    assert names(informer.by(CONFIG_MAP, "team", "blue")) == ["c", "a"]


def test_changes_say_what_was_and_what_is(cluster: EmbeddedCluster, informer: Informer):
    cluster.create(CONFIG_MAP, config("a"))
    informer.pump()
    cluster.patch(CONFIG_MAP, "a", "default", {"data": {"k": "v"}})
    (change,) = informer.pump()
    assert change.old is not None
    assert change.new is not None
    assert (change.old["data"], change.new["data"]) == ({}, {"k": "v"})
    cluster.delete(CONFIG_MAP, "a", "default")
    (change,) = informer.pump()
    assert change.new is None
    assert objects.name(change.object) == "a"


def test_an_own_write_is_seen_at_once_told_once_and_not_undone_by_an_older_event(cluster: EmbeddedCluster, informer: Informer):
    cluster.create(CONFIG_MAP, config("a"))
    newer = cluster.patch(CONFIG_MAP, "a", "default", {"data": {"k": "new"}})
    informer.observe(CONFIG_MAP, newer)
    assert informer.get(CONFIG_MAP, "default/a") == newer
    assert len(informer.pump()) == 1  # the two events of the watch are no news any more
    assert informer.get(CONFIG_MAP, "default/a") == newer


def test_what_was_deleted_by_its_user_is_not_brought_back_by_a_late_event(cluster: EmbeddedCluster, informer: Informer):
    made = cluster.create(CONFIG_MAP, config("a"))
    informer.observe(CONFIG_MAP, made)
    cluster.patch(CONFIG_MAP, "a", "default", {"data": {"k": "late"}})
    informer.forget(CONFIG_MAP, made)
    assert informer.get(CONFIG_MAP, "default/a") is None
    informer.pump()
    assert informer.get(CONFIG_MAP, "default/a") is None


def test_a_new_object_of_an_old_name_is_another_one(cluster: EmbeddedCluster, informer: Informer):
    cluster.create(CONFIG_MAP, config("a"))
    informer.pump()
    cluster.delete(CONFIG_MAP, "a", "default")
    second = cluster.create(CONFIG_MAP, config("a"))
    informer.pump()
    found = informer.get(CONFIG_MAP, "default/a")
    assert found is not None
    assert objects.uid(found) == objects.uid(second)


def test_an_object_that_an_index_cannot_read_hides_no_other(cluster: EmbeddedCluster):
    def picky(obj: Obj) -> list[Any]:
        return [obj["data"]["needed"]]

    informer = Informer(cluster, (CONFIG_MAP,), {(CONFIG_MAP, "picky"): picky})
    informer.start()
    cluster.create(CONFIG_MAP, config("odd"))
    cluster.create(CONFIG_MAP, config("sound") | {"data": {"needed": "x"}})
    informer.pump()
    assert names(informer.by(CONFIG_MAP, "picky", "x")) == ["sound"]


def test_kinds_that_are_not_watched_are_left_alone(informer: Informer):
    informer.observe(QUEUE, {"metadata": {"name": "q", "uid": "1", "resourceVersion": "5"}})
    assert informer.pump() == []
