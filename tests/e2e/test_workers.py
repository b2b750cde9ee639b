"""The controllers' work done by Celery workers, over PostgreSQL and Redis: one dies, and nothing is lost or doubled."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit, urlunsplit

import httpx
import psycopg
import pytest
import redis

from tests.e2e.server import ROOT, Server, wait_for

pytestmark = [
    pytest.mark.services,
    pytest.mark.skipif(not (os.environ.get("DATABASE_URL") and os.environ.get("REDIS_URL")), reason="no PostgreSQL and Redis"),
]
JOBS, PODS, LARGE = 24, 4, 700
DATABASE, REDIS_DB = "basalt_workers", "9"


@pytest.fixture
def services() -> Iterator[dict[str, str]]:
    """A database and a Redis of the test's own, as settings of the environment."""
    url, store = urlsplit(os.environ["DATABASE_URL"]), urlsplit(os.environ["REDIS_URL"])
    with psycopg.connect(os.environ["DATABASE_URL"], autocommit=True) as connection:
        connection.execute(f"DROP DATABASE IF EXISTS {DATABASE} WITH (FORCE)")
        connection.execute(f"CREATE DATABASE {DATABASE}")
        address = urlunsplit(store._replace(path=f"/{REDIS_DB}"))
        redis.Redis.from_url(address).flushdb()
        yield {"DATABASE_URL": urlunsplit(url._replace(path=f"/{DATABASE}")), "REDIS_URL": address}
        redis.Redis.from_url(address).flushdb()
        connection.execute(f"DROP DATABASE IF EXISTS {DATABASE} WITH (FORCE)")


class Worker:
    """One Celery worker in a process of its own."""

    def __init__(self, server: Server, token: str, number: int) -> None:
        environment = (
            os.environ
            | server.environment
            | {
                "BASALT_DATA": str(server.data),
                "BASALT_CLUSTER_URL": f"{server.url}/kubernetes",
                "BASALT_CLUSTER_TOKEN": token,
            }
        )
        self.log = server.data / f"worker-{number}.log"
        command = [
            sys.executable,
            "-m",
            "celery",
            "-A",
            "portal.celery",
            "worker",
            "--hostname",
            f"w{number}@test",
            "-l",
            "warning",
        ]
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(command, cwd=ROOT, env=environment, stdout=log, stderr=subprocess.STDOUT)

    def holds(self, store: redis.Redis) -> bool:
        """Whether it works a key."""
        return any(f":{self.process.pid}/".encode() in token for token in store.hvals("basalt:work:tokens"))

    def kill(self) -> None:
        """End it as a power cut would."""
        self.process.kill()
        self.process.wait(10)

    def stop(self) -> None:
        """Ask it to end."""
        self.process.send_signal(signal.SIGTERM)
        try:
            self.process.wait(15)
        except subprocess.TimeoutExpired:
            self.kill()


def manifest(name: str, pods: int, **spec: Any) -> dict[str, Any]:
    container = {"name": "main", "image": "busybox", "resources": {"requests": {"cpu": "10m"}}}
    template = {
        "metadata": {"annotations": {"sim.basalt.dev/duration": "2s"}},
        "spec": {"restartPolicy": "Never", "containers": [container]},
    }
    return {
        "apiVersion": "batch.volcano.sh/v1alpha1",
        "kind": "Job",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"minAvailable": pods, "tasks": [{"name": "worker", "replicas": pods, "template": template}], **spec},
    }


@pytest.fixture
def server(tmp_path: Path, services: dict[str, str]) -> Iterator[Server]:
    running = Server(tmp_path, "--instant", environment={**services, "BASALT_CONTROLLERS": "workers"})
    running.start()
    yield running
    running.stop()


def test_a_worker_that_is_killed_in_the_middle_loses_and_doubles_nothing(server: Server, services: dict[str, str]):
    store = redis.Redis.from_url(services["REDIS_URL"])
    with ExitStack() as stack:
        rest = stack.enter_context(server.client())
        token = rest.headers["Authorization"].split()[1]
        first, second = Worker(server, token, 1), Worker(server, token, 2)
        stack.callback(first.kill)
        stack.callback(second.stop)
        for number in range(JOBS):
            rest.post("/jobs", json=manifest(f"many-{number}", PODS)).raise_for_status()
        rest.post("/jobs", json=manifest("large", LARGE)).raise_for_status()
        wait_for(lambda: phases(rest).get("Running", 0) + phases(rest).get("Completed", 0), 90, "a job that runs")
        rest.post("/jobs/default/large/actions/restart").raise_for_status()
        wait_for(lambda: first.holds(store), 60, "a key that the first worker has", pause=0.001)
        first.kill()
        assert first.holds(store), "it was killed between two keys"
        wait_for(lambda: phases(rest) == {"Completed": JOBS + 1}, 180, "all jobs Completed")
        for number in range(JOBS):
            job = rest.get(f"/jobs/default/many-{number}").json()
            assert (job["succeeded"], job["retry_count"], job["pods_total"]) == (PODS, 0, PODS)
        large = rest.get("/jobs/default/large").json()
        assert (large["succeeded"], large["retry_count"]) == (LARGE, 1)
        assert LARGE <= large["pods_total"] <= 2 * LARGE
        wait_for(lambda: not store.zcard("basalt:work:leases"), 30, "no key that anybody holds")
        bell = kubernetes(server, token, "/apis/bus.volcano.sh/v1alpha1/commands")
        assert bell["items"] == []
        pods = kubernetes(server, token, "/api/v1/pods")["items"]
        assert len(pods) == len({pod["metadata"]["name"] for pod in pods}) == JOBS * PODS + LARGE
        assert "Traceback" not in second.log.read_text()


def phases(rest: httpx.Client) -> dict[str, int]:
    """How many jobs are in each phase."""
    found: dict[str, int] = {}
    for job in rest.get("/jobs", params={"limit": 200}).raise_for_status().json()["results"]:
        found[job["phase"]] = found.get(job["phase"], 0) + 1
    return found


def kubernetes(server: Server, token: str, path: str) -> Any:
    """What the cluster itself holds."""
    answer = httpx.get(f"{server.url}/kubernetes{path}", headers={"Authorization": f"Bearer {token}"}, timeout=20)
    answer.raise_for_status()
    return answer.json()
