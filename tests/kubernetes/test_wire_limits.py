"""What others keep on objects, credentials that change under way, and bounds on what is under way at an API server."""

from __future__ import annotations

import itertools
import os
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
import yaml

from cluster.errors import Forbidden, Unanswered
from cluster.kinds import CONFIG_MAP, POD, POD_GROUP
from cluster.kubernetes import KubernetesCluster, connect
from cluster.port import Outcome
from testbed.server import ApiServer
from testbed.stack import eventually
from tests.kubernetes.faulty import Fault, Faulty, faulty
from tests.kubernetes.test_faults import clean, client, controlling, scheduling
from tests.kubernetes.test_wire_faults import follow, no_maps, parts

__all__ = ["clean", "client", "no_maps", "parts"]  # fixtures


def test_what_others_keep_on_objects_outlives_our_writes(client: Any, backend: KubernetesCluster) -> None:
    cluster, _ = client
    foreign = {"type": "example.com/Checked", "status": "True", "lastTransitionTime": "2026-01-01T00:00:00Z"}
    told = {**foreign, "reason": "Fine", "message": "by another controller"}
    meta = {"name": "ours", "annotations": {"example.com/note": "kept"}, "labels": {"example.com/team": "blue"}}
    backend.create(POD_GROUP, {"metadata": meta, "spec": {"minMember": 1, "queue": "default"}})
    backend.patch_status(POD_GROUP, "ours", "default", {"conditions": [{**told, "transitionID": "1"}]})
    notes = {"scheduling.k8s.io/group-name": "ours", "example.com/note": "kept"}
    container = {"name": "main", "image": "busybox", "resources": {"requests": {"cpu": "100m"}}}
    spec = {"schedulerName": "volcano", "readinessGates": [{"conditionType": foreign["type"]}], "containers": [container]}
    backend.create(POD, {"metadata": {"name": "ours-0", "annotations": notes, "finalizers": ["example.com/hold"]}, "spec": spec})
    backend.patch_status(POD, "ours-0", "default", {"conditions": [foreign]})
    try:
        with controlling(backend), scheduling(cluster):  # the controller makes the queue
            eventually(lambda: (backend.get(POD_GROUP, "ours", "default").get("status") or {}).get("running") == 1)
        group, pod = backend.get(POD_GROUP, "ours", "default"), backend.get(POD, "ours-0", "default")
        assert {**told, "transitionID": "1"} in group["status"]["conditions"]
        assert (group["metadata"]["annotations"]["example.com/note"], group["metadata"]["labels"]) == ("kept", meta["labels"])
        assert pod["metadata"]["annotations"]["example.com/note"] == "kept"
        assert pod["metadata"]["finalizers"] == ["example.com/hold"]
        assert pod["spec"]["readinessGates"] == spec["readinessGates"]
    finally:
        backend.patch(POD, "ours-0", "default", {"metadata": {"finalizers": None}})


ByFile = tuple[KubernetesCluster, Faulty, Path]


@pytest.fixture
def by_file(api_server: ApiServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ByFile]:
    """A client whose token is in a file, before a server that knows one token at a time."""
    proxy, token = Faulty(api_server), tmp_path / "token"
    proxy.allowed = "first"
    token.write_text("first\n")
    config = {
        "apiVersion": "v1", "kind": "Config", "current-context": "c",
        "clusters": [{"name": "c", "cluster": {"server": proxy.url}}],
        "users": [{"name": "u", "user": {"tokenFile": str(token)}}],
        "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
    }  # fmt: skip
    (tmp_path / "kubeconfig").write_text(yaml.safe_dump(config))
    for module in ("kubernetes.config", "kubernetes.config.kube_config"):  # which read KUBECONFIG when they are imported
        monkeypatch.setattr(f"{module}.KUBE_CONFIG_DEFAULT_LOCATION", str(tmp_path / "kubeconfig"))
    cluster = connect()
    yield cluster, proxy, token
    cluster.close()
    proxy.stop()


def test_a_token_that_was_changed_in_its_file_is_read_again(by_file: Any, backend: KubernetesCluster) -> None:
    cluster, proxy, token = by_file
    watching = cluster.watch([CONFIG_MAP], namespace="default", labels="wire=yes")
    follow(watching, lambda events: ("SYNCED", "") in events)
    token.write_text("second")
    proxy.allowed = "second"
    outcomes: list[Outcome] = cluster.create_many(CONFIG_MAP, [{"metadata": {"name": "by-many", "labels": {"wire": "yes"}}}])
    assert [each.error for each in outcomes] == [None]
    assert follow(watching, lambda events: bool(events)) == [("ADDED", "by-many")]
    watching.close()
    assert cluster.get(CONFIG_MAP, "by-many", "default")["metadata"]["name"] == "by-many"
    assert list(proxy.tokens) == ["first", "second"]


def test_a_token_that_nobody_knows_is_refused_and_asked_for_no_more_than_once_in_a_while(by_file: Any) -> None:
    cluster, proxy, _ = by_file
    proxy.allowed = "other"
    for _ in range(3):
        with pytest.raises(Forbidden):
            cluster.get(CONFIG_MAP, "any", "default")
    assert proxy.tokens == {"first": 3}


def test_the_bound_on_writes_under_way_holds_over_all_batches(api_server: ApiServer, backend: KubernetesCluster) -> None:
    now, most, count = itertools.count(), 0, 0
    with faulty(api_server, at_once=3) as (cluster, proxy):
        lock = threading.Lock()

        def enter() -> None:
            nonlocal most, count
            with lock:
                count += 1
                most = max(most, count)
            time.sleep(0.05)
            with lock:
                count -= 1

        proxy.put(Fault("POST", "/configmaps", 1000, first=enter))

        def batch(_: int) -> list[Outcome]:
            made = [{"metadata": {"name": f"b-{next(now)}", "labels": {"wire": "yes"}}} for _ in range(6)]
            return cluster.create_many(CONFIG_MAP, made)

        with ThreadPoolExecutor(4) as threads:
            outcomes = [each for found in threads.map(batch, range(4)) for each in found]
    assert [each.error for each in outcomes] == [None] * 24
    assert most == 3


def test_a_rate_is_kept_by_batches_too(api_server: ApiServer) -> None:
    with faulty(api_server, rate=20) as (cluster, _):
        begin = time.monotonic()
        cluster.create_many(CONFIG_MAP, [{"metadata": {"name": f"r-{n}", "labels": {"wire": "yes"}}} for n in range(30)])
        assert time.monotonic() - begin >= 30 / 20 - 0.3


def test_a_client_that_is_closed_says_of_what_is_under_way_that_nothing_is_known(api_server: ApiServer) -> None:
    with faulty(api_server) as (cluster, proxy), ThreadPoolExecutor(1) as thread:
        proxy.put(Fault("POST", "/configmaps", 9, seconds=20))
        made = [{"metadata": {"name": f"c-{n}", "labels": {"wire": "yes"}}} for n in range(3)]
        outcomes = thread.submit(cluster.create_many, CONFIG_MAP, made)
        eventually(lambda: proxy.met == 3)
        cluster.close()
        assert [type(each.error) for each in outcomes.result(5)] == [Unanswered] * 3
        assert [type(each.error) for each in cluster.create_many(CONFIG_MAP, made)] == [Unanswered] * 3


def test_a_process_that_was_forked_makes_its_own_batches(api_server: ApiServer, backend: KubernetesCluster) -> None:
    with faulty(api_server) as (cluster, _):
        cluster.create_many(CONFIG_MAP, [{"metadata": {"name": "parent", "labels": {"wire": "yes"}}}])
        child = os.fork()
        if not child:
            made = cluster.create_many(CONFIG_MAP, [{"metadata": {"name": "child", "labels": {"wire": "yes"}}}])
            os._exit(0 if made[0].error is None else 1)
        assert os.waitpid(child, 0)[1] == 0
    assert backend.get(CONFIG_MAP, "child", "default")
