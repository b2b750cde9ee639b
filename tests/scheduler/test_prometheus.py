"""Measurements of nodes from a Prometheus server: how it is asked, what an answer means, and what trouble does."""

from __future__ import annotations

import json
import urllib.parse
from concurrent.futures import ThreadPoolExecutor
from http.server import BaseHTTPRequestHandler, HTTPServer
from threading import Thread
from typing import Any

import pytest

from cluster.admission import Admission
from cluster.clock import ManualClock
from cluster.embedded.store import EmbeddedCluster
from cluster.kinds import NODE, POD, POD_GROUP, QUEUE
from scheduler import conf
from scheduler.loop import SchedulerLoop
from scheduler.prometheus import Meter, fetch_url, read
from tests.scheduler.world import gang, node, queue

CPU, MEMORY = {"n1": "12.5", "n2:9100": "80", "n3": "NaN"}, {"n1": "40", "n2:9100": "81", "n3": "1"}


def answer(values: dict[str, str]) -> bytes:
    rows = [{"metric": {"instance": name}, "value": [1.0, value]} for name, value in values.items()]
    return json.dumps({"status": "success", "data": {"resultType": "vector", "result": rows}}).encode()


class Server:
    """Answers as Prometheus does, and remembers what it was asked."""

    def __init__(self, body: Any = None) -> None:
        self.asked: list[str] = []
        self.body = body

    def __call__(self, url: str, seconds: float) -> bytes:
        self.asked.append(url)
        if isinstance(self.body, Exception):
            raise self.body
        query = urllib.parse.parse_qs(urllib.parse.urlsplit(url).query)["query"][0]
        return self.body if self.body is not None else answer(CPU if "node_cpu_seconds_total" in query else MEMORY)


def test_every_node_that_tells_both_is_measured_a_port_apart() -> None:
    server = Server()
    assert read("http://p:9090/", server, 7.0) == {"n1": (12.5, 40.0, 7.0), "n2": (80.0, 81.0, 7.0)}
    assert all(url.startswith("http://p:9090/api/v1/query?query=") for url in server.asked)


@pytest.mark.parametrize(
    "body", [b"<html>", b"[]", b'{"data": {}}', b'{"data": {"result": [{"metric": {}, "value": [1, "2"]}]}}']
)
def test_an_answer_of_another_kind_is_named(body: bytes) -> None:
    with pytest.raises(ValueError, match="http://p does not answer as Prometheus does"):
        read("http://p", Server(body), 0.0)


def test_trouble_keeps_the_last_good_answer_and_is_said_once(caplog: pytest.LogCaptureFixture) -> None:
    server = Server()
    meter = Meter(server)
    assert meter.tick("http://p", 30, 100, None)
    server.body = OSError("refused")
    assert not meter.tick("http://p", 30, 130, None)
    assert not meter.tick("http://p", 30, 160, None)
    assert meter.usage["n1"] == (12.5, 40.0, 100)
    assert [record.message for record in caplog.records] == ["what nodes use is not known: refused"]


def test_it_is_asked_once_an_interval_and_beside_the_cycles() -> None:
    server = Server()
    meter = Meter(server)
    with ThreadPoolExecutor(1) as pool:
        assert not meter.tick("http://p", 30, 100, pool)
    assert meter.tick("http://p", 30, 101, None)
    assert not meter.tick("http://p", 30, 129.9, None)
    assert len(server.asked) == 2


def test_the_loop_places_by_what_it_was_told() -> None:
    text = """\
actions: "allocate"
tiers:
- plugins:
  - name: gang
  - name: usage
metrics: {type: prometheus, address: "http://p:9090", interval: 30s}
"""
    clock = ManualClock(1_900_000_000.0)
    store = EmbeddedCluster(clock=clock, admission=Admission())
    head, pod = gang("a", 1, cpu=1, memory="1Gi")
    for kind, obj in ((QUEUE, queue("default")), (NODE, node("n2")), (NODE, node("n1")), (POD_GROUP, head), (POD, pod)):
        made = store.create(kind, obj)
        if kind.has_status:
            store.patch_status(kind, made["metadata"]["name"], made["metadata"].get("namespace", ""), obj["status"])
    SchedulerLoop(store, conf.load(text), clock, fetch=Server()).step()
    assert store.get(POD, "a-w-0", "default")["spec"]["nodeName"] == "n1"


def test_urls_are_fetched_and_refusals_are_os_errors() -> None:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200 if self.path == "/good" else 503)
            self.end_headers()
            self.wfile.write(b"body")

        def log_message(self, *args: Any) -> None:
            """Say nothing."""

    with HTTPServer(("127.0.0.1", 0), Handler) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        address = f"http://127.0.0.1:{server.server_port}"
        assert fetch_url(f"{address}/good", 5) == b"body"
        with pytest.raises(OSError, match="503"):
            fetch_url(f"{address}/bad", 5)
        server.shutdown()
    with pytest.raises(OSError, match="refused"):
        fetch_url(f"{address}/good", 1)
