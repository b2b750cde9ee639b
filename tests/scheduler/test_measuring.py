"""Measurements of nodes from monitoring servers: how they are asked, what an answer means, and what trouble does."""

from __future__ import annotations

import json
import ssl
import subprocess
import urllib.parse
from concurrent.futures import ThreadPoolExecutor
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

from cluster.admission import Admission
from cluster.clock import ManualClock
from cluster.embedded.store import EmbeddedCluster
from cluster.kinds import NODE, POD, POD_GROUP, QUEUE
from scheduler import conf
from scheduler.loop import SchedulerLoop
from scheduler.measuring import Request, Source, fetch_url
from scheduler.meter import Meter, read
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

    def __call__(self, request: Request) -> bytes:
        url = request.url
        self.asked.append(url)
        if isinstance(self.body, Exception):
            raise self.body
        query = urllib.parse.parse_qs(urllib.parse.urlsplit(url).query)["query"][0]
        return self.body if self.body is not None else answer(CPU if "node_cpu_seconds_total" in query else MEMORY)


def at(address: str, **more: Any) -> Source:
    source = Source.of({"address": address, **more})
    assert source is not None
    return source


def test_every_node_that_tells_both_is_measured_a_port_apart() -> None:
    server = Server()
    assert read(at("http://p:9090/"), server, 7.0) == {"n1": (12.5, 40.0, 7.0), "n2": (80.0, 81.0, 7.0)}
    assert all(url.startswith("http://p:9090/api/v1/query?query=") for url in server.asked)


@pytest.mark.parametrize(
    "body", [b"<html>", b"[]", b'{"data": {}}', b'{"data": {"result": [{"metric": {}, "value": [1, "2"]}]}}']
)
def test_an_answer_of_another_kind_is_named(body: bytes) -> None:
    with pytest.raises(ValueError, match="http://p does not answer as Prometheus does"):
        read(at("http://p"), Server(body), 0.0)


def test_trouble_keeps_the_last_good_answer_and_is_said_once(caplog: pytest.LogCaptureFixture) -> None:
    server = Server()
    meter = Meter(server)
    assert meter.tick(at("http://p"), 30, 100, None)
    server.body = OSError("refused")
    assert not meter.tick(at("http://p"), 30, 130, None)
    assert not meter.tick(at("http://p"), 30, 160, None)
    assert meter.usage["n1"] == (12.5, 40.0, 100)
    assert [record.message for record in caplog.records] == ["what nodes use is not known: refused"]


def test_it_is_asked_once_an_interval_and_beside_the_cycles() -> None:
    server = Server()
    meter = Meter(server)
    with ThreadPoolExecutor(1) as pool:
        assert not meter.tick(at("http://p"), 30, 100, pool)
    assert meter.tick(at("http://p"), 30, 101, None)
    assert not meter.tick(at("http://p"), 30, 129.9, None)
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
        assert fetch_url(Request(f"{address}/good")) == b"body"
        with pytest.raises(OSError, match="503"):
            fetch_url(Request(f"{address}/bad"))
        server.shutdown()
    with pytest.raises(OSError, match="refused"):
        fetch_url(Request(f"{address}/good", seconds=1))


# -- Elasticsearch -----------------------------------------------------------------------------------------------------------

BEATS = {"type": "elasticsearch", "elasticsearch.username": "u", "elasticsearch.password": "p:w"}


def buckets(*rows: tuple[str, Any, Any]) -> bytes:
    found = [{"key": name, "doc_count": 1, "cpu": {"value": cpu}, "mem": {"value": memory}} for name, cpu, memory in rows]
    return json.dumps({"aggregations": {"nodes": {"buckets": found}}}).encode()


def test_one_search_of_elasticsearch_tells_of_all_nodes() -> None:
    asked: list[Request] = []

    def fetch(request: Request) -> bytes:
        asked.append(request)
        return buckets(("n1", 0.125, 0.5), ("n2", 1.5, 0.25), ("n3", None, 0.1), ("n4", -1, 0.1))

    found = read(
        at("https://e:9200/", **BEATS, **{"elasticsearch.index": "beats-*", "tls.insecureSkipVerify": "true"}), fetch, 7.0
    )
    assert found == {"n1": (12.5, 50.0, 7.0), "n2": (150.0, 25.0, 7.0)}
    (request,) = asked
    assert (request.url, request.verify) == ("https://e:9200/beats-*/_search", False)
    assert request.headers == {"Content-Type": "application/json", "Authorization": "Basic dTpwOnc="}
    search = json.loads(request.body or b"")
    assert search["query"] == {"range": {"@timestamp": {"gte": "now-10m", "lt": "now"}}}
    aggregation = search["aggs"]["nodes"]
    assert aggregation["terms"] == {"field": "host.hostname", "size": 65_535}
    assert aggregation["aggs"] == {
        "cpu": {"avg": {"field": "host.cpu.usage"}},
        "mem": {"avg": {"field": "system.memory.actual.used.pct"}},
    }


def test_another_field_may_name_the_host() -> None:
    source = at("http://e", type="elasticsearch", **{"elasticsearch.hostnameFieldName": "agent.name"})
    asked: list[Request] = []
    assert read(source, lambda request: asked.append(request) or buckets(), 0.0) == {}  # type: ignore[func-returns-value]
    assert json.loads(asked[0].body or b"")["aggs"]["nodes"]["terms"]["field"] == "agent.name"
    assert asked[0].url == "http://e/metricbeat-*/_search"


@pytest.mark.parametrize(
    "body", [b"<html>", b"[]", b'{"error": {}}', b'{"aggregations": {"nodes": {"buckets": [{"key": "n"}]}}}']
)
def test_an_answer_that_is_not_elasticsearchs_is_named(body: bytes) -> None:
    with pytest.raises(ValueError, match="http://e does not answer as Elasticsearch does"):
        read(at("http://e", type="elasticsearch"), lambda request: body, 0.0)


def test_a_password_is_not_shown_by_chance() -> None:
    assert "p:w" not in repr(at("http://e", **BEATS))
    assert "dTpwOnc" not in repr(at("http://e", **BEATS).request("x"))


# -- certificates ------------------------------------------------------------------------------------------------------------


def test_a_certificate_that_nobody_knows_is_refused_unless_told_otherwise(tmp_path: Path) -> None:
    made = tmp_path / "made.pem"
    command = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "1", "-subj", "/CN=localhost"]
    done = subprocess.run([*command, "-keyout", str(made), "-out", str(tmp_path / "cert.pem")], capture_output=True, check=False)
    if done.returncode:
        pytest.skip("openssl makes no certificate here")
    made.write_text(made.read_text() + (tmp_path / "cert.pem").read_text())

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.end_headers()
            self.wfile.write(b"body")

        def log_message(self, *args: Any) -> None:
            """Say nothing."""

    with HTTPServer(("127.0.0.1", 0), Handler) as server:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(made)
        server.socket = context.wrap_socket(server.socket, server_side=True)
        Thread(target=server.serve_forever, daemon=True).start()
        address = f"https://127.0.0.1:{server.server_port}"
        with pytest.raises(OSError, match="CERTIFICATE_VERIFY_FAILED"):
            fetch_url(at(address).request(""))
        assert fetch_url(at(address, **{"tls.insecureSkipVerify": True}).request("")) == b"body"
        server.shutdown()
