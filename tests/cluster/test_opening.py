"""Opening the embedded cluster as the run command does."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from cluster.admission import Admission
from cluster.embedded import open_embedded
from cluster.embedded.fates import INSTANT
from cluster.embedded.lock import StoreLocked
from cluster.kinds import POD
from cluster.port import Binding

pytestmark = pytest.mark.django_db(databases="__all__", transaction=True)


def test_one_owner_at_a_time_and_pods_go_on_after_reopening(tmp_path: Path) -> None:
    opened = open_embedded(tmp_path, admission=Admission(), timing=INSTANT)
    with pytest.raises(StoreLocked):
        open_embedded(tmp_path, admission=Admission())
    notes = {"sim.basalt.dev/duration": "0s"}
    spec = {"restartPolicy": "Never", "containers": [{"name": "c", "image": "i"}]}
    opened.cluster.create(POD, {"metadata": {"name": "p", "annotations": notes}, "spec": spec})
    opened.cluster.bind(Binding("default", "p", "", "n"))
    opened.close()

    again = open_embedded(tmp_path, admission=Admission(), timing=INSTANT)
    watch = again.cluster.watch([POD])
    stop = threading.Event()
    thread = threading.Thread(target=again.kubelet.run, args=(stop,))
    thread.start()
    phases = []
    while "Succeeded" not in phases:
        event = watch.get(10)
        assert event is not None
        if event.object:
            phases.append(event.object["status"]["phase"])
    stop.set()
    thread.join(5)
    again.close()
    assert phases == ["Pending", "Running", "Succeeded"]


def test_a_store_that_cannot_be_read_leaves_no_lock_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(self: object) -> None:
        raise OSError("disk")

    monkeypatch.setattr("cluster.embedded.table.StoreTable.load", fail)
    with pytest.raises(OSError, match="disk"):
        open_embedded(tmp_path)
    monkeypatch.undo()
    open_embedded(tmp_path).close()
