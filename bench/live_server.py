"""The server of the live bench: pages and live channel over a store and its mirror, and who changes pods.

Run by `bench.live`, which speaks with it by lines of JSON: it says where it serves, is told `change` with seconds and pods a
second, and answers with what it changed, when, and how everything was in the end.
"""

from __future__ import annotations

import json
import sys
import threading
import time
from collections.abc import Iterator
from typing import Any

from bench.scratch import django_in_scratch

NODES, GPUS, PODS_OF_A_JOB = 1000, 8, 4
TICK = 0.05
POD_PHASES = ("Succeeded", "Running")


def say(**message: Any) -> None:
    """One line to the bench."""
    sys.stdout.write(json.dumps(message) + "\n")
    sys.stdout.flush()


def main() -> None:
    """Fill a store, serve, change pods when told, and end when standard input does."""
    with django_in_scratch() as folder:
        from portal import parts
        from portal.mirror import Mirror

        embedded = parts.embedded(folder)
        pods, jobs = fill(embedded.cluster)
        mirror, stop = Mirror(embedded.cluster), threading.Event()
        threading.Thread(target=mirror.run, args=(stop,), daemon=True).start()
        assert mirror.synced.wait(300)
        threading.Thread(target=obey, args=(embedded.cluster, pods, jobs), daemon=True).start()
        serve()
        stop.set()
        embedded.close()


def serve() -> None:
    """As `manage.py run` does, on a free port; says where once it really serves."""
    import socket

    import uvicorn
    from django.contrib.auth import get_user_model
    from knox.models import AuthToken

    token = AuthToken.objects.create(get_user_model().objects.create_user("ada"))[1]
    listener = socket.create_server(("127.0.0.1", 0), backlog=2048)
    config = uvicorn.Config(
        "portal.asgi:application", log_config=None, access_log=False, ws_per_message_deflate=False, timeout_graceful_shutdown=1
    )
    server = uvicorn.Server(config)

    def told() -> None:
        while not server.started:
            time.sleep(0.05)
        say(port=listener.getsockname()[1], token=token, uids=_uids())

    threading.Thread(target=told, daemon=True).start()
    _ending.append(server)
    server.run([listener])


_ending: list[Any] = []


def _uids() -> list[str]:
    from jobs.models import Job

    return list(Job.objects.order_by("name").values_list("uid", flat=True))


def fill(cluster: Any) -> tuple[list[Any], list[Any]]:
    """Nodes full of jobs, each on half a node; the pods and jobs that were made, a job's pods side by side."""
    from cluster.kinds import JOB, NODE, POD, QUEUE

    queue = {
        "apiVersion": "scheduling.volcano.sh/v1beta1",
        "kind": "Queue",
        "metadata": {"name": "default"},
        "spec": {"weight": 1},
    }
    made(cluster.create_many(QUEUE, [queue | {"status": {"state": "Open"}}]))
    made(cluster.create_many(NODE, [node(number) for number in range(NODES)]))
    jobs = made(cluster.create_many(JOB, [job(number) for number in range(NODES * GPUS // PODS_OF_A_JOB)]))
    jobs.sort(key=lambda obj: obj["metadata"]["name"])
    pods = made(cluster.create_many(POD, [pod(owner, n, k) for n, owner in enumerate(jobs) for k in range(PODS_OF_A_JOB)]))
    pods.sort(key=lambda obj: obj["metadata"]["name"])
    return pods, jobs


def made(outcomes: Any) -> list[Any]:
    """The objects of some outcomes, all of which must be good."""
    for outcome in outcomes:
        if outcome.error is not None:
            raise outcome.error
    return [outcome.object for outcome in outcomes]


def node(number: int) -> dict[str, Any]:
    """A machine of eight GPUs."""
    from cluster.embedded.machines import make_node

    amounts = {"cpu": "96", "memory": "1Ti", "pods": "110", "nvidia.com/gpu": str(GPUS)}
    labels = {"topology.basalt.dev/rack": f"r{number // 32:02d}", "nvidia.com/gpu.product": "NVIDIA-H100-80GB-HBM3"}
    return make_node(f"n-{number:04d}", capacity=amounts, allocatable=amounts, labels=labels, annotations={})


def template() -> dict[str, Any]:
    """A pod of one GPU."""
    limits = {"cpu": "1", "memory": "1Gi", "nvidia.com/gpu": "1"}
    return {"restartPolicy": "Never", "containers": [{"name": "main", "image": "i", "resources": {"limits": limits}}]}


def job(number: int) -> dict[str, Any]:
    """A gang."""
    task = {"name": "w", "replicas": PODS_OF_A_JOB, "template": {"spec": template()}}
    return {
        "apiVersion": "batch.volcano.sh/v1alpha1",
        "kind": "Job",
        "metadata": {"name": f"train-{number:05d}", "namespace": "default"},
        "spec": {"minAvailable": PODS_OF_A_JOB, "tasks": [task]},
    }


def pod(owner: Any, number: int, index: int) -> dict[str, Any]:
    """One of a gang's pods where it runs."""
    meta, first = owner["metadata"], number * PODS_OF_A_JOB
    reference = {"apiVersion": owner["apiVersion"], "kind": "Job", "name": meta["name"], "uid": meta["uid"], "controller": True}
    notes = {
        "volcano.sh/task-spec": "w",
        "volcano.sh/task-index": str(index),
        "basalt.dev/gpu-indices": str((first + index) % GPUS),
    }
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": f"{meta['name']}-w-{index}",
            "namespace": "default",
            "ownerReferences": [reference],
            "annotations": notes,
        },
        "spec": template() | {"nodeName": f"n-{first // GPUS:04d}", "schedulerName": "volcano"},
        "status": {"phase": "Running"},
    }


def obey(cluster: Any, pods: list[Any], jobs: list[Any]) -> None:
    """Change when told to, until there is nobody to tell."""
    for line in sys.stdin:
        order = json.loads(line)
        say(**change(cluster, pods, jobs, order["seconds"], order["pods"]))
    for server in _ending:
        server.should_exit = True


def change(cluster: Any, pods: list[Any], jobs: list[Any], seconds: float, rate: int) -> dict[str, Any]:
    """Let so many pods a second end or begin, and their job count it, job after job.

    When each change was made, by its number: a pod's is told by its GPU's state, a job's by its count of running pods.
    """
    phases = [1] * len(pods)
    moves: list[tuple[float, int, int]] = []  # when, which pod, to which phase
    counts: list[tuple[float, int]] = []  # when; the place is what the job of that number counts
    begin, turn = time.monotonic(), _jobs_for_ever(len(jobs))
    for tick in range(int(seconds / TICK)):
        time.sleep(max(0.0, begin + tick * TICK - time.monotonic()))
        wanted = int((tick + 1) * TICK * rate) // PODS_OF_A_JOB - len(counts)
        chosen = [next(turn) for _ in range(wanted)]
        at = time.monotonic()
        for number in chosen:
            for place in range(number * PODS_OF_A_JOB, (number + 1) * PODS_OF_A_JOB):
                phases[place] = 1 - phases[place]
                moves.append((at, place, phases[place]))
            counts.append((at, number))
        _write(cluster, pods, jobs, phases, chosen, len(counts) - len(chosen))
    took = time.monotonic() - begin
    return {"moves": moves, "counts": counts, "phases": phases, "took": took, "uids": [job["metadata"]["uid"] for job in jobs]}


def _jobs_for_ever(count: int) -> Iterator[int]:
    while True:
        yield from range(count)


def _write(cluster: Any, pods: list[Any], jobs: list[Any], phases: list[int], chosen: list[int], first: int) -> None:
    from cluster.kinds import JOB, POD
    from cluster.port import StatusWrite

    places = [place for number in chosen for place in range(number * PODS_OF_A_JOB, (number + 1) * PODS_OF_A_JOB)]
    writes = [StatusWrite("default", pods[place]["metadata"]["name"], {"phase": POD_PHASES[phases[place]]}) for place in places]
    made(cluster.patch_status_many(POD, writes))
    told = [
        StatusWrite("default", jobs[number]["metadata"]["name"], {"running": first + place + 1})
        for place, number in enumerate(chosen)
    ]
    made(cluster.patch_status_many(JOB, told))


if __name__ == "__main__":
    main()
