"""A part as a process: what it refuses at its start, what it tells, and how it ends."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
import requests
from django.core.management import CommandError, call_command
from prometheus_client import CollectorRegistry

from cluster.embedded.store import EmbeddedCluster
from cluster.informer import Informer
from cluster.kinds import JOB, JOB_FLOW, POD_GROUP, QUEUE
from portal.metrics import ControllerMetrics, SchedulerMetrics
from scheduler.framework.explain import Code, Stage, Verdict
from scheduler.framework.record import CycleRecord, EvictionRecord, QueueShare

ROOT = Path(__file__).parents[2]


def record(**what: Any) -> CycleRecord:
    return CycleRecord(number=1, at=0.0, milliseconds=12.0, actions={"allocate": 8.0}, **what)


def test_a_cycle_is_told_in_volcanos_words() -> None:
    into = CollectorRegistry()
    metrics = SchedulerMetrics(into)
    share = QueueShare(share=1.5, allocated={"cpu": 2000, "memory": 4096, "nvidia.com/gpu": 3000}, limit={"cpu": 8000})
    waits = Verdict(next(iter(Stage)), next(iter(Code)), needed=6, placeable=2)
    metrics(record(bound=5, considered=9, queues={"q": share}, verdicts={"ns/gang": waits}))
    value = into.get_sample_value
    assert value("volcano_e2e_scheduling_latency_milliseconds_sum") == 12
    assert value("volcano_action_scheduling_latency_milliseconds_count", {"action": "allocate"}) == 1
    assert value("basalt_pods_bound_total") == 5
    assert value("volcano_unschedule_job_count") == 1
    assert value("volcano_unschedule_task_count", {"job_id": "gang"}) == 4
    assert value("volcano_job_retry_counts", {"job_id": "gang"}) == 1
    assert value("volcano_queue_share", {"queue_name": "q"}) == 1.5
    assert value("volcano_queue_overused", {"queue_name": "q"}) == 1
    assert value("volcano_queue_allocated_milli_cpu", {"queue_name": "q"}) == 2000
    assert value("volcano_queue_allocated_memory_bytes", {"queue_name": "q"}) == 4096
    assert value("volcano_queue_allocated_scalar_resources", {"queue_name": "q", "resource": "nvidia.com/gpu"}) == 3000
    assert value("volcano_queue_real_capacity_milli_cpu", {"queue_name": "q"}) == 8000


def test_a_gang_that_waits_no_more_is_not_told_of() -> None:
    into = CollectorRegistry()
    metrics = SchedulerMetrics(into)
    metrics(record(verdicts={"ns/gang": Verdict(next(iter(Stage)), next(iter(Code)))}))
    metrics(record(verdicts={"ns/gang": None, "ns/never": None}))
    assert into.get_sample_value("volcano_unschedule_job_count") == 0
    assert into.get_sample_value("volcano_unschedule_task_count", {"job_id": "gang"}) is None


def test_evictions_are_counted_by_whom_they_were_for() -> None:
    into = CollectorRegistry()
    victims = [
        EvictionRecord(f"ns/{n}", n, "ns/low", "q", "node", "preempt", "priority", "", preemptor=for_whom)
        for n, for_whom in (("a", "ns/high"), ("b", "ns/high"), ("c", "ns/higher"))
    ]
    SchedulerMetrics(into)(record(evicted=3, evictions=victims))
    value = into.get_sample_value
    assert (value("volcano_total_preemption_attempts"), value("volcano_pod_preemption_victims")) == (1, 3)
    assert value("volcano_eviction_transactions_total", {"action": "preempt"}) == 2


def test_controllers_count_what_is_there(cluster: EmbeddedCluster) -> None:
    into = CollectorRegistry()
    informer = Informer(cluster, (JOB, POD_GROUP, QUEUE, JOB_FLOW), {})
    ControllerMetrics(lambda: informer, into)
    informer.start()
    for name, phase in (("a", "Running"), ("b", "Running"), ("c", "Inqueue")):
        informer.observe(POD_GROUP, {"metadata": {"name": name, "uid": name, "resourceVersion": "1"}, "status": {"phase": phase}})
    job = {"metadata": {"name": "j", "uid": "j", "resourceVersion": "1"}, "status": {"state": {"phase": "Completed"}}}
    informer.observe(JOB, job)
    informer.stop()
    value = into.get_sample_value
    assert value("volcano_queue_pod_group_running_count", {"queue_name": "default"}) == 2
    assert value("volcano_queue_pod_group_inqueue_count", {"queue_name": "default"}) == 1
    assert value("basalt_jobs", {"phase": "Completed"}) == 1


@pytest.fixture
def nowhere(settings: Any) -> None:
    """An API server that is not there."""
    settings.BASALT_CLUSTER_URL = "http://127.0.0.1:1"


@pytest.mark.parametrize(
    ("part", "options", "says"),
    [
        ("scheduler", {"conf": Path("/missing.conf")}, "--conf /missing.conf"),
        ("mirror", {"listen": "127.0.0.1:99999"}, "cannot listen on 127.0.0.1:99999"),
        ("mirror", {"listen": "here"}, "cannot listen on here"),
    ],
)
def test_what_the_options_get_wrong_is_one_clear_line(nowhere: None, part: str, options: dict[str, Any], says: str) -> None:
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        with pytest.raises(CommandError, match=says):
            call_command(part, **options)
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def test_a_part_without_its_cluster_lives_says_so_and_ends_in_order(tmp_path: Path) -> None:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    environment = {**os.environ, "BASALT_DATA": str(tmp_path), "BASALT_CLUSTER_URL": "http://127.0.0.1:1"}
    command = [sys.executable, "manage.py", "mirror", "--listen", f"127.0.0.1:{port}"]
    log = tmp_path / "log"
    with log.open("wb") as file:
        process = subprocess.Popen(command, cwd=ROOT, env=environment, stderr=file)
    try:
        answers = {path: _answer(port, path) for path in ("/healthz", "/readyz", "/metrics", "/other")}
        assert {path: answer.status_code for path, answer in answers.items()} == {
            "/healthz": 200, "/readyz": 503, "/metrics": 200, "/other": 404,
        }  # fmt: skip
        assert answers["/readyz"].json()["why"] == "nobody leads yet, and the lease was not got"
        assert "basalt_leads 0.0" in answers["/metrics"].text
        end = time.monotonic() + 40
        while "the lease basalt-mirror could not be asked for" not in log.read_text():
            assert time.monotonic() < end
            time.sleep(0.05)
        process.send_signal(signal.SIGTERM)
        process.wait(20)
    finally:
        process.kill()
    said = log.read_text()
    assert process.returncode == 0
    assert '"clean": true' in said
    assert "Traceback" not in said


def _answer(port: int, path: str) -> requests.Response:
    end = time.monotonic() + 40
    while True:
        try:
            return requests.get(f"http://127.0.0.1:{port}{path}", timeout=5)
        except requests.RequestException:
            assert time.monotonic() < end
            time.sleep(0.1)
