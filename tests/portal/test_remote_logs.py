"""Logs of pods on a Kubernetes cluster, by REST and on the page: a server that speaks HTTP as an API server does."""

from __future__ import annotations

import json
import threading
import time
from base64 import b64encode
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import pytest
from django.core.signals import request_finished
from django.db import close_old_connections
from django.test import Client

from cluster import runtime
from cluster.admission import admission
from cluster.admitted import Admitted
from cluster.errors import ApiError
from cluster.kinds import JOB, POD
from cluster.kubernetes import connect
from cluster.logs import remote as streams
from cluster.projection import Batch
from jobs.logs import remote, sending, tails
from jobs.models import Job, LogTail
from portal.mirror import PROJECTIONS
from tests.portal import objects as make

pytestmark = [
    pytest.mark.django_db(databases="__all__"),
    pytest.mark.filterwarnings("ignore:StreamingHttpResponse must consume asynchronous iterators"),
]
SECRET = "correct horse battery staple"
POD_LOG, JOB_LOGS = "/api/v1/pods/default/train-worker-0/log", "/api/v1/jobs/default/train/logs"


class FakeServer:
    """Pods, Secrets and logs; a log that is followed goes on until the pod has ended."""

    def __init__(self) -> None:
        self.pods: dict[str, Any] = {}
        self.secrets: dict[str, Any] = {}
        self.logs: dict[str, list[str]] = {}
        self.asked: list[tuple[str, dict[str, str]]] = []
        self.forbidden = self.away = False
        self.ended = threading.Event()
        outer = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:
                parts = urlsplit(self.path)
                steps, query = parts.path.strip("/").split("/"), dict(parse_qsl(parts.query))
                outer.asked.append((parts.path, query))
                if steps[-1] == "log":
                    self._log(steps[-2], query)
                elif steps[-2] == "secrets" and outer.forbidden:
                    self._say(403, {"kind": "Status", "reason": "Forbidden", "message": "no"})
                else:
                    found = (outer.pods if steps[-2] == "pods" else outer.secrets).get(steps[-1])
                    self._say(200 if found else 404, found or {"kind": "Status", "reason": "NotFound", "message": "none"})

            def _log(self, name: str, query: dict[str, str]) -> None:
                if query.get("previous") and f"{name} previous" not in outer.logs:
                    message = f'previous terminated container "main" in pod "{name}" not found'
                    self._say(400, {"kind": "Status", "reason": "BadRequest", "message": message})
                    return
                if outer.away:
                    cause = f'Get "https://10.0.0.1:10250/containerLogs/default/{name}/main": dial tcp: connection refused'
                    self._say(500, {"kind": "Status", "reason": "InternalError", "message": cause})
                    return
                key = f"{name} previous" if query.get("previous") else name
                self.send_response(200)
                self.send_header("Transfer-Encoding", "chunked")
                self.end_headers()
                lines = [each for each in outer.logs.get(key, []) if each[:19] >= query.get("sinceTime", "")[:19]]
                sent = len(outer.logs.get(key, []))
                for each in lines[-int(query["tailLines"]) :] if "tailLines" in query else lines:
                    self._chunk(each)
                while query.get("follow") and not outer.ended.wait(0.01):
                    for each in outer.logs[key][sent:]:
                        self._chunk(each)
                        sent += 1
                self.wfile.write(b"0\r\n\r\n")

            def _chunk(self, text: str) -> None:
                data = f"{text}\n".encode()
                self.wfile.write(f"{len(data):x}\r\n".encode() + data + b"\r\n")
                self.wfile.flush()

            def _say(self, status: int, body: Any) -> None:
                data = json.dumps(body).encode()
                self.send_response(status)
                self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

            def log_message(self, *_: Any) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def pod(self, name: str, uid: str, restarts: int = 0) -> None:
        """A pod that is given a Secret."""
        reference = {"secretKeyRef": {"name": "token", "key": "value"}}
        containers = [{"name": "main", "env": [{"name": "TOKEN", "valueFrom": reference}]}]
        status = {"phase": "Running", "containerStatuses": [{"name": "main", "restartCount": restarts, "state": {"running": {}}}]}
        meta = {"name": name, "namespace": "default", "uid": uid}
        self.pods[name] = {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": meta,
            "spec": {"containers": containers, "nodeName": "n1"},
            "status": status,
        }

    def stop(self) -> None:
        self.ended.set()
        self._server.shutdown()
        self._server.server_close()


@pytest.fixture
def server(settings: Any, make_user: Any, monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeServer]:
    settings.BASALT_CLUSTER = "kubernetes"
    monkeypatch.setattr(streams, "LOOK_SECONDS", 0.01)
    monkeypatch.setattr(remote, "_known", remote._Known())
    found = FakeServer()
    runtime.use(Admitted(connect(found.url), admission))
    PROJECTIONS[JOB].project(Batch([make.job()]))
    pods = [make.pod(f"train-worker-{index}") for index in range(2)]
    PROJECTIONS[POD].project(Batch(pods))
    for index, pod in enumerate(pods):
        found.pod(pod["metadata"]["name"], pod["metadata"]["uid"], restarts=index)
        found.logs[pod["metadata"]["name"]] = [
            f"2030-01-01T00:00:0{index}.5Z begin {index}",
            f"2030-01-01T00:00:1{index}.000000001Z key {SECRET}",
        ]
    found.logs["train-worker-1 previous"] = ["2029-12-31T23:59:59Z crashed"]
    found.secrets["token"] = {"metadata": {"name": "token"}, "data": {"value": b64encode(SECRET.encode()).decode()}}
    yield found
    runtime.use(None)
    found.stop()


def get(user: Any, path: str, **query: Any) -> Any:
    client = Client()
    client.force_login(user, "django.contrib.auth.backends.ModelBackend")
    return client.get(path, query)


def text(answer: Any) -> str:
    assert answer.status_code == 200, answer.content
    return b"".join(answer).decode()


@pytest.fixture
def ada(make_user: Any) -> Any:
    return make_user("ada")


def test_a_pods_log_comes_from_the_server_with_its_secrets_masked(server: FakeServer, ada: Any) -> None:
    assert text(get(ada, POD_LOG)) == "begin 0\nkey ******\n"
    assert text(get(ada, POD_LOG, timestamps="true", tailLines=1)) == "2030-01-01T00:00:10.000000001Z key ******\n"
    assert server.asked[-1] == (
        "/api/v1/namespaces/default/pods/train-worker-0/log",
        {"container": "main", "timestamps": "true", "tailLines": "1"},
    )
    assert text(get(ada, POD_LOG, sinceTime="2030-01-01T00:00:05Z")) == "key ******\n"


def test_a_jobs_logs_come_in_the_order_of_time(server: FakeServer, ada: Any) -> None:
    said = text(get(ada, JOB_LOGS)).splitlines()
    assert said == [
        "[train-worker-0 main] begin 0",
        "[train-worker-1 main] begin 1",
        "[train-worker-0 main] key ******",
        "[train-worker-1 main] key ******",
    ]
    assert sum(path.endswith("/secrets/token") for path, _ in server.asked) == 1


def test_the_attempt_before_is_there_where_there_was_one(server: FakeServer, ada: Any) -> None:
    assert text(get(ada, JOB_LOGS, previous="true")) == "[train-worker-1 main] crashed\n"
    del server.logs["train-worker-1 previous"]
    assert text(get(ada, JOB_LOGS, previous="true")) == ""


def test_a_log_is_followed_to_the_containers_end(server: FakeServer, ada: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sending, "POLL", 0.02)
    monkeypatch.setattr(sending, "LOOK", 0.1)
    found: list[str] = []
    request_finished.disconnect(close_old_connections)

    def grow() -> None:
        time.sleep(0.3)
        server.logs["train-worker-0"].append(f"2030-01-01T00:00:20Z later {SECRET}")
        time.sleep(0.3)
        server.pods["train-worker-0"]["status"]["phase"] = "Succeeded"
        server.logs["train-worker-0"].append("2030-01-01T00:00:21Z last")
        time.sleep(0.1)
        server.ended.set()

    threading.Thread(target=grow, daemon=True).start()
    try:
        found = text(get(ada, POD_LOG, follow="true")).splitlines()
    finally:
        request_finished.connect(close_old_connections)
    assert found == ["begin 0", "key ******", "later ******", "last"]


def test_without_a_right_to_secrets_the_page_says_that_they_are_not_masked(server: FakeServer, ada: Any) -> None:
    page = "/jobs/uid-train/?tab=logs"
    shown = get(ada, page).content.decode()
    assert "key ******" in shown
    assert "cannot mask them" not in shown
    server.forbidden = True
    remote._known._found.clear()
    shown = get(ada, page).content.decode()
    assert "cannot mask them" in shown
    assert SECRET in shown


def test_another_pod_of_the_name_is_not_taken_for_it(server: FakeServer, ada: Any) -> None:
    server.pods["train-worker-0"]["metadata"]["uid"] = "other"
    assert text(get(ada, JOB_LOGS)) == "[train-worker-1 main] begin 1\n[train-worker-1 main] key ******\n"


def test_only_so_many_pods_are_read_together(server: FakeServer, ada: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(remote, "MOST_PODS", 1)
    assert get(ada, JOB_LOGS).status_code == 400
    assert "begin 0" in get(ada, "/jobs/uid-train/?tab=logs").content.decode()


def test_a_kubelet_that_is_away_is_one_line_for_all_its_pods(server: FakeServer, ada: Any) -> None:
    server.away = True
    assert text(get(ada, JOB_LOGS)) == "[train-worker-0 main] No log on node n1 can be read now: dial tcp: connection refused\n"
    html = get(ada, "/jobs/uid-train/", tab="logs").content.decode()
    assert html.count("can be read now") == 1


def test_that_a_kubelet_was_away_is_not_kept_as_the_last_lines(server: FakeServer) -> None:
    server.away = True
    with pytest.raises(ApiError, match="connection refused"):
        tails.keep(Job.objects.get())
    assert not LogTail.objects.exists()
    server.away = False
    server.ended.set()
    assert len(tails.keep(Job.objects.get()).lines) == 4
