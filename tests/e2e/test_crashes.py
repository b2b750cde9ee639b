"""kill -9 at random moments: what REST acknowledged is there afterwards, once, and comes to its end."""

import random
import threading
import time

import httpx
import pytest

from tests.e2e.server import Server, wait_for

pytestmark = pytest.mark.slow

KILLS = 20


def gang(name: str, pods: int) -> dict:
    """A job of `pods` pods that run for two simulated seconds."""
    container = {"name": "main", "image": "busybox", "resources": {"requests": {"cpu": "500m", "memory": "256Mi"}}}
    template = {
        "metadata": {"annotations": {"sim.basalt.dev/duration": "2s", "sim.basalt.dev/start-delay": "0s"}},
        "spec": {"restartPolicy": "Never", "containers": [container]},
    }
    return {
        "apiVersion": "batch.volcano.sh/v1alpha1",
        "kind": "Job",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"minAvailable": pods, "tasks": [{"name": "w", "replicas": pods, "template": template}]},
    }


def submit_until(stop: threading.Event, client: httpx.Client, acknowledged: dict[str, int], run: int) -> None:
    """Submit jobs one after the other; remember those whose 201 arrived."""
    number = 0
    while not stop.is_set():
        name, pods = f"crash-{run}-{number}", 1 + number % 3
        number += 1
        try:
            if client.post("/jobs", json=gang(name, pods)).status_code == 201:
                acknowledged[name] = pods
        except httpx.TransportError:
            return
        time.sleep(0.02)


def test_nothing_acknowledged_is_lost_or_doubled_over_twenty_kills(tmp_path):
    rng, acknowledged = random.Random(7), {}
    server = Server(tmp_path, "--speed", "20")
    server.start()
    for run in range(KILLS):
        stop = threading.Event()
        submitter = threading.Thread(target=submit_until, args=(stop, server.client(), acknowledged, run))
        submitter.start()
        time.sleep(rng.uniform(0.05, 1.0))
        server.kill()
        stop.set()
        submitter.join()
        server.start()

    assert len(acknowledged) > KILLS
    with server.client() as client:

        def ended() -> bool:
            return all(client.get(f"/jobs/default/{name}").json()["phase"] == "Completed" for name in acknowledged)

        wait_for(ended, 120, "every acknowledged job Completed")
        for name, pods in acknowledged.items():
            job = client.get(f"/jobs/default/{name}").json()
            assert (job["succeeded"], job["replicas"], job["retry_count"]) == (pods, pods, 0), job
    assert server.stop() == 0
