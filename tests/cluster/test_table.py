"""The table behind the store: restart, refusal, and the order of commit and watch."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Sequence

import pytest

from cluster.admission import Admission
from cluster.embedded.memory import Change
from cluster.embedded.store import EmbeddedCluster
from cluster.embedded.table import StoreTable
from cluster.errors import NotFound, Unavailable
from cluster.kinds import CONFIG_MAP, NAMESPACE
from cluster.models import StoredObject
from cluster.port import Obj, StatusWrite

pytestmark = pytest.mark.django_db(databases="__all__", transaction=True)


def config(name: str, data: dict[str, str] | None = None) -> Obj:
    return {"metadata": {"name": name, "namespace": "ns"}, "data": data or {}}


def open_store(table: StoreTable) -> EmbeddedCluster:
    return EmbeddedCluster(table=table, admission=Admission(), start=table.load())


@pytest.fixture
def table() -> Iterator[StoreTable]:
    table = StoreTable()
    yield table
    table.close()


def test_a_restart_finds_every_object_as_it_was(table: StoreTable) -> None:
    cluster = open_store(table)
    cluster.create(CONFIG_MAP, config("kept", {"k": "v"}))
    cluster.create(CONFIG_MAP, config("gone"))
    cluster.delete(CONFIG_MAP, "gone", "ns")
    cluster.patch(CONFIG_MAP, "kept", "ns", {"data": {"k": "w"}})
    again = open_store(StoreTable())
    assert again.list(CONFIG_MAP).items == cluster.list(CONFIG_MAP).items
    assert again.get(NAMESPACE, "ns") == cluster.get(NAMESPACE, "ns")


def test_versions_go_on_after_a_restart_even_when_the_newest_object_was_deleted(table: StoreTable) -> None:
    cluster = open_store(table)
    cluster.create(CONFIG_MAP, config("a"))
    cluster.delete(CONFIG_MAP, "a", "ns")
    last = int(cluster.list(CONFIG_MAP).resource_version)
    again = open_store(StoreTable())
    assert int(again.create(CONFIG_MAP, config("b"))["metadata"]["resourceVersion"]) == last + 1


def test_owners_cascade_after_a_restart(table: StoreTable) -> None:
    cluster = open_store(table)
    top = cluster.create(CONFIG_MAP, config("top"))
    owner = {"apiVersion": "v1", "kind": "ConfigMap", "name": "top", "uid": top["metadata"]["uid"]}
    leaf = config("leaf")
    leaf["metadata"]["ownerReferences"] = [owner]
    cluster.create(CONFIG_MAP, leaf)
    again = open_store(table)
    again.delete(CONFIG_MAP, "top", "ns")
    assert again.list(CONFIG_MAP).items == []
    assert not StoredObject.objects.filter(kind="configmaps").exists()


def test_a_row_that_cannot_be_read_is_left_alone_and_told(table: StoreTable, caplog: pytest.LogCaptureFixture) -> None:
    open_store(table).create(CONFIG_MAP, config("good"))
    for name, kind, body in (("broken", "configmaps", b"{"), ("strange", "toasters.example.com", b"{}")):
        StoredObject.objects.create(kind=kind, namespace="ns", name=name, uid="x", resource_version=99, body=body)
    cluster = open_store(table)
    assert [obj["metadata"]["name"] for obj in cluster.list(CONFIG_MAP).items] == ["good"]
    assert "ns/broken" in caplog.text
    assert "ns/strange" in caplog.text
    assert StoredObject.objects.filter(name__in=["broken", "strange"]).count() == 2


class FailingTable(StoreTable):
    """Refuses when told to; with `late`, only after the commit, as when the answer of a commit is lost."""

    fail = False
    late = False

    def _transact(self, gone, rows) -> None:  # type: ignore[no-untyped-def]
        if self.fail and not self.late:
            raise OSError("disk full")
        super()._transact(gone, rows)
        if self.fail:
            raise OSError("connection lost")


@pytest.mark.parametrize("late", [False, True])
def test_a_write_that_the_table_refuses_is_undone_and_never_shown(late: bool) -> None:
    table = FailingTable()
    cluster = open_store(table)
    cluster.create(CONFIG_MAP, config("old", {"k": "1"}))
    watch = cluster.watch([CONFIG_MAP])
    watch.drain()
    table.fail, table.late = True, late
    for attempt in (
        lambda: cluster.create(CONFIG_MAP, config("new")),
        lambda: cluster.patch(CONFIG_MAP, "old", "ns", {"data": {"k": "2"}}),
        lambda: cluster.delete(CONFIG_MAP, "old", "ns"),
    ):
        with pytest.raises(Unavailable):
            attempt()
    assert watch.drain() == []
    assert cluster.get(CONFIG_MAP, "old", "ns")["data"] == {"k": "1"}
    with pytest.raises(NotFound):
        cluster.get(CONFIG_MAP, "new", "ns")
    table.fail = False
    cluster.create(CONFIG_MAP, config("after"))
    assert [e.object["metadata"]["name"] for e in watch.drain()] == ["after"]
    again = open_store(StoreTable())
    assert again.list(CONFIG_MAP).items == cluster.list(CONFIG_MAP).items
    table.close()


class SlowTable(StoreTable):
    """Counts its transactions and takes its time."""

    transactions = 0

    def write(self, changes: Sequence[Change], version: int) -> None:
        self.transactions += 1
        time.sleep(0.02)
        super().write(changes, version)


def test_writers_that_wait_at_the_same_time_share_a_transaction() -> None:
    table = SlowTable()
    cluster = open_store(table)
    threads = [threading.Thread(target=cluster.create, args=(CONFIG_MAP, config(f"c{n}"))) for n in range(40)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(cluster.list(CONFIG_MAP).items) == 40
    assert table.transactions < 20
    assert len(open_store(StoreTable()).list(CONFIG_MAP).items) == 40
    table.close()


def test_a_watcher_sees_a_change_only_when_it_is_in_the_table() -> None:
    table = SlowTable()
    cluster = open_store(table)
    watch = cluster.watch([CONFIG_MAP])
    watch.drain()
    threading.Thread(target=cluster.create, args=(CONFIG_MAP, config("a"))).start()
    event = watch.get(5)
    assert event is not None
    assert StoredObject.objects.filter(kind="configmaps", name="a").exists()
    table.close()


def test_many_statuses_are_one_transaction() -> None:
    table = SlowTable()
    cluster = open_store(table)
    for number in range(3):
        cluster.create(CONFIG_MAP, config(f"c{number}"))
    before = table.transactions
    outcomes = cluster.patch_status_many(CONFIG_MAP, [StatusWrite("ns", f"c{n}", {"n": n}) for n in range(4)])
    assert [outcome.error is None for outcome in outcomes] == [True, True, True, False]
    assert table.transactions == before + 1
    table.close()
