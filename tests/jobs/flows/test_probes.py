"""Probes: over the network for pods that are processes of this machine, by readiness for simulated ones."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any

import pytest

from jobs.flows.probes import EmbeddedProber, NetworkProber, holds


class _Answers(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        good = {"/ready": 200, "/moved": 302, "/broken": 500, "/secret": 200 if self.headers.get("X-Key") == "k" else 403}
        self.send_response(good.get(self.path, 404))
        self.end_headers()

    def log_message(self, *_: Any) -> None:
        pass


@pytest.fixture
def port() -> Iterator[int]:
    server = HTTPServer(("127.0.0.1", 0), _Answers)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield server.server_address[1]
    server.shutdown()
    server.server_close()


def pod(
    index: int = 0, address: str = "127.0.0.1", phase: str = "Running", ready: bool = True, role: str = "w"
) -> dict[str, Any]:
    meta = {"name": f"p-{role}-{index}", "annotations": {"volcano.sh/task-spec": role}}
    return {"metadata": meta, "status": {"phase": phase, "podIP": address, "containerStatuses": [{"ready": ready}]}}


@pytest.mark.parametrize(
    ("path", "good"), [("/ready", True), ("/moved", True), ("/broken", False), ("/none", False), ("/secret", False)]
)
def test_a_get_is_answered_by_a_status_below_400(port: int, path: str, good: bool):
    assert NetworkProber().http(pod(), port, path, None) is good


def test_a_header_is_sent(port: int):
    assert NetworkProber().http(pod(), port, "/secret", ("X-Key", "k"))


def test_a_connection_is_taken_or_not(port: int):
    assert NetworkProber().tcp(pod(), port)
    assert not NetworkProber().tcp(pod(address=""), port)
    assert not NetworkProber().tcp(pod(), 1)
    assert not NetworkProber().http(pod(), 1, "/", None)


def test_simulated_pods_answer_when_they_are_ready_and_nobody_is_asked(port: int):
    prober = EmbeddedProber()
    assert prober.tcp(pod(address="10.0.0.7"), 1)
    assert not prober.http(pod(address="10.0.0.7", ready=False), 1, "/", None)
    assert prober.tcp(pod(), port)
    assert not prober.tcp(pod(), 1)


JOB = {
    "spec": {
        "tasks": [
            {"name": "w", "replicas": 3, "minAvailable": 2},
            {"name": "v", "replicas": 1, "minAvailable": 0},
        ]
    }
}


class Counting:
    """Answers for some pods, and counts whom it asked."""

    def __init__(self, *good: str) -> None:
        self.good, self.asked = good, []

    def tcp(self, pod: Any, port: int) -> bool:
        self.asked.append(pod["metadata"]["name"])
        return pod["metadata"]["name"] in self.good

    http: Any = None


@pytest.mark.parametrize(
    ("good", "answer", "asked"),
    [
        (("p-w-0", "p-w-1"), True, 2),
        (("p-w-0", "p-w-2"), True, 3),
        (("p-w-2",), False, 2),
        ((), False, 2),
    ],
)
def test_as_many_pods_must_answer_as_the_gang_needs_and_no_more_are_asked(good: tuple[str, ...], answer: bool, asked: int):
    prober = Counting(*good)
    assert holds({"tcpSocketList": [{"taskName": "w", "port": 1}]}, JOB, [pod(i) for i in range(3)], prober) is answer
    assert len(prober.asked) == asked


def test_a_question_without_a_task_is_about_all_and_one_pod_at_least_must_answer():
    pods = [pod(i) for i in range(3)]
    assert not holds({"tcpSocketList": [{"port": 1}]}, JOB, pods, Counting("p-w-0", "p-w-1"))
    assert holds({"tcpSocketList": [{"port": 1}]}, JOB, [*pods, pod(role="v")], Counting("p-w-0", "p-w-1", "p-v-0"))


def test_a_task_of_another_target_is_not_asked_about():
    assert holds({"taskStatusList": [{"taskName": "elsewhere", "phase": "Running"}]}, JOB, [], Counting())


@pytest.mark.parametrize(("phase", "good"), [("Running", True), ("Succeeded", True), ("Pending", False), ("Failed", False)])
def test_a_pod_that_ended_well_was_running(phase: str, good: bool):
    pods = [pod(i, phase=phase) for i in range(2)]
    assert holds({"taskStatusList": [{"taskName": "w", "phase": "Running"}]}, JOB, pods, Counting()) is good


def test_pods_that_do_not_run_are_not_asked():
    prober = Counting("p-w-0", "p-w-1")
    assert not holds({"tcpSocketList": [{"taskName": "w", "port": 1}]}, JOB, [pod(i, phase="Pending") for i in range(2)], prober)
    assert prober.asked == []
