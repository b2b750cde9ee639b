"""The port over HTTP: the embedded cluster's Kubernetes API on one side, the Kubernetes client on the other."""

from __future__ import annotations

import contextlib
import json
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import uvicorn
from structlog.testing import capture_logs

from cluster.admission import Admission
from cluster.embedded.http import KubernetesApi
from cluster.embedded.store import EmbeddedCluster
from cluster.errors import ApiError, Expired, Forbidden, NotFound, Unavailable
from cluster.kinds import CONFIG_MAP, JOB, NODE, POD, SECRET, Kind
from cluster.kubernetes import KubernetesCluster, connect, watch
from cluster.kubernetes.answers import refusal
from cluster.kubernetes.watch import KubernetesWatch
from tests.cluster.port_objects import NS, collect, config, shown, synced
from tests.cluster.port_suite import PortSuite


class OpenGate:
    """Lets `all` in everywhere; `some` reads ConfigMaps alone."""

    def user(self, token: str) -> str | None:
        return token if token in ("all", "some") else None

    def may_read(self, user: str, kind: Kind, part: str = "") -> bool:
        return user == "all" or kind == CONFIG_MAP

    def sees_all(self, user: str) -> bool:
        return user == "all"

    def check_write(self, user: str, *_: Any) -> None:
        if user != "all":
            raise Forbidden("you may not write")


class Served:
    """A cluster behind a real HTTP server."""

    def __init__(self) -> None:
        self.cluster = EmbeddedCluster(admission=Admission(), history=50)
        settings = uvicorn.Config(
            KubernetesApi(lambda: self.cluster, OpenGate()),
            port=0,
            log_level="error",
            lifespan="off",
            timeout_graceful_shutdown=0,
        )
        self.server = uvicorn.Server(settings)
        self.thread = threading.Thread(target=self.server.run, daemon=True)
        self.thread.start()
        while not self.server.started:
            time.sleep(0.005)
        self.url = f"http://127.0.0.1:{self.server.servers[0].sockets[0].getsockname()[1]}"

    def close(self) -> None:
        self.server.should_exit = self.server.force_exit = True
        self.thread.join(5)


@pytest.fixture(scope="module")
def served() -> Iterator[Served]:
    served = Served()
    yield served
    served.close()


@pytest.fixture
def port(served: Served) -> Iterator[KubernetesCluster]:
    served.cluster = EmbeddedCluster(admission=Admission(), history=50)
    client = connect(served.url, "all")
    yield client
    client.close()


def cut(watch: KubernetesWatch) -> None:
    """Break the connections of a watch, as a network would."""
    for stream in list(watch._streams.values()):
        with contextlib.suppress(ValueError):  # it has just ended by itself
            stream.shutdown()


class TestPort(PortSuite):
    def eventually(self, holds: Callable[[], bool]) -> None:
        end = time.monotonic() + 5
        while not holds():
            assert time.monotonic() < end
            time.sleep(0.01)


def test_without_a_known_token_nobody_gets_in(served: Served):
    for token in ("", "guessed"):
        with pytest.raises(Forbidden):
            connect(served.url, token).list(NODE)


def test_rights_are_asked_for_reading_and_for_writing(served: Served, port: KubernetesCluster):
    some = connect(served.url, "some")
    assert some.list(CONFIG_MAP).items == []
    for read in (lambda: some.list(SECRET), lambda: some.get(SECRET, "a", NS), lambda: some.watch([SECRET])):
        with pytest.raises(Forbidden):
            read()
    with pytest.raises(Forbidden):
        some.create(CONFIG_MAP, config("a"))


def test_a_server_that_is_not_there_is_unavailable():
    with pytest.raises(Unavailable):
        connect("http://127.0.0.1:1", "x").list(NODE)


def test_an_address_that_means_nothing_is_not_found(served: Served, port: KubernetesCluster):
    with pytest.raises(NotFound):
        port.get(Kind("batch.volcano.sh", "v9", "Job", "jobs"), "a", NS)
    with pytest.raises(NotFound):
        port.get(JOB, "a", NS)


def test_a_watch_that_fell_behind_the_servers_history_tells_the_difference(served: Served, port: KubernetesCluster):
    port.create(CONFIG_MAP, config("stays"))
    port.create(CONFIG_MAP, config("goes"))
    watch = port.watch([CONFIG_MAP], namespace=NS)
    synced(watch)
    held = served.cluster
    served.cluster = None  # the server answers nothing for a while
    cut(watch)
    held.delete(CONFIG_MAP, "goes", NS)
    for number in range(200):
        held.create(CONFIG_MAP, config(f"new-{number % 3}-{number}"))
    held.create(CONFIG_MAP, config("zz-last"))
    served.cluster = held
    events = collect(watch, lambda seen: ("DELETED", "goes") in shown(seen), 20)
    assert ("ADDED", "zz-last") in shown(events)
    assert sum(kind == "ADDED" and name.startswith("new-") for kind, name in shown(events)) == 200
    watch.close()


def test_a_stream_that_breaks_goes_on_where_it_was(served: Served, port: KubernetesCluster):
    watch = port.watch([CONFIG_MAP], namespace=NS)
    synced(watch)
    for number in range(5):
        cut(watch)
        port.create(CONFIG_MAP, config(f"c-{number}"))
    events = collect(watch, lambda seen: len(seen) == 5, 20)
    assert shown(events) == [("ADDED", f"c-{number}") for number in range(5)]
    watch.close()


def test_a_webhook_that_does_not_answer_refuses_nothing():
    message = 'Internal error occurred: failed calling webhook "podgroups.validate.basalt.dev": connection refused'
    body = {"kind": "Status", "reason": "InternalError", "message": message}
    assert type(refusal(500, json.dumps(body).encode())) is Unavailable
    assert type(refusal(500, json.dumps({**body, "message": "else"}).encode())) is ApiError


@pytest.mark.parametrize("refused", [NotFound("the cluster answered 404"), Unavailable("the cluster does not answer")])
def test_a_kind_of_ours_that_is_away_is_asked_for_soon_and_missed_aloud_once(
    port: KubernetesCluster, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, refused: ApiError
) -> None:
    """As when its definition is deleted, with its objects, and installed again."""
    for name, seconds in (("_FIRST_PAUSE", 0.01), ("_LONGEST_PAUSE", 0.01), ("_ABSENT_PAUSE", 3600.0)):
        monkeypatch.setattr(watch, name, seconds)
    lists, streams = list[Kind](), list[Kind]()
    whole_list, whole_stream = KubernetesWatch._listing, KubernetesWatch._stream

    def listing(self: KubernetesWatch, kind: Kind) -> Any:
        lists.append(kind)
        if 2 <= len(lists) <= 4:
            raise refused
        return whole_list(self, kind)

    def stream(self: KubernetesWatch, kind: Kind, *more: Any) -> str:
        streams.append(kind)
        if len(streams) == 1:
            raise Expired("too old")
        return whole_stream(self, kind, *more)

    monkeypatch.setattr(KubernetesWatch, "_listing", listing)
    monkeypatch.setattr(KubernetesWatch, "_stream", stream)
    with capture_logs() as outages, contextlib.closing(port.watch([JOB])) as watching:
        port.create(JOB, {"metadata": {"name": "train", "namespace": NS}, "spec": {}})
        until = time.monotonic() + 10
        while time.monotonic() < until and not any(event.kind == JOB for event in watching.drain()):
            time.sleep(0.01)
        assert time.monotonic() < until
    assert len(lists) == 5
    missed = [record.getMessage() for record in caplog.records if "cannot be watched" in record.getMessage()]
    away = [(line["event"], line.get("error")) for line in outages if "not heard of" in line["event"]]
    if isinstance(refused, Unavailable):
        deaf = "what changes in the cluster is not heard of"
        assert (missed, away) == ([], [(deaf, str(refused)), (f"{deaf}: no more", None)])
    else:
        assert (missed, away) == ([f"jobs.batch.volcano.sh cannot be watched now: {refused}"], [])


def test_a_server_that_is_away_is_told_of_once_for_all_kinds(port: KubernetesCluster, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("_FIRST_PAUSE", "_LONGEST_PAUSE"):
        monkeypatch.setattr(watch, name, 0.01)
    kinds, tries = [JOB, POD, CONFIG_MAP], Counter[Kind]()
    whole_list, whole_stream, back = KubernetesWatch._listing, KubernetesWatch._stream, threading.Event()

    def answer(kind: Kind) -> None:
        if not back.is_set():
            tries[kind] += 1
            raise Unavailable(f"the cluster does not answer: /{kind}?try={tries[kind]}")

    def listing(self: KubernetesWatch, kind: Kind) -> Any:
        if kind in tries:  # the first list of all went well
            answer(kind)
        return whole_list(self, kind)

    def stream(self: KubernetesWatch, kind: Kind, *more: Any) -> str:
        answer(kind)
        return whole_stream(self, kind, *more)

    monkeypatch.setattr(KubernetesWatch, "_listing", listing)
    monkeypatch.setattr(KubernetesWatch, "_stream", stream)
    with capture_logs() as said, contextlib.closing(port.watch(kinds)):
        until = time.monotonic() + 10
        while time.monotonic() < until and min(tries[kind] for kind in kinds) < 3:
            time.sleep(0.01)
        back.set()
        while time.monotonic() < until and not any(line["event"].endswith("no more") for line in said):
            time.sleep(0.01)
    assert [line["log_level"] for line in said if "not heard of" in line["event"]] == ["warning", "info"]


@pytest.mark.parametrize("text", [b"a: [b", b"\xff\xfe\x00"])
def test_a_kubeconfig_that_is_none_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: bytes) -> None:
    (file := tmp_path / "kubeconfig").write_bytes(text)
    for module in ("kubernetes.config", "kubernetes.config.kube_config"):  # which read KUBECONFIG when they are imported
        monkeypatch.setattr(f"{module}.KUBE_CONFIG_DEFAULT_LOCATION", str(file))
    with pytest.raises(Unavailable, match=f"no cluster is configured: {file} is no kubeconfig: "):
        connect()
